"""Names of Redis keys: live keys from their template, and helper keys that a cluster keeps in the same slot."""

from __future__ import annotations

import re
from binascii import crc_hqx
from datetime import UTC, datetime

from leaderboard.errors import ConfigError

SLOTS = 16_384
_FIELD = re.compile(r"<([^<>]*)>")
# Digits only, and the same on every machine: no names of a locale, no %s, which reads the machine's own time zone.
_LAYOUT = re.compile(r"(?:[^%]|%[YymdHMSjGVuw%])+")
#: What stands beside a live key: the runner's fence, what was applied, who is moving, how many are in each band; the
#: private names under which a key expires, and under which it is while a server that is out of memory forgets it.
KINDS = ("fence", "applied", "moving", "bands", "expiring", "leaving")
#: What goes with a live key: of these kinds, whatever there is, when the key is forgotten.
BESIDE = ("applied", "moving", "bands", "fence")
FROZEN = "frozen"
BUILDING = "building"
SHARD = "<shard>"  #: stays in the name of a live key over several sorted sets, until the shard is known


def check_template(template: str, *, shared: bool = False) -> str:
    """Return the key template if every season gets a key of its own from it; raise ConfigError otherwise.

    With ``shared`` one key for all seasons will do.
    """
    fields = _FIELD.findall(template)
    for field in fields:
        name, _, layout = field.partition(":")
        if name in ("board", "season", "shard") and not layout:
            continue
        if name in ("starts_at", "ends_at") and _LAYOUT.fullmatch(layout):
            continue
        raise ConfigError(
            f"the key template {template!r} has the unknown field <{field}>",
            hint="use <board>, <season>, <shard>, <starts_at:%Y-%m-%d> or <ends_at:%Y-%m-%d>, with Y y m d H M S j G V "
            "u w",
        )
    if not shared and is_shared(template):
        raise ConfigError(
            f"the key template {template!r} gives every season the same key",
            hint='put <season>, or a bound such as <starts_at:%Y-%m-%d>, into it; or set freeze = "rename"',
        )
    if re.search(r"[<>]", _FIELD.sub("", template)) or not template.isprintable():
        raise ConfigError(f"the key template {template!r} has a stray < or >, or an unprintable character")
    sample = datetime(2026, 1, 1, tzinfo=UTC)
    helper_key(_fill(template, "board", "season", sample, sample).replace(SHARD, "0"), "fence")
    return template


def is_shared(template: str) -> bool:
    """Return whether the key template gives every season of a board the same key."""
    return not any(field.partition(":")[0] in ("season", "starts_at", "ends_at") for field in _FIELD.findall(template))


def check_current_key(current_key: str, template: str) -> str:
    """Return the name of the key that tells readers the open season's key; it must be one fixed name."""
    if not current_key or _FIELD.search(current_key.replace("<board>", "")) or not current_key.isprintable():
        raise ConfigError(f"current_key = {current_key!r} must be one fixed name; only <board> may be filled in")
    if current_key == template:
        raise ConfigError(f"current_key = {current_key!r} is the live key itself")
    return current_key


def live_key(template: str, board: str, season: str, starts_at: datetime, ends_at: datetime) -> str:
    """Return the name of a season's sorted set; bounds are formatted in UTC.

    Of a board with shards it is what :func:`shard_keys` makes the names of its sorted sets from. Raises ConfigError if
    it cannot be tagged.
    """
    key = _fill(template, board, season, starts_at, ends_at)
    helper_key(key.replace(SHARD, "0"), "fence")
    return key


def shard_keys(live_key: str, number: int) -> tuple[str, ...]:
    """Return the names of all sorted sets of a season, in the order of its shards: the one name where there is one."""
    return (live_key,) if number == 1 else tuple(shard_key(live_key, shard) for shard in range(number))


def shard_key(live_key: str, shard: int) -> str:
    """Return the name of one shard of a season: ``with_shard`` with its number."""
    return with_shard(live_key).replace(SHARD, str(shard))


def with_shard(name: str) -> str:
    """Return a key or template with a place for the shard's number: its own, else in its hash tag, else at the end.

    So each shard has a hash tag of its own and a cluster spreads them, unless ``<shard>`` was put beside a tag.
    """
    if SHARD in name:
        return name
    tag = hashed_part(name)
    return f"{name}:{SHARD}" if tag == name else name.replace(f"{{{tag}}}", f"{{{tag}:{SHARD}}}", 1)


def _fill(template: str, board: str, season: str, starts_at: datetime, ends_at: datetime) -> str:
    def value(match: re.Match[str]) -> str:
        name, _, layout = match.group(1).partition(":")
        if name == "shard":
            return SHARD
        if name in ("starts_at", "ends_at"):
            return (starts_at if name == "starts_at" else ends_at).astimezone(UTC).strftime(layout)
        return board if name == "board" else season

    return _FIELD.sub(value, template)


def hashed_part(key: str) -> str:
    """Return the part of ``key`` that a cluster hashes: the first non-empty ``{…}``, else all of it.

    Rule: Redis cluster specification, "Hash tags".
    """
    start = key.find("{")
    end = key.find("}", start + 1)
    return key[start + 1 : end] if start >= 0 and end > start + 1 else key


def slot(key: str) -> int:
    """Return the cluster slot of ``key``, 0..16383: CRC16 (XMODEM) of its hashed part.

    Rule: Redis cluster specification, "Key distribution model".
    """
    return crc_hqx(hashed_part(key).encode(), 0) % SLOTS


def helper_key(key: str, kind: str) -> str:
    """Return the name of a helper key beside the live ``key``, in the same slot.

    It keeps the key's own hash tag, or wraps the whole key where it has none. ``kind`` is one of ``KINDS``. Raises
    ConfigError for a key that can be tagged in neither way.
    """
    if kind not in KINDS:
        raise ValueError(kind)
    return _beside(key, kind)


def frozen_key(key: str, season: str) -> str:
    """Return the private name of what a season leaves under ``key``, in the same slot; otherwise as ``helper_key``."""
    return _beside(key, f"{FROZEN}:{season}")


def building_keys(key: str, fence: int) -> tuple[str, str, str]:
    """Return the private names that a rebuild of ``key`` under this fence uses, in the same slot.

    What is being built, its counts of bands, and what the old board is called while it is freed.
    """
    one = f"{BUILDING}:{fence}"
    return _beside(key, one), _beside(key, f"{one}:bands"), _beside(key, f"{one}:old")


def canary_keys(key: str) -> tuple[str, str, str, str]:
    """Return private names beside ``key``, in the same slot, on which ``finale doctor`` tries what it may do."""
    one, two, three, four = (_beside(key, f"canary:{number}") for number in range(4))
    return one, two, three, four


def _beside(key: str, what: str) -> str:
    tagged = key if hashed_part(key) != key else f"{{{key}}}"
    helper = f"{tagged}:finale:{what}"
    if not key or hashed_part(helper) != hashed_part(key):
        raise ConfigError(
            f"the key {key!r} cannot be given helper keys in the same cluster slot",
            hint="take stray braces out of the key, or give it one hash tag such as {board}",
        )
    return helper
