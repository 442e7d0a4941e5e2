"""The outbox: which grants each season still owes its target, who is sending them now, and what came of it.

A deliverer claims a batch for a while and may settle only what it has claimed: every statement names the claim, a
number that grows, so one that was given up for dead and taken over changes nothing more (I9). All statements are
set-wise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ledger import journal, leases
from ledger.database import Database
from ledger.leases import Lease
from ledger.pausing import Pause


@dataclass(frozen=True, slots=True)
class Planned:
    """How a season's grants (``correction`` 0), or a correction's, are delivered, and since when all have been."""

    correction: int
    mode: str
    grants: int
    planned_at: datetime
    delivered_at: datetime | None
    failures: int
    paused_until: datetime | None


@dataclass(frozen=True, slots=True)
class Claim:
    """Grants that this deliverer alone may settle, until the claim runs out: rows as ``rewards.delivery`` takes them.

    ``attempts`` are the tries of each before this one; ``mark`` is the earliest mark that any of them has.
    """

    number: int
    correction: int
    attempts: int
    rows: Sequence[Mapping[str, Any]]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is not settled: how many grants, when the next of them is due, and who has claimed some."""

    grants: int
    at: datetime | None
    holders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sending:
    """What stands against sending another batch now: ``stopped`` in words, or a target to be left alone ``until``."""

    stopped: str
    until: datetime | None
    failures: int  #: of the target, in a row
    now: datetime


def plan(database: Database, lease: Lease, mode: str, correction: int = 0) -> Planned:
    """Record how the grants, which are written, are to be delivered, and put them into the outbox; repeatable.

    With ``table`` they are readable in ``finale.payable`` from the commit on, and delivered. What was planned before
    stands, with its mode. Raises LeaseLostError.
    """
    values = {"key": lease.key, "correction": correction, "mode": mode}
    with database.transaction():
        leases.check(database, lease)
        if database.row("outbox.plan", values) is not None and mode != "table":
            database.rows("outbox.fill", values)
        return next(one for one in planned(database, lease.key) if one.correction == correction)


def planned(database: Database, key: int) -> list[Planned]:
    """Return what a season's deliveries are: of its grants first, then of its corrections in order."""
    return [Planned(**row) for row in database.rows("outbox.planned", {"key": key})]


def claim(
    database: Database, key: int, holder: str, length: timedelta, size: Callable[[int], int], mark: str | None
) -> Claim | None:
    """Claim the next grants that are due, all of the same correction and number of tries; None if none are.

    ``size`` says how many may be sent together after so many tries.
    """
    with database.transaction():
        head = database.row("outbox.head", {"key": key})
        if head is None:
            return None
        numbered = database.row("outbox.next_claim")
        assert numbered is not None
        values = {
            "key": key,
            "holder": holder,
            "length": length,
            "mark": mark,
            "claim": numbered["claim"],
            "limit": size(head["attempts"]),
            **head,
        }
        claimed = database.rows("outbox.claim", values)
    ids = [row["grant_id"] for row in claimed]
    query = "outbox.correction_contents" if head["correction"] else "outbox.contents"
    rows = database.rows(query, {"key": key, "correction": head["correction"], "ids": ids})
    marks = tuple(row["mark"] for row in claimed if row["mark"] is not None)
    return Claim(numbered["claim"], head["correction"], head["attempts"], rows, marks)


def settle(
    database: Database,
    key: int,
    claimed: Claim,
    *,
    acknowledged: Sequence[str],
    dead: Mapping[str, str],
    again: Mapping[str, timedelta],
    reason: str,
    failures: int,
    pause: timedelta | None,
) -> int:
    """Record what came of a claim, in one transaction; return how many of its grants were still this claim's."""
    values = {"key": key, "correction": claimed.correction, "claim": claimed.number}
    changed = 0
    with database.transaction():
        if acknowledged:
            changed += _rows(database, "outbox.acknowledge", {**values, "ids": list(acknowledged)})
        if dead:
            changed += _rows(
                database, "outbox.bury", {**values, "ids": list(dead), "reasons": [dead[one] for one in dead]}
            )
        if again:
            told = {**values, "ids": list(again), "waits": [again[one] for one in again], "reason": reason}
            changed += _rows(database, "outbox.put_off", told)
        if changed:
            database.rows("outbox.pause", {"key": key, "failures": failures, "pause": pause})
    return changed


