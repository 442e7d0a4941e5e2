"""The freeze by renaming: what was played gets a private name that no writer knows, under our own fence.

For writers that nobody controls and for one key that every season is played under. The live key itself is not watched:
it may be written to all the time, and whatever comes before the rename belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from archive.proof import DisturbedError, ProofConnection
from archive.refusals import WrongTypeError
from archive.removal import Fence, check_fence, wait_for_replicas


@dataclass(frozen=True, slots=True)
class Renaming:
    """What was done. ``done``: it had the private name already; ``missing``: there was no key under either name.

    ``later``: rows that are under the old name beside the private one; they came after the rename and were left alone.
    """

    outcome: Literal["renamed", "done", "missing"]
    rows: int
    later: int


def rename(connect: Callable[[], ProofConnection], live_key: str, private: str, fence: Fence) -> Renaming:
    """Give the sorted set ``live_key`` the name ``private``, in its slot, for good, if we hold the fence.

    A time to live is taken off, and nothing that is there is overwritten. Safe to repeat: it looks first at what has
    the private name. Raises, with nothing changed, LeaseLostError for another runner's fence, WrongTypeError for a key
    that is no sorted set, DisturbedError for a name taken meanwhile; OutcomeUnknownError when the answer to EXEC was
    lost: call again.
    """
    with connect() as proof:
        proof.watch(beside=[fence.key, private])
        check_fence(proof, fence, needed=True)
        rows, kept = _rows(proof, live_key), _rows(proof, private)
        if kept:
            return Renaming("done", kept, rows)
        if not rows:
            return Renaming("missing", 0, 0)
        try:
            proof.exec(("RENAMENX", live_key, private), ("PERSIST", private))
        except DisturbedError:
            check_fence(proof, fence, needed=True)
            raise
        wait_for_replicas(proof)
        return Renaming("renamed", _rows(proof, private), _rows(proof, live_key))


def _rows(proof: ProofConnection, key: str) -> int:
    """Return the rows of ``key``, 0 where there is none."""
    kind = proof.command("TYPE", key).decode()
    if kind not in ("zset", "none"):
        raise WrongTypeError(
            f"the key {key!r} at Redis {proof.address} is a key that is not a sorted set, its type is {kind}",
            hint="check the board's key; nothing of it was touched",
        )
    return int(proof.command("ZCARD", key))
