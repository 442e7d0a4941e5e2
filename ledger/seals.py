"""The exact bytes of every seal, committed under the fence before they are put, in the order of the board's chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from leaderboard.errors import SeasonHeldError
from ledger import leases
from ledger.database import Database
from ledger.leases import Lease


@dataclass(frozen=True, slots=True)
class SealRow:
    number: int
    previous: str | None
    sha256: str
    body: bytes
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class PutSeal:
    """A seal that is in the store, as far as the ledger knows: committed, put, and recorded."""

    key: int
    season: str
    kind: str
    board: str
    number: int
    sha256: str


def find(database: Database, key: int, kind: str) -> SealRow | None:
    """Return the committed seal of a season, None if there is none."""
    row = database.row("seals.find", {"key": key, "kind": kind})
    return SealRow(**row) if row else None


def commit(
    database: Database,
    lease: Lease,
    board: str,
    kind: str,
    build: Callable[[int, str | None, datetime], bytes],
    *,
    after: tuple[int, str] | None = None,
) -> SealRow:
    """Commit a seal as the next of the board's chain and return it; a seal committed before is returned as it stands.

    ``build`` is given the number in the chain, the hash of the seal before and the time, under a lock of the board, and
    returns the exact bytes. ``after`` is number and hash of a seal elsewhere that the chain goes on after, if it is
    further than this ledger's. Raises LeaseLostError.
    """
    with database.transaction():
        leases.check(database, lease)
        database.rows("seals.lock_board", {"board": board})
        if (found := find(database, lease.key, kind)) is not None:
            return found
        last = database.row("seals.last", {"board": board})
        number, previous = (last["number"] + 1, last["sha256"]) if last else (1, None)
        if after is not None and after[0] >= number:
            number, previous = after[0] + 1, after[1]
        body = build(number, previous, database.now())
        database.rows(
            "seals.commit",
            {
                **lease.params,
                "kind": kind,
                "board": board,
                "number": number,
                "previous": previous,
                "sha256": sha256(body).hexdigest(),
                "body": body,
            },
        )
        committed = find(database, lease.key, kind)
        assert committed is not None
        return committed


def kinds(database: Database, board: str) -> set[tuple[str, str]]:
    """Return season and kind of every seal of the board that this ledger has."""
    return {(row["season"], row["kind"]) for row in database.rows("seals.kinds", {"board": board})}


def newest_put(database: Database, board: str = "") -> PutSeal | None:
    """Return the newest seal of the board that was surely put, else of any board; None if there is none."""
    row = database.row("seals.newest_put", {"board": board})
    return PutSeal(**row) if row else None


def withdraw(database: Database, lease: Lease, kind: str, sha256: str) -> None:
    """Forget a seal that was committed and can never be put, since another is in its place. Raises LeaseLostError."""
    with database.transaction():
        leases.check(database, lease)
        database.rows("seals.withdraw", {"key": lease.key, "kind": kind, "sha256": sha256})


def adopt(
    database: Database, lease: Lease, board: str, kind: str, body: bytes, number: int, previous: str | None
) -> None:
    """Take over, byte for byte, the seal that another sealer of the same season has put first, with its place.

    ``number`` and ``previous`` are its place in the board's chain. Raises LeaseLostError, and SeasonHeldError if this
    ledger has that number for another season: then two installations have numbered one board's chain, each its own way.
    """
    place = {"board": board, "number": number}
    with database.transaction():
        leases.check(database, lease)
        database.rows("seals.lock_board", {"board": board})
        found = database.row("seals.numbered", place)
        if found is not None and (found["season_id"], found["kind"]) != (lease.key, kind):
            raise SeasonHeldError(
                f"seal {number} of the chain of {board} is another season's in this ledger",
                detail="another installation seals the same board to the same store, with numbers of its own",
                hint="let one installation seal this board; finale archive verify --all tells where the chain parts",
            )
        told = {"sha256": sha256(body).hexdigest(), "body": body, "previous": previous}
        database.rows("seals.adopt", {**lease.params, **place, **told, "kind": kind})