def _rows(database: Database, name: str, values: Mapping[str, Any]) -> int:
    row = database.row(name, values)
    assert row is not None
    return int(row["rows"])


def may_send(database: Database, key: int, name: str, lease: Lease | None = None) -> Sending:
    """Return what stands against sending another batch of the season ``name`` now; to be asked before each.

    Raises LeaseLostError if ``lease``, under which it is sent, is no longer this runner's.
    """
    fence = lease.params if lease else {"holder": None, "fence": None}
    row = database.row("outbox.may_send", {**fence, "key": key})
    assert row is not None
    if lease is not None and not row["mine"]:
        raise leases.lost(lease)
    stopped = ""
    if row["held"] is not None:
        stopped = f"{name} is on hold: {row['held']}"
    elif row["since"] is not None:
        stopped = f"everything is {Pause(row['since'], row['who'], row['because']).told}"
    until = row["until"] if row["until"] is not None and row["until"] > row["now"] else None
    return Sending(stopped, until, row["failures"], row["now"])


def paused(database: Database, key: int) -> tuple[datetime | None, int]:
    """Return until when the season's target is left alone, None if it is not, and its failures in a row."""
    row = database.row("outbox.paused_until", {"key": key})
    assert row is not None
    return row["until"], row["failures"]


def waiting(database: Database, key: int) -> Waiting:
    """Return what of a season is not settled yet."""
    row = database.row("outbox.waiting", {"key": key})
    assert row is not None
    return Waiting(row["grants"], row["at"], tuple(row["holders"] or ()))


def let_go(database: Database, key: int, holders: Sequence[str]) -> None:
    """End the claims of deliverers that are known to have died; what they sent is sent again, under the same ids."""
    database.rows("outbox.let_go", {"key": key, "holders": list(holders)})


def finish(database: Database, key: int) -> None:
    """Note each delivery of the season of which nothing waits any more as delivered."""
    database.rows("outbox.finish", {"key": key})


def delivered(database: Database, key: int) -> int | None:
    """Return how many grants were delivered, dead letters among them, None while the season's delivery goes on."""
    found = next((one for one in planned(database, key) if one.correction == 0), None)
    return found.grants if found is not None and found.delivered_at is not None else None


def settled(database: Database, key: int, correction: int = 0) -> tuple[int, int]:
    """Return how many grants were acknowledged, and how many are dead letters."""
    row = database.row("outbox.settled", {"key": key, "correction": correction})
    assert row is not None
    return row["acknowledged"], row["dead"]


def counts(database: Database, key: int) -> list[dict[str, Any]]:
    """Return the outbox by correction and state: ``grants``, ``claimed`` of them, and the next ``due_at``."""
    return [dict(row) for row in database.rows("outbox.counts", {"key": key})]


def dead_letters(database: Database, key: int, limit: int) -> list[dict[str, Any]]:
    """Return up to ``limit`` dead letters with their reason."""
    return [dict(row) for row in database.rows("outbox.dead", {"key": key, "limit": limit})]


def retry(database: Database, key: int, *, who: str, because: str = "") -> tuple[int, int]:
    """Let dead letters be sent again, and what waits for its next try be due now; return how many of each."""
    with database.transaction():
        hurried = _rows(database, "outbox.hurry", {"key": key})
        revived = _rows(database, "outbox.revive", {"key": key})
        database.rows("outbox.reopen", {"key": key})
        detail = {"because": because, "dead": revived, "waiting": hurried}
        journal.write(database, key, "delivery retried", who=who, detail=detail)
    return revived, hurried


def owing(database: Database, board: str) -> list[str]:
    """Return the board's seasons past their deliver step and not on hold, of which some grant is not settled."""
    return [row["season"] for row in database.rows("outbox.owing", {"board": board})]


def of_player(database: Database, key: int, ids: Sequence[Any]) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the outbox rows of these grants by correction and grant id."""
    rows = database.rows("outbox.of_player", {"key": key, "ids": list(ids)})
    return {(row["correction"], str(row["grant_id"])): dict(row) for row in rows}
