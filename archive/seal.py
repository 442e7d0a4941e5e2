"""The seal: the manifest of a season's standings, grants or correction, written last, never changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from archive.layout import (
    Kind,
    check_attempt,
    correction_kind,
    correction_number,
    published_dir,
    seal_path,
    staging_dir,
)
from archive.parts import FORMAT, Part
from archive.sealed_corrections import OF_CORRECTIONS, CorrectionFacts
from archive.sealed_grants import OF_GRANTS, GrantFacts
from archive.sealed_values import Nonsense, agree, parts_of, score_of, sha256_text
from leaderboard.errors import ArchiveMismatchError
from leaderboard.names import check_name
from leaderboard.season import Bounds

_COMMON = frozenset(("attempt", "board", "chain", "format", "kind", "parts", "rows", "sealed_at", "season", "software"))
_OF_STANDINGS = frozenset(
    ("accepted_drift", "digest", "first_score", "keys", "last_score", "points_sum", "reconcile", "repaired")
)


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """One live key as it was read: its name, members and digest."""

    key: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class StandingFacts:
    """What a snapshot found. ``points_sum`` is exact, and None on fraction boards, where a sum depends on the order.

    ``first_score`` and ``last_score`` are those of the first and last position; None without rows.
    """

    attempt: str
    rows: int
    digest: str
    keys: tuple[KeyFacts, ...]
    points_sum: int | None
    first_score: float | None
    last_score: float | None
    parts: tuple[Part, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values; scores survive bit for bit, but -0 is 0."""
        return {
            "attempt": self.attempt,
            "rows": self.rows,
            "digest": self.digest,
            "keys": [{"key": key.key, "rows": key.rows, "digest": key.digest} for key in self.keys],
            "points_sum": self.points_sum,
            "first_score": None if self.first_score is None else self.first_score + 0.0,
            "last_score": None if self.last_score is None else self.last_score + 0.0,
            "parts": [part.to_json() for part in self.parts],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StandingFacts:
        """Return the facts that ``to_json`` gave; raise ArchiveMismatchError for anything else."""
        with Nonsense("standings"):
            facts = cls(
                attempt=value["attempt"],
                rows=value["rows"],
                digest=sha256_text(value["digest"]),
                keys=tuple(KeyFacts(key["key"], key["rows"], sha256_text(key["digest"])) for key in value["keys"]),
                points_sum=value["points_sum"],
                first_score=score_of(value["first_score"]),
                last_score=score_of(value["last_score"]),
                parts=parts_of(value["parts"], value["rows"]),
            )
            check_attempt(facts.attempt)
            agree(all(isinstance(key.key, str) and type(key.rows) is int for key in facts.keys), "a key")
            agree(sum(key.rows for key in facts.keys) == facts.rows, "the keys' rows are not the season's")
            agree(facts.points_sum is None or type(facts.points_sum) is int, "the sum of points is no whole number")
            agree((facts.first_score is None) == (facts.rows == 0), "first score")
            agree((facts.last_score is None) == (facts.rows == 0), "last score")
            return facts


@dataclass(frozen=True, slots=True)
class Chain:
    """A seal's place among its board's: counted from 1, with the SHA-256 of the seal before."""

    number: int
    previous: str | None


@dataclass(frozen=True, slots=True)
class Seal:
    """Everything that is sealed. ``facts`` tell standings, grants and corrections apart.

    ``reconcile``, ``repaired`` and ``accepted_drift`` (None: nothing of the kind) are plain JSON values, as the steps
    that decided them wrote them down; grants have none.
    """

    board: Mapping[str, Any]  #: the board's definition
    bounds: Bounds
    facts: StandingFacts | GrantFacts | CorrectionFacts
    chain: Chain
    software: str
    sealed_at: datetime
    reconcile: Mapping[str, Any] | None = None
    repaired: Any = None
    accepted_drift: Any = None

    @property
    def kind(self) -> Kind:
        if isinstance(self.facts, CorrectionFacts):
            return correction_kind(self.facts.number)
        return "standings" if isinstance(self.facts, StandingFacts) else "grants"

    @property
    def board_name(self) -> str:
        return str(self.board["name"])

    @property
    def name(self) -> str:
        """``kind of board/season``, as messages name it."""
        return f"{self.kind} of {self.board_name}/{self.bounds.id}"

    @property
    def path(self) -> str:
        """Where the seal itself lies."""
        return seal_path(self.board_name, self.bounds.id, self.kind)

    @property
    def place(self) -> str:
        """The folder of the published parts."""
        return published_dir(self.board_name, self.bounds.id, self.kind)

    @property
    def staging(self) -> str:
        """The folder of the staged parts that were sealed."""
        return staging_dir(self.board_name, self.bounds.id, self.facts.attempt)

    @classmethod
    def parse(cls, data: bytes) -> Seal:
        """Return the seal in ``data``; raise ArchiveMismatchError if it is none, or of a format not known here."""
        try:
            value = json.loads(data)
        except ValueError:
            raise ArchiveMismatchError("this is no seal: it is not JSON") from None
        if not isinstance(value, dict) or "kind" not in value or "format" not in value:
            raise ArchiveMismatchError("this is no seal: kind and format are missing")
        if value["format"] != FORMAT:
            raise ArchiveMismatchError(
                f"the seal has format {value['format']!r}, known here is {FORMAT}", hint="use a newer Finale"
            )
        with Nonsense("seal"):
            return _parsed(value)


def build(seal: Seal) -> bytes:
    """Return the seal's exact bytes: JSON, UTF-8, sorted keys, a line break at the end.

    Raises ArchiveMismatchError if they would not be read back as the same seal.
    """
    value = {
        **seal.facts.to_json(),
        "format": FORMAT,
        "kind": seal.kind,
        "board": dict(seal.board),
        "season": {
            "id": seal.bounds.id,
            "starts_at": _instant(seal.bounds.starts_at),
            "ends_at": _instant(seal.bounds.ends_at),
        },
        "chain": {"number": seal.chain.number, "previous": seal.chain.previous},
        "software": seal.software,
        "sealed_at": _instant(seal.sealed_at),
    }
    if seal.kind == "standings":
        value |= {
            "reconcile": seal.reconcile,
            "repaired": seal.repaired,
            "accepted_drift": seal.accepted_drift,
        }
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    data = f"{text}\n".encode()
    Seal.parse(data)
    return data


def sha256(data: bytes) -> str:
    """Return the hash by which the next seal of the board, and the grants, name the seal ``data``."""
    return hashlib.sha256(data).hexdigest()


def same_content(one: Seal, other: Seal) -> list[str]:
    """Return how two seals of a season differ in what they seal, a line a fact; empty if they seal the same.

    Compared are kind, board, bounds, rows, digest (of grants: standings, table and sums) and parts; not times,
    software, attempt, chain, or how drift was settled.
    """
    first, second = _content(one), _content(other)
    return [
        f"{name}: {_short(first.get(name))} and {_short(second.get(name))}"
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    ]


def _content(seal: Seal) -> dict[str, Any]:
    content: dict[str, Any] = {
        "kind": seal.kind,
        "board": seal.board_name,
        "season": seal.bounds.id,
        "starts_at": _instant(seal.bounds.starts_at),
        "ends_at": _instant(seal.bounds.ends_at),
        "rows": seal.facts.rows,
        "number of parts": len(seal.facts.parts),
    }
    content |= {part.name: part.to_json() for part in seal.facts.parts}
    if isinstance(seal.facts, StandingFacts):
        return content | {"digest": seal.facts.digest}
    facts = seal.facts.to_json()
    return content | {name: facts[name] for name in (OF_GRANTS if seal.kind == "grants" else OF_CORRECTIONS)}


def _by_kind(kind: Any) -> tuple[Callable[[Mapping[str, Any]], Any], frozenset[str]]:
    """Return what reads the facts of a kind of seal, and the names of their fields."""
    if kind == "standings":
        return StandingFacts.from_json, _OF_STANDINGS
    if kind == "grants":
        return GrantFacts.from_json, OF_GRANTS
    agree(isinstance(kind, str) and correction_number(kind) is not None, f"kind {kind!r}")
    return CorrectionFacts.from_json, OF_CORRECTIONS


def _parsed(value: dict[str, Any]) -> Seal:
    read, fields = _by_kind(value["kind"])
    expected = _COMMON | fields
    agree(value.keys() == expected, f"fields {sorted(value.keys() ^ expected)}")
    season, chain = value["season"], Chain(**value["chain"])
    check_name(value["board"]["name"], "board")
    agree(type(chain.number) is int and chain.number >= 1, "chain number")
    agree((chain.previous is None) == (chain.number == 1), "chain: only the first seal has none before it")
    if chain.previous is not None:
        sha256_text(chain.previous)
    return Seal(
        board=value["board"],
        bounds=Bounds(_read_instant(season["starts_at"]), _read_instant(season["ends_at"]), season["id"]),
        facts=read(value),
        chain=chain,
        software=str(value["software"]),
        sealed_at=_read_instant(value["sealed_at"]),
        reconcile=value.get("reconcile"),
        repaired=value.get("repaired"),
        accepted_drift=value.get("accepted_drift"),
    )


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat()


def _read_instant(value: str) -> datetime:
    instant = datetime.fromisoformat(value)
    agree(instant.utcoffset() is not None, f"{value} has no time zone")
    return instant.astimezone(UTC)


def _short(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, sort_keys=True)
