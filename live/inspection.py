"""What Redis says of itself, and what this user may do there, tried on canary keys that go by themselves."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis import Redis
from redis import exceptions as driver

from leaderboard.errors import AccessError
from leaderboard.keys import canary_keys
from live.scripts import send
from live.translate import address, translated

LIFE = 60  #: seconds until a canary that a killed check left is gone
#: Every command that Finale sends, as a form that harms nothing, in an order in which each leaves the canaries whole.
#: {z}, {h}, {s} and {m} are a sorted set, a hash, a string and a key that does not exist.
FORMS: tuple[tuple[str, ...], ...] = (
    ("PING",),
    ("TIME",),
    ("INFO", "server"),
    ("ROLE",),
    ("CLIENT", "ID"),
    ("WATCH", "{z}"),
    ("MULTI",),
    ("EXEC",),
    ("EVAL", "return redis.call('EXISTS', KEYS[1])", "1", "{z}"),
    ("EVALSHA", "0" * 40, "1", "{z}"),
    ("ZADD", "{z}", "1", "a"),
    ("EXPIRE", "{z}", str(LIFE)),
    ("SET", "{s}", "1", "EX", str(LIFE)),
    ("HSET", "{h}", "f", "1"),
    ("EXPIRE", "{h}", str(LIFE)),
    ("TYPE", "{z}"),
    ("TTL", "{z}"),
    ("EXISTS", "{s}"),
    ("GET", "{s}"),
    ("ZCARD", "{z}"),
    ("ZCOUNT", "{z}", "-inf", "+inf"),
    ("ZRANGE", "{z}", "0", "0", "WITHSCORES"),
    ("ZRANK", "{z}", "a"),
    ("ZREVRANK", "{z}", "a"),
    ("ZSCORE", "{z}", "a"),
    ("ZMSCORE", "{z}", "a"),
    ("ZSCAN", "{z}", "0", "COUNT", "1"),
    ("ZREM", "{z}", "nobody"),
    ("HGET", "{h}", "f"),
    ("HMGET", "{h}", "f"),
    ("HGETALL", "{h}"),
    ("HEXISTS", "{h}", "f"),
    ("HINCRBY", "{h}", "f", "1"),
    ("HDEL", "{h}", "nothing"),
    ("PERSIST", "{m}"),
    ("RENAME", "{m}", "{m}"),
    ("RENAMENX", "{m}", "{s}"),
    ("DEL", "{m}"),
    ("UNLINK", "{m}"),
    ("WAIT", "0", "1"),
    ("SCAN", "0", "COUNT", "1"),
)
#: For boards whose grants go to a stream; {x} is the stream, to which nothing is added.
STREAM_FORMS: tuple[tuple[str, ...], ...] = (
    ("XADD", "{x}", "NOMKSTREAM", "*", "f", "v"),
    ("XRANGE", "{x}", "-", "+", "COUNT", "1"),
    ("XREVRANGE", "{x}", "+", "-", "COUNT", "1"),
)
#: Asked for warnings alone: a user without it runs everything.
OPTIONAL = ("CONFIG", "GET", "maxmemory-policy")
_REFUSED = ("NOPERM", "ERR unknown command", "ERR unknown subcommand")


@dataclass(frozen=True, slots=True)
class Server:
    """One server. Memory in bytes, ``limit`` 0 where there is none; ``saves`` None where it does not tell."""

    address: str
    version: str
    role: str
    used: int
    limit: int
    policy: str | None
    appends: bool
    saves: bool | None
    saved: bool  #: the last snapshot and the last write of the log went well

    @property
    def number(self) -> tuple[int, ...]:
        """The version to be compared."""
        return tuple(int(part) for part in self.version.split(".")[:2] if part.isdigit())


def server(client: Redis) -> Server:
    """Return what the server says of itself. Raises UnavailableError or AccessError."""
    with translated(client, {}):
        info: dict[str, Any] = {}
        for section in ("server", "memory", "persistence", "replication"):
            info |= client.info(section)
    return Server(
        address=address(client),
        version=str(info.get("redis_version", "")),
        role=str(info.get("role", "")),
        used=int(info.get("used_memory", 0)),
        limit=int(info.get("maxmemory", 0)),
        policy=info.get("maxmemory_policy"),
        appends=bool(info.get("aof_enabled")),
        saves=_saves(client),
        saved=info.get("rdb_last_bgsave_status") == "ok" and info.get("aof_last_write_status", "ok") == "ok",
    )


def latency(client: Redis, times: int = 20) -> float:
    """Return the median seconds of a PING over one connection."""
    with translated(client, {}):
        client.ping()
        taken = []
        for _ in range(times):
            begun = time.perf_counter()
            client.ping()
            taken.append(time.perf_counter() - begun)
    return sorted(taken)[times // 2]


def clock(client: Redis) -> datetime:
    """Return the server's clock, UTC."""
    with translated(client, {}):
        seconds, microseconds = client.time()
    return datetime.fromtimestamp(int(seconds) + int(microseconds) / 1e6, UTC)


