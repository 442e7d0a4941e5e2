"""A season's standings against its ledger: which ledger that is, by which rule, and what the two differ in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from archive.fetch import fetch_part, open_part
from archive.layout import staging_dir
from archive.objects import Store
from archive.seal import StandingFacts
from config.texts import read_secret
from config.urls import check_postgres
from jobs.checks.workspace import workspace
from jobs.wiring import Outside
from leaderboard.codec import to_microseconds
from leaderboard.errors import ConfigError
from leaderboard.season import Season
from leaderboard.ties import UNIT_MICROSECONDS
from leaderboard.truth import OutsideLedger
from ledger import outside as outside_ledger
from ledger import totals
from ledger.bucketed import Bucketed
from ledger.outside import Source
from ledger.watchdog import silence
from live.board import LiveBoard
from reconcile.buckets import compared_by_buckets
from reconcile.compare import Compared, RepeatedPlayersError, Rule, Unit, compared

#: The columns of standings that are compared.
COLUMNS = ("player_id", "points", "reached_at")
_ROWS = 50_000


def staged_rows(store: Store, season: Season, facts: StandingFacts, columns: tuple[str, ...] | None = None) -> Any:
    """Yield the staged standings as record batches, each part read again and compared with its SHA-256."""
    folder = staging_dir(season.board.name, season.id, facts.attempt)
    for part in facts.parts:
        file = open_part(f"{folder}/{part.name}", part, fetch_part(store, folder, part))
        yield from file.iter_batches(columns=list(columns) if columns else None)


@contextmanager
def compared_with_ledger(
    outside: Outside, season: Season, standings: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[Compared]:
    """Compare ``standings``, which give batches of at least ``COLUMNS``, with the season's ledger, every player.

    Raises OutsideLedgerError for SQL of the user's that gives no ledger, and what reading either side raises.
    """
    by_buckets = season.board.reconcile.compare == "buckets"
    with workspace(outside.settings.home, season.name) as folder, ExitStack() as stack:
        rule = rule_of(season, folder)
        try:
            if by_buckets:
                ledger = stack.enter_context(_in_buckets(outside, season, rule.unit))
                found = stack.enter_context(compared_by_buckets(standings, ledger, rule))
            else:
                reader = stack.enter_context(ledger_totals(outside, season))
                found = stack.enter_context(compared(standings(), reader, rule))
        except RepeatedPlayersError as error:
            if isinstance(season.board.ledger, OutsideLedger):
                raise outside_ledger.repeated(source_of(outside, season)) from error
            raise
        yield found


def _in_buckets(outside: Outside, season: Season, unit: Unit | None) -> AbstractContextManager[Bucketed]:
    of = None if unit is None else (unit.epoch, unit.size)
    if isinstance(season.board.ledger, OutsideLedger):
        return outside_ledger.in_buckets(source_of(outside, season), of)
    return totals.in_buckets(outside.database.url, season.key, of, _silence(outside))


def _silence(outside: Outside) -> float:
    """Return after how many seconds without an answer the ledger is given up."""
    return silence(outside.runner.statement_timeout.total_seconds())


def rule_of(season: Season, folder: Path | None = None) -> Rule:
    """Return by which rule the season's rows are compared."""
    return Rule(unit_of(season), season.board.reconcile.tolerance, folder)


def unit_of(season: Season) -> Unit | None:
    """Return how the season's times are floored; None where scores know no time."""
    if not season.board.packed:
        return None
    return Unit(to_microseconds(season.bounds.starts_at), UNIT_MICROSECONDS[season.board.ties.unit])


@contextmanager
def ledger_totals(outside: Outside, season: Season) -> Iterator[Any]:
    """Yield the season's totals as a reader of record batches, from Finale's ledger or the user's."""
    if isinstance(season.board.ledger, OutsideLedger):
        with outside_ledger.reader(source_of(outside, season)) as theirs:
            yield theirs
    else:
        with totals.reader(outside.database.url, season.key, _silence(outside)) as own:
            yield own


def live_rows(outside: Outside, season: Season) -> Iterator[pa.RecordBatch]:
    """Yield the live board as it is now, page by page: a player who moves meanwhile is told as last seen."""
    live = LiveBoard.of(outside.redis, season)
    rows = iter({row.player_id: row for row in live.top(live.count())}.values())
    while chunk := list(islice(rows, _ROWS)):
        times = [None if row.reached_at is None else to_microseconds(row.reached_at) for row in chunk]
        yield pa.record_batch(
            [
                pa.array([row.player_id for row in chunk], pa.binary()),
                pa.array([int(row.points) for row in chunk], pa.int64()),
                pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            ],
            names=list(COLUMNS),
        )


def players_in_ledger(outside: Outside, season: Season) -> int | None:
    """Return how many players the season's ledger has; None where the board declares none."""
    if isinstance(season.board.ledger, OutsideLedger):
        return outside_ledger.players(source_of(outside, season))
    return totals.summed(outside.database, season.key).players if season.board.ledger == "own" else None


def source_of(outside: Outside, season: Season) -> Source:
    """Return where the totals of a season with a ledger of the user's are. Raises ConfigError for a URL that is not."""
    ledger = season.board.ledger
    assert isinstance(ledger, OutsideLedger)
    timeout = outside.runner.statement_timeout.total_seconds()
    url = ledger_url(outside.environ, season.board.name, ledger, outside.database.url)
    return Source(url, ledger, season.board, season.bounds, timeout)


def ledger_url(environ: Mapping[str, str], board: str, ledger: OutsideLedger, own: str) -> str:
    """Return where a board's own ledger is: ``own``, Finale's, unless it says so. Raises ConfigError."""
    if ledger.url_env is None:
        return ledger.url or own
    name, place = ledger.url_env, f"board.{board}.ledger.url_env"
    value = environ.get(name, "")
    if not value and (file := environ.get(f"{name}_FILE")):
        value = read_secret(f"{place}: {name}_FILE", file)
    if not value:
        raise ConfigError(
            f"{place} = {name!r}, and no such variable is set",
            hint=f"set {name}, or {name}_FILE to a file that holds the URL of that ledger's database",
        )
    try:
        return check_postgres(value)
    except ValueError as error:
        raise ConfigError(f"{place}: {name} {error}") from None
