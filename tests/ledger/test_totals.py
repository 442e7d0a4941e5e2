"""Totals as Arrow: exact, in UTC, one state of the ledger, and errors in an operator's words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from psycopg import sql

from leaderboard.errors import AccessError, UnavailableError
from ledger import totals
from ledger.database import Database
from ledger.totals import Sum
from tests.ledger.support import NOON, await_that, result, season_of, take

SCHEMA = pa.schema([("player_id", pa.binary()), ("points", pa.int64()), ("reached_at", pa.timestamp("us", "UTC"))])


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _all(url: str, key: int) -> pa.Table:
    with totals.reader(url, key) as reader:
        return reader.read_all()


def test_c68_c72_totals_are_exact(database: Database, ledger_url: str) -> None:
    """C68, C72: whole numbers to the last unit, times to the microsecond, ids to the byte; sum and count agree."""
    top = 2**53 - 1
    at = datetime(2021, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    take(
        database,
        result("m1", b"\xff\x00", top, at),
        result("m1", "ann", top - 1),
        result("m1", "bob", -top),
        result("m1", "cat", 0),
        result("m2", "cat", 0, NOON + timedelta(days=400)),
    )
    season = season_of(database)
    found = _all(ledger_url, season.key)
    assert found.schema == SCHEMA
    assert {row["player_id"]: (row["points"], row["reached_at"]) for row in found.to_pylist()} == {
        b"\xff\x00": (top, at),
        b"ann": (top - 1, NOON),
        b"bob": (-top, NOON),
        b"cat": (0, NOON),
    }
    assert totals.summed(database, season.key) == Sum(4, top - 1)


def test_matches_come_in_the_order_of_their_players(database: Database, ledger_url: str) -> None:
    """Ids to the byte and in byte order, as facts are sealed; one who has none, and a season without anyone."""
    take(database, *(result(f"m{at}", who, at) for at, who in enumerate(["b", "a", b"\xff", "b", "é", "ab"])))
    with totals.matches(ledger_url, season_of(database).key) as reader:
        found = reader.read_all()
    assert found.schema == pa.schema([("player_id", pa.binary()), ("matches", pa.int64())])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (b"a", 1), (b"ab", 1), (b"b", 2), ("é".encode(), 1), (b"\xff", 1)
    ]  # fmt: skip  # in their order
    with totals.matches(ledger_url, 7) as reader:
        assert reader.read_all().num_rows == 0


def test_c72_an_empty_season_has_the_same_columns_and_the_sum_nought(database: Database, ledger_url: str) -> None:
    """C72: the sum of nothing is 0 and not null."""
    found = _all(ledger_url, 7)
    assert found.num_rows == 0 and found.schema == SCHEMA
    assert totals.summed(database, 7) == Sum(0, 0)


def test_sums_beyond_int8_are_exact(database: Database) -> None:
    database.run(
        b"insert into finale.player_total select 1, n::text::bytea, 9007199254740991, 'epoch', 1, 1"
        b" from generate_series(1, 2000) n"
    )
    assert totals.summed(database, 1) == Sum(2000, 2000 * (2**53 - 1))
    assert 2000 * (2**53 - 1) > 2**63


def test_times_are_utc_whatever_the_server_prefers(database: Database, ledger_url: str) -> None:
    take(database, result("m1"))
    name = sql.Identifier(database.run(b"select current_database() as name")[0]["name"])
    database.run(sql.SQL("alter database {} set timezone = 'Asia/Kolkata'").format(name))
    assert _all(ledger_url, season_of(database).key)["reached_at"].to_pylist() == [NOON]


def _many(database: Database) -> None:
    database.run(
        b"insert into finale.player_total select 1, n::text::bytea, n, 'epoch', 1, 1 from generate_series(1, 400000) n"
    )


def test_large_seasons_come_in_batches_of_one_state(database: Database, ledger_url: str) -> None:
    """What is written while the totals are read is not in them."""
    _many(database)
    with totals.reader(ledger_url, 1) as reader:
        batches = [reader.read_next_batch()]
        database.run(b"delete from finale.player_total")
        batches += list(reader)
    assert len(batches) > 1
    found = pa.Table.from_batches(batches)
    assert found.num_rows == 400_000
    assert pa.compute.sum(found["points"]).as_py() == 400_000 * 400_001 // 2


def test_a_server_that_goes_away_amid_reading_is_unavailable(database: Database, ledger_url: str) -> None:
    _many(database)
    with (
        pytest.raises(UnavailableError, match="broke off while totals were read"),
        totals.reader(ledger_url, 1) as reader,
    ):
        reader.read_next_batch()
        database.run(
            b"select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            b" where datname = current_database() and pid <> pg_backend_pid()"
        )
        for _ in reader:
            pass


def test_reading_may_stop_early(database: Database, ledger_url: str) -> None:
    """C71: a reader left before its end ends its COPY, and leaves no session behind."""
    _many(database)
    with totals.reader(ledger_url, 1) as reader:
        reader.read_next_batch()
    others = (
        b"select count(*) as n from pg_stat_activity where datname = current_database()"
        b" and pid <> pg_backend_pid() and backend_type = 'client backend'"
    )
    await_that(lambda: database.run(others)[0]["n"] == 0)


def test_errors_of_the_reader_of_the_rows_pass_untouched(database: Database, ledger_url: str) -> None:
    """An error of whoever uses the rows is not taken for one of the server."""
    take(database, result("m1"))
    with pytest.raises(OSError, match="disk full"), totals.reader(ledger_url, 1):
        raise OSError("disk full")


def test_database_without_schema_names_the_remedy(postgres_url: str) -> None:
    with pytest.raises(AccessError, match="finale db migrate"), totals.reader(postgres_url, 1) as reader:
        reader.read_all()


def test_no_server_is_unavailable() -> None:
    with pytest.raises(UnavailableError) as caught, totals.reader("postgresql://u:s3cret@127.0.0.1:1/finale", 1):
        pass
    assert "s3cret" not in str(caught.value)
