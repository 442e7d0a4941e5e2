"""The match results of a cleaned season, in sealed Parquet: what ``finale ledger prune`` keeps before it removes them.

Beside the chain of the board's seals, which vouches for what was paid: this seal names the standings that the results
led to. The rows are the ledger's, in one order, and so are the bytes: what was broken off is written again the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from archive.each_seal import read_each
from archive.faults import Fault, NotAsSealedError, told
from archive.fetch import fetch_part, open_part, parts_faults
from archive.layout import parse_results, seals_dir
from archive.objects import ObjectExistsError, ObjectMissingError, Store, settle
from archive.parts import FORMAT, Part, PartWriter
from archive.seal import sha256
from leaderboard.errors import ArchiveMismatchError, OutcomeUnknownError
from leaderboard.names import check_name

_FIELDS = frozenset(
    ("board", "format", "kind", "parts", "rows", "sealed_at", "season", "software", "source", "standings_seal")
)
Batches = Iterable[Any]


def results_schema(binary: bool) -> Any:
    """Return the Arrow schema of results; ``binary``: player ids are bytes, not text."""
    return pa.schema(
        [
            pa.field("match_id", pa.string(), nullable=False),
            pa.field("player_id", pa.binary() if binary else pa.string(), nullable=False),
            pa.field("points", pa.int64(), nullable=False),
            pa.field("played_at", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("recorded_at", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("state", pa.string(), nullable=False),
            pa.field("reason", pa.string(), nullable=True),
            pa.field("attributes", pa.string(), nullable=True),
        ]
    )


@dataclass(frozen=True, slots=True)
class ResultsSeal:
    """What was sealed of a season's results. ``standings_seal`` is the SHA-256 of the seal of its standings."""

    board: str
    season: str
    source: str
    rows: int
    parts: tuple[Part, ...]
    standings_seal: str
    software: str
    sealed_at: datetime

    @property
    def name(self) -> str:
        """What is sealed, in words."""
        return f"results of {self.board}/{self.season}"

    @property
    def path(self) -> str:
        """Where the seal lies."""
        return seal_path(self.board, self.season)

    @property
    def place(self) -> str:
        """The folder of the parts."""
        return results_dir(self.board, self.season)

    def to_bytes(self) -> bytes:
        """Return the exact bytes, in the form that all seals have."""
        value = {
            "format": FORMAT,
            "kind": "results",
            "board": self.board,
            "season": self.season,
            "source": self.source,
            "rows": self.rows,
            "parts": [part.to_json() for part in self.parts],
            "standings_seal": self.standings_seal,
            "software": self.software,
            "sealed_at": self.sealed_at.astimezone(UTC).isoformat(),
        }
        return f"{json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False)}\n".encode()

    def to_json(self) -> dict[str, Any]:
        """Return what a list shows of the seal, as plain JSON values and times; it has no number in the chain."""
        return {
            "board": self.board,
            "season": self.season,
            "kind": "results",
            "rows": self.rows,
            "parts": len(self.parts),
            "bytes": sum(part.size for part in self.parts),
            "sealed_at": self.sealed_at,
            "number": None,
            "sha256": sha256(self.to_bytes()),
            "path": self.path,
        }

    @classmethod
    def parse(cls, data: bytes) -> ResultsSeal:
        """Return the seal in ``data``; raise ArchiveMismatchError if it is none of results."""
        try:
            value = json.loads(data)
            if value["format"] != FORMAT or value.pop("kind") != "results" or value.keys() != _FIELDS - {"kind"}:
                raise ValueError("another format, kind, or other fields")
            del value["format"]
            parts = tuple(Part.from_json(part) for part in value.pop("parts"))
            if sum(part.rows for part in parts) != value["rows"]:
                raise ValueError("the parts' rows are not the season's")
            return cls(**value | {"sealed_at": datetime.fromisoformat(value["sealed_at"])}, parts=parts)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ArchiveMismatchError("this is no seal of results", detail=str(error)) from None


def seal_path(board: str, season: str) -> str:
    """Return the path of the seal of a season's results."""
    return f"{seals_dir(board)}/{check_name(season, 'season')}/results.json"


def results_dir(board: str, season: str) -> str:
    """Return the folder of the parts of a season's results."""
    return f"results/board={check_name(board, 'board')}/season={check_name(season, 'season')}"


def find(store: Store, board: str, season: str) -> ResultsSeal | None:
    """Return the seal of a season's results; None if there is none. Raises ArchiveMismatchError."""
    try:
        return ResultsSeal.parse(store.get(seal_path(board, season)))
    except ObjectMissingError:
        return None


def encoded(schema: Any, batches: Batches) -> Iterator[tuple[Part, bytes]]:
    """Yield the parts that ``batches`` make, each with its bytes: the same for the same rows."""
    writer = PartWriter(schema)
    for batch in batches:
        yield from writer.add(batch)
    yield from writer.finish()


