"""The freeze by renaming: what was played gets a private name that no writer knows, under our own fence.

For writers that nobody controls and for one key that every season is played under. The live key itself is not watched:
it may be written to all the time, and whatever comes before the rename belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from archive.proof import DisturbedError, ProofConnection
from archive.refusals import CrowdedError, WrongTypeError
from archive.removal import Fence, check_fence, wait_for_replicas
from leaderboard.errors import OutcomeUnknownError, UnavailableError

# KEYS  of each set: fence, live key, private name    ARGV  of each set: fence
# It only reads and renames, which takes no memory: Redis runs it as one step, whatever it has left.
_RENAME = """
for at = 1, #KEYS, 3 do
  if redis.call('GET', KEYS[at]) ~= ARGV[(at + 2) / 3] then return 'fenced' end
  if redis.call('EXISTS', KEYS[at + 2]) == 1 then return 'taken' end
end
for at = 1, #KEYS, 3 do
  if redis.call('EXISTS', KEYS[at + 1]) == 1 then
    redis.call('RENAMENX', KEYS[at + 1], KEYS[at + 2])
    redis.call('PERSIST', KEYS[at + 2])
  end
end
return 'renamed'
"""


@dataclass(frozen=True, slots=True)
class Renaming:
    """What was done. ``done``: it had the private name already; ``missing``: there was no key under either name.

    ``later``: rows that are under the old name beside the private one; they came after the rename and were left alone.
    ``replicas`` follow the server, and ``acknowledged`` of them, if it said, have confirmed a rename.
    """

    outcome: Literal["renamed", "done", "missing"]
    rows: int
    later: int
    replicas: int = 0
    acknowledged: int | None = 0


@dataclass(frozen=True, slots=True)
class Move:
    """A live key, the private name it is to get, in its slot, and our fence beside that."""

    live_key: str
    private: str
    fence: Fence


def rename(connect: Callable[[], ProofConnection], live_key: str, private: str, fence: Fence) -> Renaming:
    """Give the sorted set ``live_key`` the name ``private``, in its slot, for good, if we hold the fence.

    A time to live is taken off, and nothing that is there is overwritten. Safe to repeat: it looks first at what has
    the private name. Raises, with nothing changed, LeaseLostError for another runner's fence, WrongTypeError for a key
    that is no sorted set, DisturbedError for a name taken meanwhile; OutcomeUnknownError when the answer to EXEC was
    lost: call again.
    """
    return rename_all(connect, [Move(live_key, private, fence)])


def rename_all(connect: Callable[[], ProofConnection], moves: Sequence[Move]) -> Renaming:
    """Give each sorted set its private name, all in one transaction, so that they are frozen at one instant (I3).

    In a cluster they must therefore be in one slot. A set that does not exist, as a shard in which nobody plays, is
    left out; rows are those of all. Otherwise as :func:`rename`.
    """
    with connect() as proof:
        proof.watch(beside=[name for move in moves for name in (move.fence.key, move.private)])
        _check_fences(proof, moves)
        found = [(move, _rows(proof, move.live_key), _rows(proof, move.private)) for move in moves]
        if any(kept for _, _, kept in found):
            # They were renamed together: what is under an old name now came later, also where nothing was before.
            return Renaming("done", sum(kept for _, _, kept in found), sum(rows for _, rows, _ in found))
        effects = [
            command
            for move, rows, _ in found
            if rows
            for command in (("RENAMENX", move.live_key, move.private), ("PERSIST", move.private))
        ]
        if not effects:
            return Renaming("missing", 0, 0)
        try:
            proof.exec(*effects)
        except DisturbedError:
            _check_fences(proof, moves)
            raise
        except CrowdedError:
            return _rename_crowded(connect, moves)
        return _renamed(proof, moves)


def _renamed(proof: ProofConnection, moves: Sequence[Move]) -> Renaming:
    replicas, acknowledged = wait_for_replicas(proof)
    kept, later = (sum(_rows(proof, name) for name in names) for names in _names(moves))
    return Renaming("renamed", kept, later, replicas, acknowledged)


def _rename_crowded(connect: Callable[[], ProofConnection], moves: Sequence[Move]) -> Renaming:
    """Rename in one script, as a server that is out of memory (Redis before 7) takes no transaction."""
    names = [name for move in moves for name in (move.fence.key, move.live_key, move.private)]
    with connect() as proof:
        try:
            told = proof.command("EVAL", _RENAME, len(names), *names, *(move.fence.number for move in moves))
        except UnavailableError as error:
            if isinstance(error, CrowdedError):
                raise
            raise OutcomeUnknownError(
                f"Redis was told to rename {moves[0].live_key}, and whether it did is not known",
                detail=error.detail,
                hint="run again: it looks first at what was done",
            ) from error
        if told != b"renamed":
            _check_fences(proof, moves)
            raise DisturbedError(f"something has come to be under {moves[0].private} meanwhile", hint="run again")
        return _renamed(proof, moves)


def _names(moves: Sequence[Move]) -> tuple[list[str], list[str]]:
    return [move.private for move in moves], [move.live_key for move in moves]


def _check_fences(proof: ProofConnection, moves: Sequence[Move]) -> None:
    for move in moves:
        check_fence(proof, move.fence, needed=True)


def _rows(proof: ProofConnection, key: str) -> int:
    """Return the rows of ``key``, 0 where there is none."""
    kind = proof.command("TYPE", key).decode()
    if kind not in ("zset", "none"):
        raise WrongTypeError(
            f"the key {key!r} at Redis {proof.address} is a key that is not a sorted set, its type is {kind}",
            hint="check the board's key; nothing of it was touched",
        )
    return int(proof.command("ZCARD", key))
