"""The analysts' views in SQL: seasons, standings, grants and grants_net, over sealed parts and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from archive.catalog import Catalog, Sealed
from archive.layout import Kind, correction_number
from archive.objects import Store
from archive.seal import StandingFacts
from archive.sealed_grants import GrantFacts
from leaderboard.errors import ArchiveMismatchError

_STANDINGS = ("position", "rank", "player_id", "points", "reached_at", "score")
_GRANTS = ("grant_id", "player_id", "rule", "item", "amount", "position", "rank")
_CORRECTIONS = ("correction", "grant_id", "corrects", *_GRANTS[1:])
_TYPES = {
    "board": "varchar", "season": "varchar", "position": "bigint", "rank": "bigint", "player_id": "varchar",
    "points": "bigint", "reached_at": "timestamptz", "score": "double", "grant_id": "varchar", "rule": "varchar",
    "item": "varchar", "amount": "bigint", "correction": "bigint", "corrects": "varchar",
}  # fmt: skip  # a row a line
_SEASONS = {
    "board": "varchar", "season": "varchar", "starts_at": "timestamptz", "ends_at": "timestamptz",
    "sealed_at": "timestamptz", "players": "bigint", "points_sum": "hugeint", "digest": "varchar", "seal": "varchar",
    "number": "bigint", "grants": "bigint", "software": "varchar", "published": "boolean",
}  # fmt: skip  # a row a line


#: Rows that come to nothing are left out: what was taken back entirely was not got.
_NET = """select board, season, player_id, item, sum(amount)::hugeint as amount
  from (select board, season, player_id, item, amount from grants
        union all select board, season, player_id, item, amount from corrections)
  group by all having sum(amount) <> 0"""


@dataclass(frozen=True, slots=True)
class Group:
    """Sealed parts whose files have the same columns, so that one reader takes them all."""

    kind: Kind
    binary: bool
    fraction: bool
    seals: tuple[Sealed, ...]

    @property
    def name(self) -> str:
        """A name for the group that can stand in SQL."""
        return f"{self.kind}_{'binary' if self.binary else 'text'}_{'fraction' if self.fraction else 'integer'}"


def groups(catalog: Catalog, missing: dict[str, str]) -> list[Group]:
    """Return the seals of ``catalog``, but for those ``missing`` (by path), as few groups as their columns allow."""
    found: dict[tuple[Kind, bool, bool], list[Sealed]] = {}
    for one in catalog.seals:
        if one.seal.path not in missing:
            board = one.seal.board
            fraction = one.seal.kind == "standings" and board.get("points") == "fraction"
            place = "corrections" if correction_number(one.seal.kind) else one.seal.kind
            found.setdefault((place, board.get("member") == "binary", fraction), []).append(one)
    return [Group(*key, tuple(seals)) for key, seals in sorted(found.items())]


def read_parquet(store: Store) -> Callable[[Group], str]:
    """Return what makes a group's relation for the duckdb shell: its files, each by name."""

    def relation(group: Group) -> str:
        paths = [f"{seal.place}/{part.name}" for seal in (one.seal for one in group.seals) for part in seal.facts.parts]
        files = ",\n      ".join(_quoted(f"{_root(store)}/{path}") for path in paths)
        types = "'board': varchar, 'season': varchar" + (", 'n': bigint" if group.kind == "corrections" else "")
        return f"read_parquet([\n      {files}\n    ],\n    hive_partitioning = true, hive_types = {{{types}}})"

    return relation


def definitions(catalog: Catalog, missing: dict[str, str], relation: Callable[[Group], str]) -> list[str]:
    """Return the statements that create the views; ``relation`` gives what stands after ``from`` for a group.

    ``player_id`` is text, lower-case hex on boards with binary ids. ``points`` are whole numbers, and doubles as soon
    as one board of the archive has fractions (whole points stay exact: they are below 2^53). ``seasons`` names all
    seals; a season in ``missing`` has ``published`` false and no rows in the other views. ``corrections`` have signed
    amounts. ``grants_net`` is what each player has got of each item in all, corrections included.
    """
    made = groups(catalog, missing)
    return [
        _view("seasons", _seasons(catalog, missing)),
        _view("standings", _rows([group for group in made if group.kind == "standings"], _STANDINGS, relation)),
        _view("grants", _rows([group for group in made if group.kind == "grants"], _GRANTS, relation)),
        _view("corrections", _rows([group for group in made if group.kind == "corrections"], _CORRECTIONS, relation)),
        _view("grants_net", _NET),
    ]


def notes(catalog: Catalog, missing: dict[str, str]) -> list[str]:
    """Return what the views leave out, a line each."""
    unreadable = (f"left out, this seal cannot be read: {fault}" for fault in catalog.faults)
    absent = [f"left out, sealed but not in place (being copied, or damaged): {what}" for what in missing.values()]
    return [*unreadable, *absent]


def _view(name: str, query: str) -> str:
    return f"create or replace view {name} as\n  {query};"


def _rows(made: Sequence[Group], columns: Sequence[str], relation: Callable[[Group], str]) -> str:
    if not made:
        return _empty({name: _TYPES[name] for name in ("board", "season", *columns)})
    return "\n  union all\n  ".join(
        f"select board, season, {', '.join(_column(name, group) for name in columns)}\n"  # noqa: S608 - own words
        f"  from {relation(group)}"
        for group in made
    )


def _column(name: str, group: Group) -> str:
    if name == "correction":
        return "n as correction"
    return "lower(hex(player_id)) as player_id" if name == "player_id" and group.binary else name


def _seasons(catalog: Catalog, missing: dict[str, str]) -> str:
    granted = {
        (one.seal.board_name, one.seal.bounds.id): one
        for one in catalog.seals
        if isinstance(one.seal.facts, GrantFacts)
    }
    rows = []
    for one in catalog.seals:
        facts = one.seal.facts
        if isinstance(facts, StandingFacts):
            grants = granted.get((one.seal.board_name, one.seal.bounds.id))
            rows.append(
                _season(one, facts, grants, {one.seal.path, grants.seal.path if grants else ""} & missing.keys())
            )
    if not rows:
        return _empty(_SEASONS)
    typed = ", ".join(f"{name}::{kind} as {name}" for name, kind in _SEASONS.items())
    values = ",\n    ".join(rows)
    # Every value in it is a literal that _literal has quoted.
    return f"select {typed}\n  from (values\n    {values}\n  ) as sealed({', '.join(_SEASONS)})"  # noqa: S608 - own words


def _season(one: Sealed, facts: StandingFacts, grants: Sealed | None, missing: set[str]) -> str:
    seal = one.seal
    values: list[Any] = [
        *(seal.board_name, seal.bounds.id, seal.bounds.starts_at.isoformat(), seal.bounds.ends_at.isoformat()),
        *(seal.sealed_at.isoformat(), facts.rows, facts.points_sum, facts.digest, one.sha256, seal.chain.number),
        *(grants.seal.facts.rows if grants else None, seal.software, not missing),
    ]
    return f"({', '.join(_literal(value) for value in values)})"


def _empty(columns: dict[str, str]) -> str:
    return f"select {', '.join(f'null::{kind} as {name}' for name, kind in columns.items())} where false"


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    return _quoted(value) if isinstance(value, str) else str(value).lower()


def _quoted(text: str) -> str:
    if "\0" in text:
        raise ArchiveMismatchError(f"{text!r} cannot stand in SQL")
    return "'" + text.replace("'", "''") + "'"


def _root(store: Store) -> str:
    root = getattr(store, "root", None)
    return store.url if root is None else str(root)
