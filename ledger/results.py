"""Taking match results: each counted once per source, match and player, totals kept in the same transaction.

Set-wise throughout: a batch is copied into a temporary table, judged there by a dozen statements and moved on; a single
result about which nothing is special takes one statement (``ledger.single``). The season follows from ``played_at`` and
the stored bounds; whether a result is late is decided by the season's freeze, read under a shared lock that the freeze
waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from psycopg import Rollback, errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard.board import Board
from leaderboard.errors import FinaleError, UnavailableError
from leaderboard.season import Season
from ledger import barrier, counting, first_seen, overflow, single, source_seasons
from ledger.database import Database
from ledger.result_files import Chunk, as_text, attributes_json
from ledger.sql import query

REMARKS = 1_000  #: lines told one by one; all are counted, and kept in the ledger
#: How far the clocks of those who play may be ahead of PostgreSQL's; results from later than that are refused.
AHEAD = timedelta(minutes=5)
_TRIES = 5
_FROZEN = "the season was frozen before it came"
_CLOSED = "the season was closed early, before it was played"


@dataclass(frozen=True, slots=True)
class Remark:
    """A line that did not simply count: ``kind`` is conflict, refused or late."""

    line: int
    kind: str
    reason: str


@dataclass(slots=True)
class Recorded:
    """What became of a batch. Of the new, ``uncounted`` satisfy no board's filter and ``late`` came after a freeze."""

    new: int = 0
    repeated: int = 0
    conflicting: int = 0
    refused: int = 0
    late: int = 0
    uncounted: int = 0
    remarks: list[Remark] = field(default_factory=list)
    seasons: set[int] = field(default_factory=set)
    created: set[str] = field(default_factory=set)  #: names of seasons that the ledger did not have before

    def add(self, other: Recorded) -> None:
        """Fold another batch into this one."""
        for name in ("new", "repeated", "conflicting", "refused", "late", "uncounted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.remarks = sorted([*self.remarks, *other.remarks], key=lambda remark: remark.line)[:REMARKS]
        self.seasons |= other.seasons
        self.created |= other.created


def record(
    database: Database, source: str, boards: Sequence[Board], chunk: Chunk, *, origin: str, who: str = "results"
) -> Recorded:
    """Record one chunk of results of ``source``, in one transaction, for every season that counts them.

    Returns how many were new, repeated, conflicting, refused and late. Seasons that the ledger does not have yet are
    created from the calendars of ``boards``. ``origin`` says where the chunk came from, for what is set aside.
    """
    if len(chunk.results) == chunk.rows == 1:
        counted = single.record(database, source, boards, chunk.results[0], AHEAD)
        if counted is not None:
            return Recorded(new=1, seasons=counted)
    number = counting.source_id(database, source)
    created: set[str] = set()
    for _ in range(_TRIES):
        now = database.now()
        instants = [result.played_at for result in chunk.results if result.played_at <= now + AHEAD]
        span, more = first_seen.prepare(database, source, boards, instants, now, who=who)
        created |= more
        with database.transaction():
            recorded = _Recording(database, source, number, boards, chunk, origin, now + AHEAD).run(span)
            if recorded is None:
                raise Rollback
            recorded.created = created
            return recorded
    raise UnavailableError("seasons kept being added while results were taken", hint="run the import again")


class _Recording:
    """The statements of one transaction, in order."""

    def __init__(
        self,
        database: Database,
        source: str,
        number: int,
        boards: Sequence[Board],
        chunk: Chunk,
        origin: str,
        until: datetime,
    ) -> None:
        self.database = database
        self.source = source
        self.number = number
        self.boards = boards
        self.chunk = chunk
        self.values = {"source_id": number, "origin": origin, "limit": REMARKS, "until": until}
        self.rules: list[counting.Rule] = []
        self.gaps: list[dict[str, object]] = []  #: after an early close: when whose results are late, until when
        self.new = 0
        self.known = False  #: whether the ledger has some of them, or one stands here twice

    def run(self, span: tuple[datetime, datetime] | None) -> Recorded | None:
        """Return what became of the results, played in ``span``; None if a season was added, to be tried again."""
        self._stage()
        barrier.enter(self.database, barrier.SOURCES, [self.number])
        if not self._add_rules(span):
            return None
        self._do("refuse_future")
        self._do("refuse_pruned")
        filters = [Jsonb(as_text(board.where)) for board in self.boards]
        self.database.rows("results.refuse_homeless", {"filters": filters, "gaps": Jsonb(self.gaps)})
        self._do("refuse_voided")
        self._count()
        counting.settle(self.database)
        return self._told()

    def _do(self, name: str) -> list[DictRow]:
        return self.database.rows(f"results.{name}", self.values)

    def _number(self, name: str) -> int:
        return int(self._do(name)[0]["count"])

    def _stage(self) -> None:
        self._do("staging")
        with self.database.cursor() as cursor, cursor.copy(query("results.copy")) as copy:
            for result in self.chunk.results:
                copy.write_row((*result[:5], attributes_json(result.attributes)))

    def _add_rules(self, span: tuple[datetime, datetime] | None) -> bool:
        """Say which seasons count, and whether they still do; return False if one of them is not fixed yet."""
        found = source_seasons.of_source(self.database, self.source, *span) if span else []
        if not all(fixed for _, fixed in found):
            return False
        closed = source_seasons.closed_early(self.database, self.source, *span) if span else []
        self.gaps = [_gap(season, until) for season, until in closed]
        self.rules = [counting.rule(season.key, season.board, season.bounds) for season, _ in found]
        counting.stage(self.database, self.rules)
        barrier.enter(self.database, barrier.SEASONS, [season.key for season, _ in found])
        # A statement of its own: one that also took the lock would read the state from before it waited.
        self._do("read_states")
        return True

    def _count(self) -> None:
        """Insert and count; where a total would leave what the board's scores can say, refuse the lines that do it."""
        while refused := self._try_to_count():
            self.database.rows("results.refuse_lines", {"lines": list(refused), "reasons": list(refused.values())})

    def _try_to_count(self) -> dict[int, str]:
        """Return the lines of players whose totals would not fit, each with why; nothing is done if there are any."""
        with self.database.transaction():
            eligible = self._insert()
            if self.new < eligible:
                self._do("compare_known")
            if self.gaps:
                values = {"source_id": self.number, "gaps": Jsonb(self.gaps)}
                self.database.rows("results.late_for_closed_early", values)
                self._do("counted_somewhere")
            self._do("late")
            beyond = counting.count(self.database, self.number, self.rules)
            refused = self._lines_of(beyond) if beyond else {}
            if refused:
                raise Rollback
        return refused

    def _insert(self) -> int:
        """Insert what was not refused, and return how many these were; those that the ledger has are not ``new``.

        Where none is known, as is usual, an insertion that does not look first takes a third less time.
        """
        results = self.chunk.results
        lines = [results[at].line for at in (0, len(results) // 2, -1)] if results else []
        [found] = self.database.rows("results.eligible", {**self.values, "looked_at": lines})
        self.known = self.known or found["known"]
        if not self.known:
            try:
                with self.database.transaction():
                    self.new = self._number("insert_new")
            except FinaleError as error:
                if not isinstance(error.__cause__, errors.UniqueViolation):
                    raise
                self.known = True
        if self.known:
            self.new = self._number("insert_unless_known")
        return int(found["count"])

    def _lines_of(self, beyond: list[DictRow]) -> dict[int, str]:
        lines = self.database.rows(
            "results.lines_of",
            {
                "seasons": [row["season_id"] for row in beyond],
                "players": [row["player_id"] for row in beyond],
                "numbers": list(range(len(beyond))),
            },
        )
        of_player: dict[int, list[DictRow]] = {}
        for row in lines:
            of_player.setdefault(row["number"], []).append(row)
        return {
            line: reason
            for number, rows in of_player.items()
            for line, reason in overflow.refused(beyond[number], rows).items()
        }

    def _set_aside(self) -> None:
        """Keep what was not taken, with unreadable rows, in one order: no two imports wait for each other."""
        bad = self.chunk.unreadable
        givens = [Jsonb({key: _storable(value) for key, value in row.given.items()}) for row in bad]
        values = {"reasons": [row.reason for row in bad], "lines": [row.line for row in bad], "givens": givens}
        self.database.rows("results.set_aside", {**self.values, **values})

    def _told(self) -> Recorded:
        """Return what became of the batch, after what was not taken is set aside."""
        outcome = self._do("outcome")[0]
        found = Recorded(
            new=self.new, late=outcome["late"], uncounted=outcome["uncounted"], seasons=set(outcome["seasons"])
        )
        if self.new < self.chunk.rows:
            self._tell_of_the_others(found)
        if found.late:
            found.remarks += [
                Remark(row["line"], "late", f"board {row['board']}: {_CLOSED if row['early'] else _FROZEN}")
                for row in self._do("late_remarks")
            ]
        found.remarks = sorted(found.remarks, key=lambda remark: remark.line)[:REMARKS]
        return found

    def _tell_of_the_others(self, found: Recorded) -> None:
        self._set_aside()
        counts = Counter({row["verdict"]: row["count"] for row in self._do("verdicts")})
        found.repeated, found.conflicting = counts["repeated"], counts["conflict"]
        found.refused = counts["refused"] + len(self.chunk.unreadable)
        found.remarks += [Remark(row["line"], row["verdict"], row["reason"]) for row in self._do("remarks")]
        found.remarks += [Remark(bad.line, "refused", bad.reason) for bad in self.chunk.unreadable]


def _gap(season: Season, until: datetime) -> dict[str, object]:
    """Return when results are late for a season that was closed early."""
    return {
        "season_id": season.key,
        "starts_at": season.bounds.ends_at.isoformat(),
        "ends_at": until.isoformat(),
        "wanted": as_text(season.board.where),
    }


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
