"""Grants: a partition a season, loaded whole or not at all, readable by the game once delivered (I5)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pyarrow as pa
import pytest

from leaderboard.errors import ArchiveMismatchError, FinaleError, LeaseLostError
from leaderboard.season import Season
from ledger import grants, outbox
from ledger.database import Database
from ledger.grants import Loaded
from ledger.leases import Lease
from tests.ledger.support import board, closing, count, taken_over

#: More than a double holds exactly, and more than int8 holds when summed.
MUCH = 2**62 + 1


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


@pytest.fixture
def sealed(database: Database) -> tuple[Season, Lease]:
    return closing(database)


def _batch(rows: int, item: str = "gems", amount: int = 100, player: str | bytes = "p") -> pa.RecordBatch:
    """Return grants to ``rows`` players, position by position."""
    ids = [player + str(n) if isinstance(player, str) else player + str(n).encode() for n in range(1, rows + 1)]
    return pa.record_batch(
        {
            "grant_id": [str(uuid4()) for _ in ids],
            "player_id": ids,
            "rule": ["top"] * rows,
            "item": [item] * rows,
            "amount": pa.array([amount] * rows, pa.int64()),
            "position": pa.array(range(1, rows + 1), pa.int64()),
            "rank": pa.array([1] * rows, pa.int64()),
        }
    )


def test_c65_load_says_what_the_table_holds(database: Database, sealed: tuple[Season, Lease]) -> None:
    """C65, C69, C72: rows and amounts are counted in the table, exact beyond doubles and beyond int8."""
    season, lease = sealed
    batches = [_batch(3, "gems", MUCH), _batch(2, "title.champion", 1, b"\xff")]
    expected = Loaded(5, {"gems": 3 * MUCH, "title.champion": 2})
    assert grants.loaded(database, season.key) is None
    assert grants.load(database, lease, batches, expected) == expected
    assert grants.loaded(database, season.key) == expected
    [row] = database.run(b"select * from finale.grants where player_id = 'p1'")
    identity = UUID(batches[0].column("grant_id")[0].as_py())
    assert row == {
        "season_id": season.key,
        "grant_id": identity,
        "player_id": b"p1",
        "rule": "top",
        "item": "gems",
        "amount": MUCH,
        "position": 1,
        "rank": 1,
    }


@pytest.mark.parametrize("expected", [Loaded(2, {"gems": 300}), Loaded(3, {"gems": 301}), Loaded(3, {"gold": 300})])
def test_i5_wrong_counts_commit_nothing(database: Database, sealed: tuple[Season, Lease], expected: Loaded) -> None:
    """I5: rows, amounts and items must all be those that were computed."""
    season, lease = sealed
    with pytest.raises(ArchiveMismatchError, match="nothing was committed"):
        grants.load(database, lease, [_batch(3)], expected)
    assert grants.loaded(database, season.key) is None
    assert grants.load(database, lease, [_batch(3)], Loaded(3, {"gems": 300})).rows == 3


def test_i5_loading_again_compares(database: Database, sealed: tuple[Season, Lease]) -> None:
    """I5: a second load adds nothing; one that computed otherwise is an error, and the first stands."""
    _, lease = sealed
    expected = Loaded(3, {"gems": 300})
    grants.load(database, lease, [_batch(3)], expected)
    before = database.run(b"select * from finale.grants order by grant_id")
    assert grants.load(database, lease, [_batch(3)], expected) == expected
    with pytest.raises(ArchiveMismatchError):
        grants.load(database, lease, [_batch(4)], Loaded(4, {"gems": 400}))
    assert database.run(b"select * from finale.grants order by grant_id") == before


def test_i5_a_load_that_breaks_off_leaves_nothing(database: Database, sealed: tuple[Season, Lease]) -> None:
    """I5, C71: an error in the midst of COPY undoes the partition, and the connection goes on."""
    season, lease = sealed

    def breaking() -> Iterator[pa.RecordBatch]:
        yield _batch(3)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        grants.load(database, lease, breaking(), Loaded(3, {"gems": 300}))
    assert database.run(b"select to_regclass('finale.grants_1') as found")[0]["found"] is None
    assert grants.load(database, lease, [_batch(3)], Loaded(3, {"gems": 300})).rows == 3
    assert season.key == lease.key


def test_i5_one_grant_id_twice_is_refused(database: Database, sealed: tuple[Season, Lease]) -> None:
    _, lease = sealed
    batch = _batch(2)
    with pytest.raises(FinaleError):
        grants.load(database, lease, [batch, batch], Loaded(4, {"gems": 400}))
    assert count(database, "grants") == 0


def test_i9_an_old_fence_loads_and_delivers_nothing(database: Database, sealed: tuple[Season, Lease]) -> None:
    season, lease = sealed
    taken_over(database, lease)
    with pytest.raises(LeaseLostError):
        grants.load(database, lease, [_batch(3)], Loaded(3, {"gems": 300}))
    with pytest.raises(LeaseLostError):
        outbox.plan(database, lease, "table")
    assert grants.loaded(database, season.key) is None and outbox.delivered(database, season.key) is None


def test_the_game_sees_grants_only_once_delivered(database: Database, sealed: tuple[Season, Lease]) -> None:
    season, lease = sealed
    grants.load(database, lease, [_batch(3)], Loaded(3, {"gems": 300}))
    assert count(database, "payable") == 0 and outbox.delivered(database, season.key) is None
    assert outbox.plan(database, lease, "table").grants == 3
    assert outbox.plan(database, lease, "table").grants == 3
    assert count(database, "delivery") == 1 and outbox.delivered(database, season.key) == 3
    [row] = database.run(b"select board, season, amount, position from finale.payable where player_id = 'p2'")
    assert row == {"board": "goals", "season": "s2021", "amount": 100, "position": 2}


def test_a_season_without_grants_is_loaded_and_delivered(database: Database, sealed: tuple[Season, Lease]) -> None:
    """No rows are a result too, different from not having been loaded."""
    season, lease = sealed
    assert grants.load(database, lease, [], Loaded(0, {})) == Loaded(0, {})
    assert grants.loaded(database, season.key) == Loaded(0, {})
    assert outbox.plan(database, lease, "table").grants == 0
    assert grants.tiers(database, season.key) == []


def test_tiers_by_the_first_position_they_pay(database: Database, sealed: tuple[Season, Lease]) -> None:
    season, lease = sealed
    grants.load(database, lease, [_batch(2, "title", 1), _batch(3)], Loaded(5, {"gems": 300, "title": 2}))
    assert grants.tiers(database, season.key) == [
        {"rule": "top", "item": "gems", "grants": 3, "amount": 300, "first": 1},
        {"rule": "top", "item": "title", "grants": 2, "amount": 2, "first": 1},
    ]


def test_seasons_load_side_by_side(database: Database, ledger_url: str) -> None:
    """Partitions of several seasons are attached at the same time; each is in the season's own table."""
    held = [closing(database, board(f"board{n}"))[1] for n in range(4)]

    def load(lease: Lease) -> int:
        with Database(ledger_url) as own:
            return grants.load(own, lease, [_batch(lease.key)], Loaded(lease.key, {"gems": 100 * lease.key})).rows

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(load, held)) == [lease.key for lease in held]
    plan = database.run(b"explain select * from finale.grants where season_id = 2")
    assert any("grants_2" in str(row) for row in plan) and not any("grants_1" in str(row) for row in plan)
