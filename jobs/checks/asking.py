"""A season compared because somebody asks, whatever its state, and put right because somebody decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from archive.fetch import load_seal, read_parts_checked
from archive.seal import StandingFacts
from jobs.boards.snapshots import give_up_snapshot
from jobs.checks import live_check, reconciling, repairing, reporting
from jobs.checks.workspace import workspace
from jobs.seasons.leasing import leased
from jobs.wiring import Outside
from leaderboard.errors import UnknownNameError, WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, Step, reached
from leaderboard.wording import counted, listed
from ledger import journal, leases, pending, seasons, why
from ledger.leases import Lease
from ledger.recount import Recount, mend, recount
from live.board import LiveBoard
from reconcile.drift import CLASSES
from reconcile.gathered import Gathered, gathering
from reconcile.report import lines

_TOLD = 20  #: players whom the journal names


@dataclass(frozen=True, slots=True)
class Asked:
    """What a comparison found, and of what it was: ``sealed``, ``staged`` or ``live`` standings."""

    of: str
    counts: Mapping[str, int]
    drift: int
    remedy: str
    report: str = ""
    shared: Sequence[str] = ()
    rows: Sequence[tuple[Any, ...]] = ()
    recounted: Recount | None = None
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        return bool(self.drift) or bool(self.recounted and self.recounted.broken)

    @property
    def words(self) -> str:
        """What differs, in a line."""
        told = [f"Redis and the ledger differ in {counted(self.drift, 'player')}"] if self.drift else []
        if self.recounted and self.recounted.broken:
            named = listed(self.recounted.examples, 5, self.recounted.broken, between="; ")
            told.append(f"{counted(self.recounted.broken, 'total')} of the ledger not as its results make: {named}")
        return "; ".join(told)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found: dict[str, Any] = {"compared": self.of, **self.counts, "drift": self.drift, "report": self.report or None}
        found |= {"shared": list(self.shared), "players": self.content.get("players", [])}
        if self.recounted is not None:
            found["broken_totals"] = self.recounted.broken
            found["broken_examples"] = [str(one) for one in self.recounted.examples]
        return found


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair by hand wrote."""

    season: Season
    players: int
    mended: int = 0  #: totals of the ledger that were made what its results say, and written to Redis
    again: bool = False  #: the season had a snapshot, which is taken again
    named: bool = False  #: only the players that somebody named

    @property
    def words(self) -> str:
        name = f"{self.season.board.name} {self.season.id}"
        mended = f"{counted(self.mended, 'total is', 'totals are')} now what the results make; " if self.mended else ""
        again = "; the snapshot is taken again" if self.again else ""
        follows = f"; then: finale season release {name}" if self.season.hold else ""
        told = f"{counted(self.players, 'player has', 'players have')} in Redis what the ledger has"
        others = f"; whoever else differs is as before, see finale reconcile {name}" if self.named else ""
        return f"{mended}{told}{again}{others}{follows}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found = {"board": self.season.board.name, "season": self.season.id, "repaired": self.players}
        return {**found, "mended_totals": self.mended, "snapshot_again": self.again}


def ask(outside: Outside, season: Season, *, live: bool = False, deep: bool = False) -> Asked:
    """Compare every player of the season with its ledger and return what was found; Redis and ledger stay as they are.

    Compared are the sealed standings, else the staged, else (or with ``live``) the live key as it is now. ``deep``
    counts the totals anew from the results too. Raises WrongStateError where there is no ledger, or nothing to compare.
    """
    if season.board.ledger == "none":
        raise WrongStateError(
            f"board {season.board.name} declares no ledger, so there is nothing to compare {season.name} with",
            hint="its seal says so; declare one with ledger = { sql = … }",
        )
    if deep and season.board.ledger != "own":
        raise WrongStateError(
            f"the ledger of board {season.board.name} is not Finale's, which has no results to count anew",
            hint="ask without --deep",
        )
    recounted = recount(outside.database, season) if deep else None
    if not live and reached(season.state, State.SEALED):
        seal = load_seal(outside.store, season.board.name, season.id)
        return _compared(outside, season, "sealed", partial(read_parts_checked, outside.store, seal), recounted)
    if not live and reached(season.state, State.SNAPSHOTTED):
        facts = StandingFacts.from_json(journal.results(outside.database, season.key)[Step.SNAPSHOT]["facts"])
        staged = partial(reconciling.staged_rows, outside.store, season, facts, reconciling.COLUMNS)
        return _compared(outside, season, "staged", staged, recounted)
    if season.board.ledger != "own":
        with reconciling.live_standings(outside, season) as rows:
            return _compared(outside, season, "live", rows, recounted)
    return _live(outside, season, recounted)


def _compared(outside: Outside, season: Season, of: str, rows: Any, recounted: Recount | None) -> Asked:
    with reconciling.compared_with_ledger(outside, season, rows) as found:
        counts = found.counts.to_json()
        kept = {name: counts[name] for name in ("equal", "tolerated", *CLASSES)}
        kept = {"players_compared": sum(kept.values()), **kept}
        if not found.counts.drift:
            return Asked(of, kept, 0, _remedy(outside, season, recounted), recounted=recounted)
        report = reporting.write_report(outside, season, found)
    return Asked(
        of,
        kept,
        counts["drift"],
        _remedy(outside, season, recounted),
        f"{outside.store.url}/{report.path}",
        report.shared,
        lines(report.content, reporting.SHOWN),
        recounted,
        report.content,
    )


