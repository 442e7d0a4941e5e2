"""Forgetting the live keys of a board over several sorted sets: key by key, none before the last was proved (I1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

from archive import crowded
from archive.changes import compare
from archive.columns import Page
from archive.drain import pages
from archive.instant import Connect
from archive.merge import Rows, merged
from archive.pacing import PAGE_BUDGET, PAGE_ROWS, divided
from archive.proof import DisturbedError, ProofConnection
from archive.refusals import CrowdedError
from archive.removal import Departing, Departure, KeyChangedError, LeavingError, Removal, naming
from leaderboard.errors import FinaleError

_AT_ONCE = 8  # servers


def remove_all(
    connect: Connect,
    departures: Sequence[Departure],
    *,
    descending: bool,
    archived: Callable[[], Iterable[Any]],
    proved: Callable[[Sequence[str]], None],
    page_rows: int = PAGE_ROWS,
    page_budget: timedelta = PAGE_BUDGET,
) -> tuple[Removal, ...]:
    """Forget each key as ``archive.removal.remove`` does, in its order, once all of them were proved under WATCH.

    ``proved`` is called with the keys that are there, between the last proof and the first removal, to note that those
    of them that are gone afterwards were removed.
    ``archived`` gives the sealed rows of all keys. Safe to repeat: keys that are gone are ``absent``, those left are
    proved anew. A key that a server without memory left under its private name was proved by an earlier call; it is
    taken up again in its turn, after the proof of the others.

    Raises what ``archive.crowded.remove`` raises; before ``proved`` was called every key is untouched.
    """
    rows, size = divided(page_rows, len(departures))
    drain = partial(pages, descending=descending, page_rows=rows, page_budget=page_budget, page_bytes=size)
    with ExitStack() as stack:
        proofs = [stack.enter_context(connect(departure.sealed.key)) for departure in departures]
        leaving = [_watched(proof, departure) for proof, departure in zip(proofs, departures, strict=True)]

        def told() -> str:
            if not all(one is not None and one.present for one in leaving):
                return "who differs is not told, since other shards are gone already"
            watched = list(zip(proofs, departures, strict=True))
            return str(compare(_together(watched, drain, descending), archived(), descending=descending))

        here = [(proof.address, one) for proof, one in zip(proofs, leaving, strict=True) if one is not None]
        _prove(here, drain, told)
        proved([at.sealed.key for at, one in zip(departures, leaving, strict=True) if one is None or one.present])
        return tuple(
            _execute(connect, departure, one, drain) for departure, one in zip(departures, leaving, strict=True)
        )


def _prove(
    leaving: Sequence[tuple[str, Departing]],
    drain: Callable[[ProofConnection, str], Iterator[Page]],
    told: Callable[[], str],
) -> None:
    """See that each key, given with its server, is what was sealed: servers side by side, each key after key.

    Raises what :meth:`Departing.prove` raises: of a key that differs, if there is one, since that does not pass by
    itself; else of the first. ``told`` names what differs once nobody reads any more, since it reads all keys again.
    """

    def fails(keys: Sequence[Departing]) -> tuple[Departing, FinaleError] | None:
        for one in keys:
            try:
                one.prove(drain)
            except FinaleError as error:
                return one, error
        return None

    shares = [[one for at, one in leaving if at == server] for server in dict.fromkeys(at for at, _ in leaving)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="finale-prove") as pool:
        failed = dict(filter(None, pool.map(fails, shares)))
    errors = [failed[one] for _, one in leaving if one in failed]
    others = [error for error in errors if not isinstance(error, KeyChangedError)]
    for error in errors:
        if isinstance(error, KeyChangedError):
            # A key that could not be proved cannot be read again either: its WATCH is over, or its connection.
            raise naming(error, partial(_untold, others[0]) if others else told)
    if others:
        raise others[0]


def _untold(error: FinaleError) -> str:
    if isinstance(error, DisturbedError):
        return "who differs is not told, since other shards are being written to"
    raise error


def _watched(proof: ProofConnection, departure: Departure) -> Departing | None:
    """Return the key under WATCH; None for one with its private name, from an earlier call that had proved it."""
    try:
        return Departing(proof, departure)
    except LeavingError:
        return None


def _together(
    watched: Sequence[tuple[ProofConnection, Departure]],
    drain: Callable[[ProofConnection, str], Iterator[Page]],
    descending: bool,
) -> Iterator[Page]:
    """Yield the rows of all keys in board order."""
    rows = [proof.watched.rows[departure.sealed.key] for proof, departure in watched]
    sources = [Rows(number, drain(proof, departure.sealed.key)) for number, (proof, departure) in enumerate(watched)]
    return (block.page for block in merged(sources, rows, descending=descending))


def _execute(
    connect: Connect,
    departure: Departure,
    leaving: Departing | None,
    drain: Callable[[ProofConnection, str], Iterator[Page]],
) -> Removal:
    if leaving is not None:
        try:
            return leaving.execute()
        except CrowdedError:
            pass  # this server has no memory for a transaction
    return crowded.forget(
        lambda: connect(departure.sealed.key), departure, drain, lambda *_: "it was equal when all keys were proved"
    )
