"""Delivering a season's grants: claimed in batches from the outbox, sent, settled grant by grant (I5).

Sent twice is possible, since an answer can be lost; that is what a grant's id is for. Not sent is not: what is claimed
and never settled becomes due again.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobs import identity, output
from jobs.payout.targets import Target, target
from jobs.unforeseen import told
from jobs.wiring import Outside
from leaderboard.delivery import Delivery
from leaderboard.errors import ConfigError, FinaleError
from leaderboard.season import Season
from leaderboard.wording import counted
from ledger import outbox, seasons
from ledger.leases import Lease
from ledger.outbox import Claim
from rewards.delivery import Batch, batch_size, rest_after, settle

PATIENCE = timedelta(seconds=15)  #: how long a deliverer waits for what is due soon, instead of leaving it to the next
SHORT_REST = timedelta(seconds=1)  #: a rest that need not be kept for other deliverers, nor be left to a later run
_CLAIM = timedelta(seconds=30)  # beyond what a request may take


@dataclass(frozen=True, slots=True)
class Later:
    """What is left for later: how many grants, from when on, and why. ``until`` None: when a person says so."""

    grants: int
    until: datetime | None
    why: str

    @property
    def told(self) -> str:
        """How many and why, for a person."""
        return f"{counted(self.grants, 'grant waits', 'grants wait')}; {self.why}"


def delivery_of(outside: Outside, season: Season) -> Delivery:
    """Return how the season's grants are delivered: as configured now, or as it was when the board last was."""
    return outside.boards.get(season.board.name, season.board).deliver