@contextmanager
def _gathered(outside: Outside, season: Season) -> Iterator[tuple[Gathered, dict[str, int]]]:
    """Compare the live board with Finale's ledger, and yield who drifts, and how many players there were."""
    counts = {"players_compared": 0, "lagging": 0, "tolerated": 0}
    with (
        workspace(outside.settings.home, f"{season.name}/live") as folder,
        gathering(reconciling.rule_of(season, folder)) as found,
    ):
        for one in live_check.whole(outside, season):
            found.add(one.drift)
            for name, number in zip(counts, (one.players, one.lagging, one.tolerated), strict=True):
                counts[name] += number
        yield found, counts


def _live(outside: Outside, season: Season, recounted: Recount | None) -> Asked:
    with _gathered(outside, season) as (found, looked_at):
        classes = reporting.by_class(found)
        counts = {**looked_at, **classes}
        if not any(classes.values()):
            return Asked("live", counts, 0, _remedy(outside, season, recounted), recounted=recounted)
        report = reporting.write_live_report(outside, season, found, counts)
    return Asked(
        "live",
        counts,
        sum(classes.values()),
        _remedy(outside, season, recounted),
        f"{outside.store.url}/{report.path}",
        report.shared,
        lines(report.content, reporting.SHOWN),
        recounted,
        report.content,
    )


def _remedy(outside: Outside, season: Season, recounted: Recount | None) -> str:
    name = f"{season.board.name} {season.id}"
    if reached(season.state, State.SEALED) and (by := _accepted(outside, season)):
        return (
            f"drift of {counted(by['players'], 'player')} was accepted for the seal by {by['by']} at {by['at']}: "
            f"{by['because']}; the live key must stay as it was sealed"
        )
    if season.board.ledger != "own" or season.adopted:
        return "correct the key, or the ledger, where it is written"
    if reached(season.state, State.SEALED):
        return "what a sealed season paid wrongly is settled by a correction"
    if recounted and recounted.broken:
        return f"finale reconcile {name} --deep --repair lets the totals, and Redis, be what the results make"
    return f"finale reconcile {name} --repair writes the ledger's truth to Redis"


def _accepted(outside: Outside, season: Season) -> Mapping[str, Any] | None:
    """Return by whom, when and why the drift was accepted that the season was sealed with."""
    found: Mapping[str, Any] | None = load_seal(outside.store, season.board.name, season.id).accepted_drift
    return found


def ids(season: Season, named: Sequence[str]) -> list[bytes]:
    """Return players named on the command line as bytes. Raises InputError for one that is no id."""
    from jobs.commands.common import player_id

    return [player_id(one, binary=season.board.member == "binary") for one in named]


def repair(
    outside: Outside, season: Season, named: Sequence[bytes], *, who: str, because: str, deep: bool = False
) -> Repaired:
    """Write the ledger's truth to Redis for exactly the named players, or for all that drift, and note it.

    With ``deep`` the ledger's own totals are first made what its results say, and who then differs is written. It takes
    the season's lease, so nobody else acts on the season meanwhile. Safe to repeat: the journal says what is to be done
    before it is. A season that has its snapshot goes back to frozen, so that what is sealed is what Redis has.

    Raises WrongStateError once the seal is committed and for a ledger or key that is not Finale's, LeaseHeldError,
    LeaseLostError, and what ``mend`` does; UnknownNameError for a player whom neither Redis nor the ledger has.
    """
    repairing.check_repairable(season)
    _check_known(outside, season, named)
    with leased(outside, season, who) as (lease, _):
        season = seasons.find(outside.database, season.board.name, season.id, outside.boards.get(season.board.name))
        repairing.check_repairable(season)
        again = reached(season.state, State.SNAPSHOTTED)
        season = give_up_snapshot(outside, season, lease, who=who, because=because)
        mended = mend(outside.database, lease, season, who=who, because=because).broken if deep else 0
        if mended:
            repairing.repair(outside, season, lease)
        if named:
            _write(outside, season, lease, lambda: iter(named), {"players": len(named), "because": because}, who)
            return Repaired(season, len(named), mended, again, named=True)
        with _gathered(outside, season) as (found, _):
            players = sum(found.kinds().values())
            told = {"players": players, "because": because}
            if players:
                told["drift"] = [str(one) for one in islice(found.every(), _TOLD)]
            _write(outside, season, lease, found.players, told, who)
    return Repaired(season, players, mended, again)


def _write(
    outside: Outside,
    season: Season,
    lease: Lease,
    players: Callable[[], Iterator[bytes]],
    told: dict[str, Any],
    who: str,
) -> None:
    """Note the players, whom ``players`` gives as often as asked, as to be written, and write them."""
    if told["players"]:
        told["named"] = [one.decode(errors="backslashreplace") for one in islice(players(), _TOLD)]
        with outside.database.transaction():
            leases.check(outside.database, lease)
            pending.players(outside.database, lease, players())
            journal.write(outside.database, season.key, "repaired by hand", who=who, fence=lease.fence, detail=told)
    repairing.repair(outside, season, lease, players())


def _check_known(outside: Outside, season: Season, named: Sequence[bytes]) -> None:
    """Raise UnknownNameError for players to whom nothing could be done, since neither side has them."""
    live = LiveBoard.of(outside.redis, season)
    unknown = [
        player for player in named if live.score(player) is None and why.total(outside.database, season, player) is None
    ]
    if unknown:
        told = listed([repr(one.decode(errors="backslashreplace")) for one in unknown], 5)
        raise UnknownNameError(
            f"neither Redis nor the ledger of {season.name} has {told}",
            hint="ids are compared byte for byte; those of binary boards are written in hexadecimal",
        )
