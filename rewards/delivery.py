"""Delivery, pure: what an answer means for each grant that was sent, when it goes again, at what pace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

LONGEST_WAIT = timedelta(minutes=10)  #: between two tries, unless a receiver asks for longer
LONGEST_ASKED = timedelta(hours=1)  #: what a receiver may ask for
_REASON = 200  # characters of a receiver's reason that are kept


@dataclass(frozen=True, slots=True)
class Batch:
    """Grants that are sent together: all of one season, and of the same correction (0: the season's own grants).

    ``rows`` are plain values: grant_id, player_id (bytes), rule, item, amount, position, rank.
    """

    board: str
    season: str
    correction: int
    binary: bool
    rows: Sequence[Mapping[str, Any]]

    @property
    def ids(self) -> list[str]:
        return [str(row["grant_id"]) for row in self.rows]

    @property
    def key(self) -> str:
        """The batch's idempotency key: it follows from the grants in it, so the same batch has the same one again."""
        return sha256("\n".join(sorted(self.ids)).encode()).hexdigest()[:32]

    def messages(self) -> list[dict[str, Any]]:
        """Return each grant as a receiver is given it; ids of players are lower-case hex on binary boards."""
        return [
            {
                "grant_id": str(row["grant_id"]),
                **({"corrects": str(row["corrects"])} if row.get("corrects") else {}),
                "player_id": row["player_id"].hex() if self.binary else row["player_id"].decode(),
                "rule": row["rule"],
                "item": row["item"],
                "amount": int(row["amount"]),
                "position": int(row["position"]),
                "rank": int(row["rank"]),
            }
            for row in self.rows
        ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target said of a batch: grants accepted, grants refused with a reason, and why nothing is known of others.

    ``wait`` is how long the target asked not to be sent anything. ``silent``: the target as a whole gave no usable
    answer.
    """

    accepted: frozenset[str] = frozenset()
    rejected: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    wait: timedelta | None = None

    @property
    def silent(self) -> bool:
        return not self.accepted and not self.rejected


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of the grants of a batch: each is in exactly one of these. ``pause``: of all of the target."""

    acknowledged: tuple[str, ...]
    dead: Mapping[str, str]  #: grant -> reason
    again: Mapping[str, timedelta]  #: grant -> how long from now
    reason: str
    failures: int  #: answers in a row that settled nothing
    pause: timedelta | None


def settle(
    sent: Mapping[str, int], answer: Answer, *, tries: int, backoff: timedelta, failures: int, chance: float
) -> Settlement:
    """Return what an answer to a batch comes to. ``sent`` has for each grant the tries before this one.

    What the target refused by name is a dead letter at once; what it said nothing of is sent again, until it was tried
    ``tries`` times. A target that settled nothing is left alone for a while that doubles with ``failures``, the number
    of such answers before. ``chance`` is a number in [0, 1) by which waits are spread.
    """
    known = answer.accepted & answer.rejected.keys()
    reason = answer.failure or "the answer does not name this grant"
    acknowledged = tuple(one for one in sent if one in answer.accepted - known)
    dead = {one: _short(answer.rejected[one]) for one in sent if one in answer.rejected and one not in known}
    again: dict[str, timedelta] = {}
    for one, before in sent.items():
        if one in answer.accepted - known or one in dead:
            continue
        if before + 1 >= tries:
            dead[one] = _short(f"tried {before + 1} times: {reason}")
        else:
            again[one] = wait_before(before + 1, backoff, chance)
    nothing = answer.silent
    pause = wait_before(failures + 1, backoff, chance) if nothing else None
    if answer.wait is not None:
        pause = max(pause or timedelta(0), min(answer.wait, LONGEST_ASKED))
    return Settlement(acknowledged, dead, again, _short(reason), failures + 1 if nothing else 0, pause)


def wait_before(tries: int, backoff: timedelta, chance: float) -> timedelta:
    """Return how long to wait after ``tries`` tries: ``backoff`` doubled with each, between half of that and all of it.

    Half of it is left to ``chance``, so that many deliverers do not come back at one moment.
    """
    doubled: int = 2 ** min(tries - 1, 20)
    whole = min(backoff * doubled, LONGEST_WAIT)
    return whole / 2 + whole / 2 * chance


def _short(reason: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in reason)
    return plain if len(plain) <= _REASON else f"{plain[: _REASON - 1]}…"


def batch_size(batch: int, per_second: float, tries: int) -> int:
    """Return how many grants may go together after ``tries`` tries of each: never more than a second's worth.

    The first repetition is of the same batch, so that it has the same key. After that they go in ever smaller ones:
    a single grant that makes a receiver fail then keeps only itself back.
    """
    return max(1, min(batch, int(per_second)) >> 2 * min(max(tries - 1, 0), 16))


def rest_after(grants: int, per_second: float) -> timedelta:
    """Return how long to wait after sending ``grants``, so that the rate is kept."""
    return timedelta(seconds=grants / per_second)
