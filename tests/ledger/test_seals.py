"""Seals: exact bytes, committed once under the fence, in one chain a board."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from hashlib import sha256

import pytest

from leaderboard.errors import LeaseLostError, SeasonHeldError
from leaderboard.season import Bounds
from leaderboard.states import State
from ledger import seals, seasons
from ledger.database import Database
from ledger.leases import Lease
from tests.ledger.support import NOON, YEAR, board, closing, leased, season_of, taken_over


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _body(number: int, previous: str | None, now: datetime) -> bytes:
    return f"{number} {previous} {now.isoformat()} \x00".encode() + b"\xff"


def _season(database: Database, number: int, name: str = "goals") -> Lease:
    bounds = Bounds(YEAR.starts_at.replace(year=2000 + number), YEAR.ends_at.replace(year=2001 + number), f"s{number}")
    seasons.create(database, board(name), bounds, database.now(), who="test", state=State.OPEN)
    return leased(database, season_of(database, name, bounds.id))


def test_a_seal_is_found_byte_for_byte(database: Database) -> None:
    season, lease = closing(database)
    row = seals.commit(database, lease, "goals", "standings", _body)
    assert seals.find(database, season.key, "standings") == row
    assert (row.number, row.previous, row.sha256) == (1, None, sha256(row.body).hexdigest())
    assert row.body.startswith(b"1 None 20") and row.body.endswith(b"\x00\xff")
    assert seals.find(database, season.key, "grants") is None


def test_i8_committing_again_gives_what_was_committed(database: Database) -> None:
    """I8: the bytes do not change when the step is repeated, also by another runner with other bytes."""
    _, lease = closing(database)
    row = seals.commit(database, lease, "goals", "standings", _body)

    def never(*_: object) -> bytes:
        raise AssertionError("built again")

    assert seals.commit(database, lease, "goals", "standings", never) == row
    assert seals.commit(database, taken_over(database, lease), "goals", "standings", never) == row


def test_i9_an_old_fence_commits_no_seal(database: Database) -> None:
    season, lease = closing(database)
    taken_over(database, lease)
    with pytest.raises(LeaseLostError):
        seals.commit(database, lease, "goals", "standings", _body)
    assert seals.find(database, season.key, "standings") is None


def test_seals_of_a_board_form_a_chain(database: Database) -> None:
    """Number and hash of the seal before, across seasons and kinds; another board has a chain of its own."""
    one, two = _season(database, 1), _season(database, 2)
    rows = [
        seals.commit(database, one, "goals", "standings", _body),
        seals.commit(database, one, "goals", "grants", _body),
        seals.commit(database, two, "goals", "standings", _body),
    ]
    assert [row.number for row in rows] == [1, 2, 3]
    assert [row.previous for row in rows] == [None, rows[0].sha256, rows[1].sha256]
    assert seals.commit(database, _season(database, 1, "other"), "other", "standings", _body).number == 1


def test_seals_committed_at_once_chain_properly(database: Database, ledger_url: str) -> None:
    """Ten seasons of a board sealed at the same time: ten numbers, each seal naming the one before."""
    held = [_season(database, number) for number in range(10)]

    def seal(lease: Lease) -> seals.SealRow:
        with Database(ledger_url) as own:
            return seals.commit(own, lease, "goals", "standings", _body)

    with ThreadPoolExecutor(10) as pool:
        rows = sorted(pool.map(seal, held), key=lambda row: row.number)
    assert [row.number for row in rows] == list(range(1, 11))
    assert [row.previous for row in rows] == [None, *(row.sha256 for row in rows[:-1])]


def test_a_seal_that_cannot_be_built_leaves_no_gap(database: Database) -> None:
    one, two = _season(database, 1), _season(database, 2)

    def broken(*_: object) -> bytes:
        raise RuntimeError("no bytes")

    with pytest.raises(RuntimeError):
        seals.commit(database, one, "goals", "standings", broken)
    assert seals.commit(database, two, "goals", "standings", _body).number == 1


def test_adopting_takes_the_other_seals_bytes(database: Database) -> None:
    """I2: who loses the put keeps the winner's bytes, and the next seal of the chain names those."""
    one, two = _season(database, 1), _season(database, 2)
    seals.commit(database, one, "goals", "standings", _body)
    before = sha256(b"the seal before").hexdigest()
    seals.adopt(database, one, "goals", "standings", b"theirs", 7, before)
    adopted = seals.find(database, one.key, "standings")
    assert adopted is not None
    assert (adopted.body, adopted.number, adopted.previous) == (b"theirs", 7, before)
    following = seals.commit(database, two, "goals", "standings", _body)
    assert (following.number, following.previous) == (8, sha256(b"theirs").hexdigest())
    with pytest.raises(LeaseLostError):
        seals.adopt(database, Lease(one.key, "nobody", one.fence), "goals", "standings", b"mine", 7, before)


def test_i2_two_chains_of_one_board_are_held(database: Database) -> None:
    """I2: a number that this ledger has for another season is not taken over; nothing is changed."""
    one, two = _season(database, 1), _season(database, 2)
    first = seals.commit(database, one, "goals", "standings", _body)
    second = seals.commit(database, two, "goals", "standings", _body)
    with pytest.raises(SeasonHeldError, match="seal 1 of the chain of goals"):
        seals.adopt(database, two, "goals", "standings", b"theirs", 1, None)
    assert seals.find(database, one.key, "standings") == first
    assert seals.find(database, two.key, "standings") == second


def test_times_given_to_the_builder_are_the_servers(database: Database) -> None:
    """I7: the seal's time is PostgreSQL's clock, aware and in UTC."""
    seen: list[datetime] = []

    def build(_: int, __: str | None, now: datetime) -> bytes:
        seen.append(now)
        return b"x"

    before = database.now()
    seals.commit(database, closing(database)[1], "goals", "standings", build)
    assert before <= seen[0] <= database.now() and seen[0] > NOON
