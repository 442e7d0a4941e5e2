"""A season's standings against its ledger: which ledger that is, by which rule, and what the two differ in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from archive.fetch import fetch_part, open_part, read_parts_checked
from archive.layout import staging_dir
from archive.objects import Store
from archive.seal import StandingFacts
from config.urls import check_postgres
from jobs.wiring import Outside
from jobs.workspace import workspace
from leaderboard.codec import to_microseconds
from leaderboard.errors import ConfigError
from leaderboard.season import Season
from leaderboard.ties import UNIT_MICROSECONDS
from leaderboard.truth import OutsideLedger
from ledger import outside as outside_ledger
from ledger import totals
from ledger.outside import Source
from reconcile.compare import Compared, RepeatedPlayersError, Rule, Unit, compared

#: The columns of standings that are compared.
COLUMNS = ("player_id", "points", "reached_at")


def staged_rows(store: Store, season: Season, facts: StandingFacts, columns: tuple[str, ...] | None = None) -> Any:
    """Yield the staged standings as record batches, each part read again and compared with its SHA-256."""
    folder = staging_dir(season.board.name, season.id, facts.attempt)
    for part in facts.parts:
        file = open_part(f"{folder}/{part.name}", part, fetch_part(store, folder, part))
        yield from file.iter_batches(columns=list(columns) if columns else None)


@contextmanager
def compared_with_ledger(outside: Outside, season: Season, standings: Any) -> Iterator[Compared]:
    """Compare ``standings``, batches of at least ``COLUMNS``, with the season's ledger, every player.

    Raises OutsideLedgerError for SQL of the user's that gives no ledger, and what reading either side raises.
    """
    with (
        workspace(outside.settings.home, season.name) as folder,
        ledger_totals(outside, season) as reader,
    ):
        try:
            with compared(standings, reader, rule_of(season, folder)) as found:
                yield found
        except RepeatedPlayersError as error:
            if isinstance(season.board.ledger, OutsideLedger):
                raise outside_ledger.repeated(source_of(outside, season)) from error
            raise


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
        with totals.reader(outside.database.url, season.key) as own:
            yield own


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
    return Source(_url(outside, season.board.name, ledger), ledger, season.board, season.bounds, timeout)


def _url(outside: Outside, board: str, ledger: OutsideLedger) -> str:
    if ledger.url_env is None:
        return ledger.url or outside.database.url
    name, place = ledger.url_env, f"board.{board}.ledger.url_env"
    value = outside.environ.get(name, "")
    if not value and (file := outside.environ.get(f"{name}_FILE")):
        try:
            value = Path(file).read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{place}: {name}_FILE = {file} cannot be read", detail=type(error).__name__) from None
    if not value:
        raise ConfigError(
            f"{place} = {name!r}, and no such variable is set",
            hint=f"set {name}, or {name}_FILE to a file that holds the URL of that ledger's database",
        )
    try:
        return check_postgres(value)
    except ValueError as error:
        raise ConfigError(f"{place}: {name} {error}") from None


def sealed_rows(outside: Outside, seal: Any) -> Any:
    """Yield the sealed standings as record batches, each part compared with its seal."""
    yield from read_parts_checked(outside.store, seal)
