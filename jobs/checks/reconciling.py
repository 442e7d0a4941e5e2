"""A season's standings against its ledger: which ledger that is, by which rule, and what the two differ in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from archive.fetch import fetch_part, open_part
from archive.layout import staging_dir
from archive.objects import Store
from archive.seal import StandingFacts
from config.texts import read_secret
from config.urls import check_postgres
from jobs.checks.workspace import workspace
from jobs.wiring import Outside
from leaderboard.codec import Codec, codec_for, to_microseconds
from leaderboard.errors import ConfigError, InputError
from leaderboard.season import Season
from leaderboard.ties import UNIT_MICROSECONDS
from leaderboard.truth import OutsideLedger
from ledger import outside as outside_ledger
from ledger import totals
from ledger.bucketed import Bucketed
from ledger.outside import Source
from ledger.watchdog import silence
from live import scores
from reconcile.buckets import compared_by_buckets
from reconcile.compare import Compared, RepeatedPlayersError, Rule, Unit, compared
from reconcile.latest import latest

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


@contextmanager
def live_standings(outside: Outside, season: Season) -> Iterator[Callable[[], Iterable[pa.RecordBatch]]]:
    """Read the live board while it is written to, and yield what gives each player as last seen, as often as asked.

    Raises InputError for a score that none of the board's players can have.
    """
    with (
        workspace(outside.settings.home, f"{season.name}/live") as folder,
        latest(_live_rows(outside, season), rule_of(season, folder)) as rows,
    ):
        yield rows


def _live_rows(outside: Outside, season: Season) -> Iterator[pa.RecordBatch]:
    codec = codec_for(season.board, season.bounds)
    for key in season.standing_keys:
        for pairs in scores.every(outside.redis, key, _ROWS):
            found = np.array([score for _, score in pairs], dtype=np.float64)
            try:
                points, times = codec.decode_array(found)
            except InputError:
                raise _unread(codec, key, pairs) from None
            reached_at = pa.nulls(len(pairs), pa.int64()) if times is None else pa.array(times)
            columns = [pa.array([member for member, _ in pairs], pa.binary()), pa.array(points), reached_at]
            yield pa.record_batch(columns, names=list(COLUMNS))


def _unread(codec: Codec, key: str, pairs: Sequence[tuple[bytes, float]]) -> InputError:
    """Return the error of the first of the scores that the board's codec does not read."""
    for member, score in pairs:
        try:
            codec.decode(score)
        except InputError as error:
            return InputError(
                f"{member.decode(errors='backslashreplace')!r} in {key} has a score that is none of the board's: "
                f"{error.message}",
                detail=error.detail,
                hint=error.hint or "correct the score where it is written",
            )
    raise AssertionError("the scores can be read one by one and not together")


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
