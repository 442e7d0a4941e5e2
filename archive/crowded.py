"""Forgetting a live key also where the server is at its maxmemory and refuses every transaction (Redis before 7).

There the key is given a private name that nobody writes to, drained, compared, proved unchanged and only then unlinked,
or given back. docs/decisions/0007 tells what that is worth. Redis runs each of the scripts below as one step, whatever
its memory, because they only read, rename and remove; each compares the fence first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from archive import removal
from archive.changes import compare
from archive.columns import Page
from archive.drain import pages
from archive.pacing import PAGE_BUDGET, PAGE_ROWS
from archive.proof import DisturbedError, ProofConnection
from archive.refusals import CrowdedError
from archive.removal import Departure, Expiry, Fence, KeyChangedError, LeavingError, Removal
from archive.seal import KeyFacts
from leaderboard.errors import FinaleError, LeaseLostError, OutcomeUnknownError, UnavailableError

# KEYS  fence, live key, private name    ARGV  fence
# Where nothing is left, the fence may have gone too.
_FENCED = """
local fence = redis.call('GET', KEYS[1])
local live, private = redis.call('EXISTS', KEYS[2]), redis.call('EXISTS', KEYS[3])
if fence ~= ARGV[1] and (fence or live + private > 0) then return 'fenced' end
"""
_TAKE = f"""{_FENCED}
if live + private == 2 then return 'both' end
if live + private == 0 then return 'gone' end
if live == 1 then redis.call('RENAMENX', KEYS[2], KEYS[3]) end
return 'taken'
"""
_GIVE_BACK = f"""{_FENCED}
if live + private == 2 then return 'both' end
if private == 1 then redis.call('RENAMENX', KEYS[3], KEYS[2]) end
return 'back'
"""
# KEYS  and the name to expire under (or again the private one), helper keys    ARGV  and seconds, or 0
_FORGET = f"""{_FENCED}
if private == 1 and ARGV[2] ~= '0' then
  if redis.call('RENAMENX', KEYS[3], KEYS[4]) == 0 then return 'occupied' end
  redis.call('EXPIRE', KEYS[4], ARGV[2])
end
redis.call('UNLINK', KEYS[3], unpack(KEYS, 5))
return 'forgotten'
"""


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
    """Forget the live key as ``removal.remove`` does, in one transaction; where that was refused for memory, as above.

    What an earlier call left under the private name is taken up again. Raises what ``removal.remove`` raises, with the
    content still there, under the live name wherever it could be given back.
    """
    drain = partial(pages, descending=descending, page_rows=page_rows, page_budget=page_budget)
    try:
        return removal.remove(
            connect,
            sealed,
            fence,
            descending=descending,
            helper_keys=helper_keys,
            archived=archived,
            expiry=expiry,
            page_rows=page_rows,
            page_budget=page_budget,
        )
    except (CrowdedError, LeavingError):
        return forget(
            connect,
            Departure(sealed, fence, helper_keys, expiry),
            drain,
            lambda proof, key: str(compare(drain(proof, key), archived(), descending=descending)),
        )


def forget(
    connect: Callable[[], ProofConnection],
    departure: Departure,
    drain: Callable[[ProofConnection, str], Iterator[Page]],
    told: Callable[[ProofConnection, str], str],
) -> Removal:
    """Forget a key whose transaction was refused for memory, or that an earlier call left under the private name.

    ``told`` names what differs between the content of a key and what was sealed. Raises as :func:`remove`.
    """
    leaving = _Leaving(connect, departure.sealed, departure.fence, removal.leaving_name(departure.sealed.key))
    return leaving.forget(drain, told, departure.helper_keys, departure.expiry)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A live key on its way out under a private name."""

    connect: Callable[[], ProofConnection]
    sealed: KeyFacts
    fence: Fence
    name: str

    def forget(
        self,
        drain: Callable[[ProofConnection, str], Iterator[Page]],
        told: Callable[[ProofConnection, str], str],
        helper_keys: Sequence[str],
        expiry: Expiry | None,
    ) -> Removal:
        """Take the private name, prove its content equal, and remove it; or give it back and raise why."""
        with self.connect() as proof:
            present = self._run(proof, _TAKE) == "taken"
            try:
                if present:
                    proof.watch(self.name, beside=[self.fence.key])
                    removal.check_free(proof, expiry)
                    removal.check_equal(drain(proof, self.name), self.sealed, partial(told, proof, self.name))
                    proof.unchanged()
            except FinaleError:
                proof.close()
                self._give_back()
                raise
            self._remove(proof, helper_keys, expiry if present else None)
            replicas, acknowledged = removal.wait_for_replicas(proof)
        if not present:
            return Removal("absent", 0, replicas, acknowledged)
        return Removal("expiring" if expiry else "removed", self.sealed.rows, replicas, acknowledged)

    def _give_back(self) -> None:
        """Let the content have the live name again; where nobody answers, the next call takes it up."""
        with suppress(UnavailableError), self.connect() as proof:
            self._run(proof, _GIVE_BACK)

    def _remove(self, proof: ProofConnection, helper_keys: Sequence[str], expiry: Expiry | None) -> None:
        name, seconds = (expiry.name, removal.seconds_of(expiry)) if expiry else (self.name, 0)
        try:
            told = self._run(proof, _FORGET, seconds, others=[name, *helper_keys])
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"Redis was told to remove {self.name}, and whether it did is not known",
                detail=error.detail,
                hint="run again: it looks first at what was done",
            ) from error
        if told == "occupied":
            self._give_back()
            raise DisturbedError(f"something has come to be under {name} meanwhile", hint="run again")

    def _run(self, proof: ProofConnection, script: str, *arguments: int, others: Sequence[str] = ()) -> str:
        """Run one of the scripts and return its word; raise for another's fence, and for content under both names."""
        keys = [self.fence.key, self.sealed.key, self.name, *others]
        told: str = proof.command("EVAL", script, len(keys), *keys, self.fence.number, *arguments).decode()
        if told == "fenced":
            raise LeaseLostError(
                "the fence beside the live key is not this runner's any more",
                detail=f"key {self.fence.key}; nothing was removed",
                hint="another runner has taken the season over, or the key was lost; run again",
            )
        if told == "both":
            raise KeyChangedError(
                f"{self.sealed.key} exists again beside {self.name}, which has its content",
                detail="the server was out of memory, so the key was renamed to be removed; nothing was removed",
                hint=f"stop what writes to {self.sealed.key} and keep that under another name or remove it; "
                f"then: RENAMENX {self.name} {self.sealed.key}",
            )
        return told
