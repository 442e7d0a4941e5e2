"""Forgetting a season's live key, in the very transaction that proved it equal to its sealed archive (I1).

That the archive's parts were read again just before is the caller's duty (``jobs/steps/clean.py``): this module is
handed the sealed rows and digest as plain values and never looks at the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from archive.changes import compare
from archive.columns import Page
from archive.digest import StandingDigest
from archive.drain import pages
from archive.pacing import PAGE_BUDGET, PAGE_ROWS
from archive.proof import Argument, DisturbedError, ProofConnection
from archive.seal import KeyFacts
from leaderboard.errors import FinaleError, LeaseLostError, SeasonHeldError
from leaderboard.keys import helper_key

_WAIT_MILLISECONDS = 1_000


class KeyChangedError(SeasonHeldError):
    """The live key is not what was sealed; it was left as it is."""


class LeavingError(Exception):
    """The key has the private name under which ``archive.crowded`` forgets it, and which that takes up."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The string key beside the live key that holds the newest runner's fence, and the number of this runner."""

    key: str
    number: int


@dataclass(frozen=True, slots=True)
class Expiry:
    """Forget later: the private name the live key gets, and how long it stays under it."""

    name: str
    after: timedelta


@dataclass(frozen=True, slots=True)
class Removal:
    """What was done with the live key, and how many of the replicas that follow the server have confirmed it.

    ``absent``: it was gone already. ``acknowledged`` is None where the server did not say; :func:`behind` tells what
    that and a smaller number mean.
    """

    outcome: Literal["removed", "expiring", "absent"]
    rows: int
    replicas: int
    acknowledged: int | None


def remove(
    connect: Callable[[], ProofConnection],
    sealed: KeyFacts,
    fence: Fence,
    *,
    descending: bool,
    helper_keys: Sequence[str],
    archived: Callable[[], Iterable[Any]],
    expiry: Expiry | None = None,
    page_rows: int = PAGE_ROWS,
    page_budget: timedelta = PAGE_BUDGET,
) -> Removal:
    """UNLINK the live key and its helpers, or leave it to ``expiry``, if it is what was sealed and we hold the fence.

    ``archived`` gives the sealed rows in board order, record batches with ``player_id`` and ``score``; it is asked only
    to name the players that differ. Safe to repeat: a second call finds the key ``absent``.

    Raises, each with the key untouched: LeaseLostError for another runner's fence, KeyChangedError for a key that
    differs from its seal, DisturbedError for a write meanwhile, SeasonHeldError for a private name that is taken,
    CrowdedError where the server is out of memory and refuses the transaction, LeavingError for what it left then.
    Raises OutcomeUnknownError when the answer to EXEC was lost: call again, it looks first.
    """
    drain = partial(pages, descending=descending, page_rows=page_rows, page_budget=page_budget)
    with connect() as proof:
        leaving = Departing(proof, Departure(sealed, fence, helper_keys, expiry))
        leaving.prove(drain, lambda: str(compare(drain(proof, sealed.key), archived(), descending=descending)))
        return leaving.execute()


@dataclass(frozen=True, slots=True)
class Departure:
    """A live key that is to be forgotten: what was sealed of it, our fence beside it, and what else goes with it."""

    sealed: KeyFacts
    fence: Fence
    helper_keys: Sequence[str]
    expiry: Expiry | None = None


class Departing:
    """A live key under WATCH, which is proved to be what was sealed and then forgotten in the same transaction.

    Each step raises what :func:`remove` raises.
    """

    def __init__(self, proof: ProofConnection, departure: Departure) -> None:
        self._proof = proof
        self._departure = departure
        key, expiry = departure.sealed.key, departure.expiry
        leaving = leaving_name(key)
        proof.watch(key, beside=[departure.fence.key, leaving, *([expiry.name] if expiry else [])])
        self.present = key in proof.watched.rows
        check_fence(proof, departure.fence, needed=self.present)
        if proof.command("EXISTS", leaving):
            raise LeavingError(key)

    def prove(
        self, drain: Callable[[ProofConnection, str], Iterator[Page]], told: Callable[[], str] | None = None
    ) -> None:
        """See that the key is what was sealed; one that is gone is nothing to prove. ``told`` names what differs."""
        sealed = self._departure.sealed
        if not self.present:
            return
        with self._ours():
            check_free(self._proof, self._departure.expiry)
            check_equal(drain(self._proof, sealed.key), sealed, told)

    def execute(self) -> Removal:
        """Forget the key and its helpers, if nothing has changed since it was watched."""
        departure = self._departure
        effects = _forget(departure.sealed.key, departure.expiry) if self.present else []
        with self._ours():
            self._proof.exec(*effects, *(("UNLINK", key) for key in departure.helper_keys))
        replicas, acknowledged = wait_for_replicas(self._proof)
        if not self.present:
            return Removal("absent", 0, replicas, acknowledged)
        outcome: Literal["expiring", "removed"] = "expiring" if departure.expiry else "removed"
        return Removal(outcome, departure.sealed.rows, replicas, acknowledged)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """Raise LeaseLostError instead, where what was disturbed is our fence."""
        try:
            yield
        except DisturbedError:
            check_fence(self._proof, self._departure.fence, needed=self.present)
            raise