def put_seal(store: Store, seal: ResultsSeal) -> ResultsSeal:
    """Put the seal if there is none, and return the one that stands."""
    try:
        store.put_new(seal.path, seal.to_bytes())
    except (ObjectExistsError, OutcomeUnknownError):
        found = find(store, seal.board, seal.season)
        if found is None:
            raise
        return found
    return seal


def put_parts(store: Store, seal: ResultsSeal, parts: Iterator[tuple[Part, bytes]]) -> None:
    """Put the parts where they belong, as far as they are not there; nothing is ever overwritten.

    Raises ArchiveMismatchError if ``parts`` are not those of the seal, or something else lies in their place.
    """
    for sealed in seal.parts:
        part, data = next(parts, (None, b""))
        if part != sealed:
            raise ArchiveMismatchError(
                f"the results of {seal.board}/{seal.season} in the ledger are not those that were sealed",
                detail=f"{seal.path} names {sealed.name} with SHA-256 {sealed.sha256[:12]}…, here it is "
                f"{part.sha256[:12] if part else 'missing'}",
                hint="nothing was removed; remove that seal if none of its parts is stored, then run the command again",
            )
        settle(store, f"{seal.place}/{sealed.name}", data)


def missing(store: Store, seal: ResultsSeal) -> bool:
    """Return whether a part of the seal is not in its place."""
    there = {stored.path for stored in store.list(seal.place)}
    return any(f"{seal.place}/{part.name}" not in there for part in seal.parts)


def read_back(store: Store, seal: ResultsSeal) -> Iterator[Any]:
    """Yield every sealed row as Arrow batches, each part compared with the seal first. Raises ArchiveMismatchError."""
    for part in seal.parts:
        file = open_part(f"{seal.place}/{part.name}", part, fetch_part(store, seal.place, part))
        yield from file.iter_batches(batch_size=10_000)


def every(store: Store, board: str | None = None, season: str | None = None) -> tuple[list[ResultsSeal], list[Fault]]:
    """Return the seals of results in the store, of one board or season if named, and what is wrong with others.

    Raises ConfigError for a ``board`` that no path can name.
    """
    stored = sorted(one.path for one in store.list("seals" if board is None else seals_dir(board)))
    places = {path: place for path in stored if (place := parse_results(path))}
    wanted = [path for path, place in places.items() if season in (None, place[1])]
    found = read_each(store, wanted, ResultsSeal.parse, "a seal of results")
    seals = [one[0] for one in found if not isinstance(one, Fault)]
    return seals, [one for one in found if isinstance(one, Fault)]


def incomplete(store: Store, seals: Iterable[ResultsSeal]) -> list[str]:
    """Return of which seals a part is missing or of another size, and which; nothing is read."""
    sizes = {stored.path: stored.size for stored in store.list("results")}
    absent = ((seal, [p.name for p in seal.parts if sizes.get(f"{seal.place}/{p.name}") != p.size]) for seal in seals)
    return [f"{seal.place} has not {', '.join(names)} as sealed" for seal, names in absent if names]


def verify(store: Store, seal: ResultsSeal) -> None:
    """Read every part again and compare it with the seal: bytes, rows, columns, and nothing else in the place.

    After a prune these are the only copy. Raises NotAsSealedError, which names every file at fault.
    """
    schemas = [results_schema(binary) for binary in (False, True)]

    def look(path: str, file: Any) -> list[Fault]:
        found = file.schema_arrow.remove_metadata()
        return [] if found in schemas else [Fault(path, "has other columns than results have", found=found.names)]

    if faults := parts_faults(store, seal.place, seal.parts, look):
        raise NotAsSealedError(
            f"{store.url}: the results of {seal.board}/{seal.season} are not what was sealed",
            faults=faults,
            detail=told(faults),
            hint="restore these files from a backup: the ledger has them no more",
        )


def unsealed(store: Store, board: str | None = None) -> list[Fault]:
    """Return what lies where results belong and has no seal, of all boards or one, a fault a season."""
    place = "results" if board is None else f"results/board={check_name(board, 'board')}"
    found: dict[tuple[str, str], list[str]] = {}
    for stored in store.list(place):
        if season := parse_results(stored.path):
            found.setdefault(season, []).append(stored.path)
    sealed = {parse_results(stored.path) for stored in store.list("seals" if board is None else seals_dir(board))}
    return [
        Fault(paths[0], f"and {len(paths) - 1:,} more: {seal_path(*season)} does not exist")
        if len(paths) > 1
        else Fault(paths[0], f"has no seal: {seal_path(*season)} does not exist")
        for season, paths in sorted(found.items())
        if season not in sealed
    ]