def refusals(client: Redis, live_key: str, stream: str | None = None) -> list[str]:
    """Return the commands that this user may not send for the board of ``live_key``; none where nothing is missing.

    ``client`` is of the one server that serves the key. Where the server tells (ACL DRYRUN, Redis 7), the real keys are
    asked about, nothing is executed. Else the forms are sent, to canary keys beside the live key, removed afterwards.
    """
    zset, string, table, missing = canary_keys(live_key)
    canaries = {"z": zset, "s": string, "h": table, "m": missing, "x": stream or ""}
    forms = [*FORMS, *(STREAM_FORMS if stream else ())]
    with translated(client, {}), Redis(connection_pool=client.connection_pool, single_connection_client=True) as pinned:
        if (user := _user_of_a_dry_run(pinned)) is not None:
            return _names(form for form in forms if not _dry(pinned, user, _filled(form, {**canaries, "z": live_key})))
        try:
            return _names(form for form in forms if not _sent(pinned, _filled(form, canaries)))
        finally:
            for key in (zset, string, table):
                _sent(pinned, ["UNLINK", key])


def _filled(form: Sequence[str], keys: dict[str, str]) -> list[str]:
    return [keys[part[1]] if len(part) == 3 and part[0] == "{" and part[2] == "}" else part for part in form]


def _names(forms: Iterable[Sequence[str]]) -> list[str]:
    told = (f"{form[0]}|{form[1]}" if form[0] == "CLIENT" else form[0] for form in forms)
    return list(dict.fromkeys(told))


def _user_of_a_dry_run(client: Redis) -> str | None:
    try:
        user = send(client, "ACL", "WHOAMI")
        send(client, "ACL", "DRYRUN", user, "PING")
    except driver.ResponseError:
        return None
    return str(user.decode())


def _dry(client: Redis, user: str, form: Sequence[str]) -> bool:
    reply = send(client, "ACL", "DRYRUN", user, *form)
    return bool(reply == b"OK" or reply is True)


def _sent(client: Redis, form: Sequence[str]) -> bool:
    """Return whether the server let the command through; that it then failed, as without its key, is fine."""
    try:
        send(client, *form)
    except driver.ExecAbortError:
        return False
    except driver.NoPermissionError:
        return False
    except driver.ResponseError as error:
        text = str(error)
        return not (text.startswith(_REFUSED) or "permissions" in text or "ACL failure" in text)
    return True


def touch(client: Redis, key: str) -> None:
    """Write to the canary ``key``, a sorted set that goes by itself."""
    with translated(client, {key: "zset"}), client.pipeline(transaction=True) as pipeline:
        pipeline.zadd(key, {"canary": time.time_ns() % 1_000_000_007})
        pipeline.expire(key, LIFE)
        pipeline.execute()


def forget(client: Redis, key: str) -> None:
    """Remove the canary."""
    with translated(client, {}):
        client.unlink(key)


def _saves(client: Redis) -> bool | None:
    try:
        with translated(client, {}):
            return bool(client.config_get("save").get("save"))
    except AccessError:
        return None