def leaving_name(key: str) -> str:
    """Return the private name under which a key is forgotten where there is no transaction for it."""
    return helper_key(key, "leaving")


def _forget(key: str, expiry: Expiry | None) -> list[Sequence[Argument]]:
    if not expiry:
        return [("UNLINK", key)]
    return [("RENAMENX", key, expiry.name), ("EXPIRE", expiry.name, seconds_of(expiry))]


def seconds_of(expiry: Expiry) -> int:
    """Return how long the content stays under its private name, in whole seconds and never 0."""
    return max(1, round(expiry.after.total_seconds()))


def check_fence(proof: ProofConnection, fence: Fence, *, needed: bool) -> None:
    """Raise LeaseLostError unless the fence is ours. Where the live key is gone, it may have gone with it."""
    found = proof.command("GET", fence.key)
    if found is None and not needed:
        return
    if found != str(fence.number).encode():
        raise LeaseLostError(
            f"the fence beside the live key is {'missing' if found is None else found.decode(errors='replace')}, "
            f"this runner's is {fence.number}",
            detail=f"key {fence.key}; nothing was changed",
            hint="another runner has taken the season over, or the key was lost; run again",
        )


def check_free(proof: ProofConnection, expiry: Expiry | None) -> None:
    if expiry and proof.command("EXISTS", expiry.name):
        raise SeasonHeldError(
            f"the private name {expiry.name!r}, under which the live key is to expire, is taken",
            detail="nothing was removed",
            hint="look at what is there; rename or remove it, then release the season",
        )


def check_equal(live: Iterable[Page], sealed: KeyFacts, told: Callable[[], str] | None) -> None:
    """Raise KeyChangedError unless the ``live`` pages are what was sealed; ``told`` names what differs, if asked."""
    digest = StandingDigest()
    for page in live:
        digest.update(page.members, page.scores)
    if (digest.rows, digest.hexdigest()) == (sealed.rows, sealed.digest):
        return
    error = KeyChangedError(
        f"the live key {sealed.key} differs from its sealed archive and was not removed",
        detail=f"{digest.rows:,} rows live, {sealed.rows:,} sealed",
        hint="stop what writes to it, decide what the change means, then put the key back or remove it by hand",
    )
    raise naming(error, told) if told else error


def naming(error: KeyChangedError, told: Callable[[], str]) -> KeyChangedError:
    """Return the error with what ``told`` says of who differs; that nobody can say it takes nothing back."""
    try:
        differs = told()
    except DisturbedError:
        differs = "it is still being written to"
    except FinaleError as other:
        differs = f"who differs is not told: {other.message}"
    return KeyChangedError(error.message, detail=f"{error.detail}; {differs}", hint=error.hint)


def wait_for_replicas(proof: ProofConnection) -> tuple[int, int | None]:
    """Return how many replicas follow the server and how many have confirmed; it is done either way, so never raise."""
    replicas = 0
    try:
        role = proof.command("ROLE")
        replicas = len(role[2]) if role[0] == b"master" else 0
        return replicas, int(proof.command("WAIT", replicas, _WAIT_MILLISECONDS)) if replicas else 0
    except FinaleError:
        return replicas, None


def behind(replicas: int, acknowledged: int | None) -> str:
    """Return what a person is told where not all ``replicas`` are known to have confirmed; nothing if they have."""
    if not replicas or acknowledged == replicas:
        return ""
    confirmed = "nobody said how many" if acknowledged is None else f"{acknowledged} of them"
    followed = "1 replica follows" if replicas == 1 else f"{replicas} replicas follow"
    return (
        f"{followed} this Redis, {confirmed} confirmed what was done within a second; until they have it, a failover "
        "would undo it"
    )