def deliver(
    outside: Outside,
    season: Season,
    *,
    who: str,
    patience: timedelta = PATIENCE,
    lease: Lease | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Later | None:
    """Send what is due of a season's grants and corrections; return what is left for later, None if nothing is.

    Waits up to ``patience`` for what is due soon, but goes no further than this run's turn. Before each batch it is
    asked whether the season is on hold or everything paused, which leaves the rest for later. Raises LeaseLostError
    once ``lease`` is somebody else's, ConfigError for a target that is not configured as it was planned. Whatever a
    target does is settled, not raised.
    """
    if not _owes(outside, season):
        return None
    delivery = delivery_of(outside, season)
    _check_mode(outside, season, delivery)
    with target(outside, delivery, season, os.environ) as where:
        later = _Delivering(outside, season, delivery, where, identity.holder(who), lease, progress).run(patience)
    outbox.finish(outside.database, season.key)
    return later


def _owes(outside: Outside, season: Season) -> bool:
    return any(one.delivered_at is None for one in outbox.planned(outside.database, season.key))


def _check_mode(outside: Outside, season: Season, delivery: Delivery) -> None:
    for one in outbox.planned(outside.database, season.key):
        if one.delivered_at is None and one.mode != delivery.to:
            raise ConfigError(
                f"the grants of {season.name} are on their way by {one.mode}, and the board now says {delivery.to}",
                detail="some may have arrived already, so they are not sent another way",
                hint=f'set deliver.to = "{one.mode}" until finale rewards status {season.board.name} {season.id} '
                "shows none waiting",
            )


@dataclass(frozen=True, slots=True)
class _Delivering:
    outside: Outside
    season: Season
    delivery: Delivery
    target: Target
    holder: str
    lease: Lease | None
    progress: Callable[[int, int], None]

    def run(self, patience: timedelta) -> Later | None:
        database, key = self.outside.database, self.season.key
        whole = sum(row["grants"] for row in outbox.counts(database, key))
        done = whole - outbox.waiting(database, key).grants
        sent = False
        while True:
            asked = outbox.may_send(database, key, self.season.name, self.lease)
            self.progress(done, whole)
            if self.outside.working.stop.is_set():
                return self._left(asked.now, "this runner was told to stop")
            if asked.stopped:
                return self._left(None, asked.stopped)
            later = asked.until
            # One batch goes in every turn, however late its beginning, so that a delivery always gets on.
            if later is None and not (sent and self._turn_is_over()):
                claimed = self._claim()
                if claimed is not None:
                    done += self._send(claimed, asked.failures)
                    sent = True
                    continue
                waiting = outbox.waiting(database, key)
                if not waiting.grants:
                    return None
                if self._let_go(waiting.holders):
                    continue
                later = waiting.at
            later = later or asked.now
            rest = later - database.now()
            if rest > patience or self._turn_is_over(rest):
                what = "try" if asked.failures else "batch"
                return self._left(later, f"{self.target.name}: the next {what} is due")
            self._sleep(rest)

    def _left(self, until: datetime | None, why: str) -> Later | None:
        grants = outbox.waiting(self.outside.database, self.season.key).grants
        return Later(grants, until, why) if grants else None

    def _sleep(self, rest: timedelta) -> None:
        self.outside.working.stop.wait(max(rest.total_seconds(), 0.001))

    def _turn_is_over(self, rest: timedelta = timedelta(0)) -> bool:
        """Return whether it will be, after such a rest: others are waiting for the thread that delivers."""
        return time.monotonic() + rest.total_seconds() >= self.outside.turn_ends

    def _claim(self) -> Claim | None:
        def size(tries: int) -> int:
            return batch_size(self.delivery.batch, self.delivery.per_second, tries)

        length = self.delivery.timeout * 2 + _CLAIM
        return outbox.claim(self.outside.database, self.season.key, self.holder, length, size, self.target.mark())

    def _let_go(self, holders: Iterable[str]) -> bool:
        """Take over what deliverers that have ended on this machine had claimed; return whether there were any."""
        dead = [one for one in holders if identity.has_ended(one)]
        if dead:
            outbox.let_go(self.outside.database, self.season.key, dead)
        return bool(dead)

    def _send(self, claimed: Claim, failures: int) -> int:
        """Send a claim and record what came of it; return how many grants are settled for good.

        ``failures`` are those of the target, in a row, before.
        """
        database, key, delivery = self.outside.database, self.season.key, self.delivery
        if not claimed.rows:
            return 0
        season = self.season
        batch = Batch(season.board.name, season.id, claimed.correction, season.board.member == "binary", claimed.rows)
        answer = self.target.send(batch, claimed.marks)
        found = settle(
            dict.fromkeys(batch.ids, claimed.attempts),
            answer,
            tries=delivery.tries,
            backoff=delivery.backoff,
            failures=failures,
            chance=random.random(),  # noqa: S311 - spreads waits
        )
        rest = rest_after(len(claimed.rows), delivery.per_second)
        kept = rest if rest > SHORT_REST or self._turn_is_over(rest) else None
        changed = outbox.settle(
            database,
            key,
            claimed,
            acknowledged=found.acknowledged,
            dead=found.dead,
            again=found.again,
            reason=found.reason,
            failures=found.failures,
            pause=max((one for one in (found.pause, kept) if one is not None), default=None),
        )
        self._tell(found.again, found.dead, found.reason, changed)
        if kept is None:
            self._sleep(rest)
        return changed - len(found.again) if changed else 0

    def _tell(self, again: Mapping[str, Any], dead: Mapping[str, str], reason: str, changed: int) -> None:
        told = {"season": self.season.name, "target": self.target.name}
        if not changed:
            output.heard("delivery.overtaken", **told)
        elif again:
            output.heard("delivery.again", **told, grants=len(again), reason=reason)
        if changed and dead:
            output.heard("delivery.dead", **told, grants=len(dead), reason=next(iter(dead.values())))


def deliver_owed(outside: Outside, board: str, *, who: str) -> list[tuple[Season, FinaleError | None]]:
    """Send what the board's seasons past their deliver step owe: corrections, and what was told to be tried again.

    Returns each season that owed something, with what went wrong, if anything did. Nothing is waited for but short
    rests between batches.
    """
    found: list[tuple[Season, FinaleError | None]] = []
    for name in outbox.owing(outside.database, board):
        season = seasons.find(outside.database, board, name, outside.boards.get(board))
        try:
            deliver(outside, season, who=who, patience=timedelta(0))
            found.append((season, None))
        except Exception as error:  # one season never stops another, whatever is wrong with it
            found.append((season, told(season.name, error)))
    return found
