"""Collects the outside facts that a reward table asks for, once, so that what was used can be sealed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from archive.facts import encode_facts
from archive.fetch import read_parts_checked
from archive.sealed_grants import FactFile
from config.csv_files import csv_rows
from jobs.payout.sealed import committed
from jobs.wiring import Outside
from leaderboard.errors import ConfigError, InputError
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import facts as ledger_facts
from ledger import seals, seasons, totals
from ledger.facts import Rows
from rewards.facts import Facts, cast, column, needed, schema
from rewards.rule import span
from rewards.sources import Exclusion, Source
from rewards.table import RewardTable

_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Collected:
    """The facts, and the files in which they are sealed, each with its bytes."""

    facts: Facts = field(default_factory=Facts)
    files: tuple[tuple[FactFile, bytes], ...] = ()

    @property
    def named(self) -> tuple[FactFile, ...]:
        """The files as a seal names them."""
        return tuple(file for file, _ in self.files)


def collect(outside: Outside, season: Season, table: RewardTable, folder: Path, name: str = "") -> Collected:
    """Return every fact that ``table`` needs, as it is now; files of facts are looked up in ``folder``.

    ``name`` is the table's in errors. Raises InputError that names table and rule, or ConfigError, for facts that
    cannot be used, and what the servers raise.
    """
    collecting = _Collecting(outside, season, folder, name or "the reward table")
    tables, files = {}, []
    for kind in needed(table):
        found, told = getattr(collecting, kind)(table)
        tables[kind] = found
        files.append(encode_facts(kind, found, told))
    return Collected(Facts(tables), tuple(files))


@dataclass(frozen=True, slots=True)
class _Collecting:
    outside: Outside
    season: Season
    folder: Path
    name: str

    def excluded(self, table: RewardTable) -> tuple[pa.Table, str]:
        found = []
        for number, source in enumerate(table.exclude, 1):
            with self._asked_by(f"exclude {number}"):
                rows = _reasoned(source, self._rows(source, ("player_id",), ("reason",)))
                found.append(self._table("excluded", rows, source.told))
        whole = pa.concat_tables(found)
        kept = whole.group_by("player_id", use_threads=False).aggregate([("reason", "first"), ("source", "first")])
        return _as("excluded", kept, self._binary), "; ".join(source.told for source in table.exclude)

    def eligible(self, table: RewardTable) -> tuple[pa.Table, str]:
        assert table.eligible is not None
        with self._asked_by("eligible"):
            found = self._table("eligible", self._rows(table.eligible, ("player_id",)), table.eligible.told)
        kept = found.group_by("player_id", use_threads=False).aggregate([])
        return _as("eligible", kept, self._binary), table.eligible.told

    def matches(self, _: RewardTable) -> tuple[pa.Table, str]:
        if self.season.board.ledger != "own":
            raise ConfigError(
                f"the reward table of board {self.season.board.name} asks for min_matches",
                detail="matches are counted in Finale's own ledger, and the board has another",
                hint="list who is eligible with [eligible] sql, or take min_matches out",
            )
        with totals.matches(self.outside.database.url, self.season.key) as batches:
            found = [cast("matches", batch, binary=self._binary) for batch in batches]
        return pa.Table.from_batches(found, schema("matches", binary=self._binary)), "the ledger"

    def leagues(self, table: RewardTable) -> tuple[pa.Table, str]:
        assert table.leagues is not None
        with self._asked_by("leagues"):
            whole = self._table("leagues", self._rows(table.leagues, ("player_id", "league")), table.leagues.told)
        kept = whole.group_by("player_id", use_threads=False).aggregate(
            [("league", "first"), ("league", "count_distinct")]
        )
        if (several := kept.filter(pc.greater(kept["league_count_distinct"], 1))).num_rows:
            raise InputError(
                f"{several.num_rows:,} players are in more than one league: {several['player_id'][0].as_py()!r}",
                detail=table.leagues.told,
                hint="give each player one league",
            )
        return _as("leagues", kept.drop_columns(["league_count_distinct"]), self._binary), table.leagues.told

    def previous(self, table: RewardTable) -> tuple[pa.Table, str]:
        before = previous_season(self.outside, self.season)
        if before is None:
            return schema("previous", binary=self._binary).empty_table(), "there is no sealed season before"
        ends = [span(rule.previous)[1] for rule in table.rule if rule.previous is not None]
        last = None if None in ends else max(end for end in ends if end is not None)
        seal, kept = committed(self.outside, before, "standings"), []
        for batch in read_parts_checked(self.outside.store, seal):
            if last is not None and batch.num_rows and batch.column("rank")[0].as_py() > last:
                break
            near = batch if last is None else batch.filter(pc.less_equal(batch.column("rank"), last))
            kept.append(near.select(["player_id", "rank"]))
        wanted = schema("previous", binary=self._binary)
        row = seals.find(self.outside.database, before.key, "standings")
        told = f"standings of {before.id}, seal {row.sha256 if row else ''}"
        return pa.Table.from_batches([batch.cast(wanted) for batch in kept], wanted), told

    @contextmanager
    def _asked_by(self, rule: str) -> Iterator[None]:
        """Name the rule of the table in what is wrong with the facts that it asks for."""
        try:
            yield
        except InputError as error:
            message = f"{rule} of {self.name}: {error.message}"
            raise InputError(message, detail=error.detail, hint=error.hint) from error

    @property
    def _binary(self) -> bool:
        return self.season.board.member == "binary"

    def _table(self, kind: str, rows: Rows, told: str = "") -> pa.Table:
        wanted = schema(kind, binary=self._binary)
        blocks = []
        with closing(rows):
            for block in rows:
                columns = list(zip(*block, strict=True)) or [() for _ in wanted]
                arrays = []
                for name, values in zip(wanted.names, columns, strict=True):
                    if any(value is None for value in values):
                        raise InputError(
                            f"the fact {kind} has a player without {name}", detail=told, hint="give each player a value"
                        )
                    arrays.append(column(kind, name, values, binary=self._binary, told=told))
                blocks.append(pa.record_batch(arrays, schema=wanted))
        return pa.Table.from_batches(blocks, wanted)

    def _rows(self, source: Source, columns: Sequence[str], optional: Sequence[str] = ()) -> Rows:
        url = self.outside.database.url
        if source.file is not None:
            return _file(self.folder / source.file, columns, optional, binary=self._binary)
        if source.table is not None:
            return ledger_facts.listed(url, source.table, columns, optional)
        assert source.sql is not None
        params = {
            "board": self.season.board.name,
            "season": self.season.id,
            "starts_at": self.season.bounds.starts_at,
            "ends_at": self.season.bounds.ends_at,
        }
        return ledger_facts.queried(url, source.sql, params, columns, optional)


def _reasoned(source: Exclusion, rows: Rows) -> Rows:
    """Yield ids with their reasons, and where they are from."""
    with closing(rows):
        for block in rows:
            yield [(player, reason or source.reason, source.told) for player, reason in block]


def _as(kind: str, found: pa.Table, binary: bool) -> pa.Table:
    """Return an aggregated table with the columns of its kind."""
    wanted = schema(kind, binary=binary)
    return pa.table([found.column(at).cast(wanted.field(at).type) for at in range(len(wanted))], schema=wanted)


def previous_season(outside: Outside, season: Season) -> Season | None:
    """Return the last season of the board that is sealed and ended before this one began; None if there is none."""
    before = [
        one
        for one in seasons.of_board(outside.database, season.board.name)
        if one.bounds.ends_at <= season.bounds.starts_at and reached(one.state, State.SEALED)
    ]
    return max(before, key=lambda one: one.bounds.ends_at, default=None)


def _file(path: Path, columns: Sequence[str], optional: Sequence[str], *, binary: bool) -> Rows:
    """Yield the columns of a CSV file with a header; ids of binary boards are written in hexadecimal."""
    block: list[tuple[Any, ...]] = []
    for line, row in csv_rows(path, columns, optional, "the path in a reward table is from that table's own folder"):
        given = [row.get(name) for name in (*columns, *optional)]
        block.append((_id(str(given[0]), path, line, binary=binary), *given[1:]))
        if len(block) >= _AT_ONCE:
            yield block
            block = []
    if block:
        yield block


def _id(text: str, path: Path, line: int, *, binary: bool) -> bytes:
    if not binary:
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InputError(
            f"{path}, line {line}: {text!r} is no id in hexadecimal", hint="ids of binary boards are written in hex"
        ) from None
