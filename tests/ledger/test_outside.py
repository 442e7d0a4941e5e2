"""A ledger of the user's own: bound parameters, checked columns, types and rows, read only; faults hold by name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from leaderboard.errors import AccessError, FinaleError, UnavailableError
from leaderboard.truth import OutsideLedger
from ledger import outside
from ledger.outside import OutsideLedgerError, Source
from tests.ledger.support import YEAR, board

GOOD = "select player as player_id, sum(points) as points, max(at) as reached_at from game group by player"
AT = datetime(2021, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def game(postgres_url: str) -> Iterator[psycopg.Connection]:
    """The user's database: a table of scores that Finale knows nothing of."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("create table game (player text, points bigint, at timestamptz, season text)")
        rows = [("ann", 5, AT, "s2021"), ("ann", 2**53, AT, "s2021"), ("é'--;%", -3, AT, "s2020")]
        connection.cursor().executemany("insert into game values (%s, %s, %s, %s)", rows)
        yield connection


def source(url: str, sql: str = GOOD, *, timed: bool = False, timeout: float = 60) -> Source:
    made = board(ledger={"sql": sql}, ties="first_to_reach" if timed else "shared")
    assert isinstance(made.ledger, OutsideLedger)
    return Source(url, made.ledger, made, YEAR, timeout)


def read(of: Source) -> dict[bytes, tuple[int, datetime]]:
    with outside.reader(of) as reader:
        return {row["player_id"]: (row["points"], row["reached_at"]) for row in reader.read_all().to_pylist()}


def test_c72_sums_are_whole_numbers(game: psycopg.Connection, postgres_url: str) -> None:
    """C72, C86: sum(bigint) is numeric and comes out whole and exact; ids are the UTF-8 bytes that Redis has."""
    assert read(source(postgres_url)) == {b"ann": (2**53 + 5, AT), "é'--;%".encode(): (-3, AT)}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("season = %(season)s", {b"ann"}),
        ("at >= %(starts_at)s and at < %(ends_at)s and player like 'a%%'", {b"ann"}),
        ("at >= %(ends_at)s", set()),
        ("at < %(starts_at)s", set()),
        ("season <> %(board)s", {b"ann", "é'--;%".encode()}),
    ],
)
def test_c73_parameters_are_bound(
    game: psycopg.Connection, postgres_url: str, where: str, expected: set[bytes]
) -> None:
    """C73: the season's bounds as timestamptz in UTC, its id and the board; %% is a per cent sign."""
    once = "(select distinct on (player) * from game) g"
    sql = f"select player as player_id, points, at as reached_at from {once} where {where}"
    assert read(source(postgres_url, sql)).keys() == expected


@pytest.mark.parametrize(
    ("expression", "identity"),
    [
        ("'7'::varchar(9)", b"7"),
        ("7::int", b"7"),
        ("7::bigint", b"7"),
        ("'\\x00ff'::bytea", b"\x00\xff"),
        ("'6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b'::uuid", b"6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b"),
    ],
)
@pytest.mark.parametrize("points", ["4::smallint", "4::int", "4::bigint", "4::numeric", "4.000::numeric(9, 3)"])
def test_c86_ids_and_points_of_every_allowed_type(
    postgres_url: str, expression: str, identity: bytes, points: str
) -> None:
    """C86: normalised to one form: bytes and int64."""
    sql = f"select {expression} as player_id, {points} as points, null::timestamptz as reached_at"
    assert read(source(postgres_url, sql)) == {identity: (4, None)}


BAD = [
    ("select player as player_id, points from game", "returns the columns player_id, points"),
    ("select player as player_id, points, at as reached_at, season from game", "returns the columns"),
    ("select player as id, points, at as reached_at from game", "returns the columns id"),
    ("select player as player_id, points, points, at as reached_at from game", "player_id, points, points"),
    ("select player as player_id, points::float8 as points, at as reached_at from game", "points as float8"),
    ("select player as player_id, points::text as points, at as reached_at from game", "points as text"),
    ("select player as player_id, points::money as points, at as reached_at from game", "points as money"),
    ("select player as player_id, points, at::timestamp as reached_at from game", "reached_at as timestamp"),
    ("select player as player_id, points, at::date as reached_at from game", "reached_at as date"),
    ("select season::char(9) as player_id, points, at as reached_at from game", "player_id as bpchar"),
    ("select player as player_id, 1.5::numeric as points, at as reached_at from game", "no whole number"),
    ("select player as player_id, 'nan'::numeric as points, at as reached_at from game", "refused by PostgreSQL"),
    ("select player as player_id, 1e30::numeric as points, at as reached_at from game", "refused by PostgreSQL"),
    ("select player as player_id, null::bigint as points, at as reached_at from game", "a points that is null"),
    ("select null::text as player_id, points, at as reached_at from game", "a player_id that is null"),
    ("select 1 where", "refused by PostgreSQL"),
    ("select player as player_id, points, at as reached_at from nowhere", "nowhere"),
    ("insert into game select * from game returning player as player_id, points, at as reached_at", "refused"),
    ("with w as (delete from game returning *) select player as player_id, points, at as reached_at from w", "refused"),
    ("select player as player_id, nextval('counter') as points, at as reached_at from game", "writes"),
    ("select player as player_id, wrote() as points, at as reached_at from game", "writes"),
    ("select * from game) t; drop table game; select * from (select 1", "refused"),
    ("select * from game) t; commit; drop table game; select * from (select 1", "refused"),
]


@pytest.mark.parametrize(("sql", "words"), BAD)
def test_what_is_no_ledger_is_an_error_that_names_it(
    game: psycopg.Connection, postgres_url: str, sql: str, words: str
) -> None:
    """SQL that writes, other columns, floats, text, NULLs: an error with the remedy, and nothing was changed."""
    game.execute("create sequence counter")
    game.execute(
        "create function wrote() returns bigint language sql as"
        " 'insert into game values (null, 1, null, null) returning points'"
    )
    before = game.execute("select * from game order by 1, 2").fetchall()
    with pytest.raises(OutsideLedgerError) as raised:
        read(source(postgres_url, sql))
    assert words in f"{raised.value.message} {raised.value.detail}"
    assert raised.value.hint
    assert game.execute("select * from game order by 1, 2").fetchall() == before
    assert game.execute("select is_called from counter").fetchone() == (False,)


@pytest.mark.parametrize("at", ["null::timestamptz", "'infinity'::timestamptz", "'-infinity'::timestamptz"])
def test_a_board_that_compares_times_needs_them(game: psycopg.Connection, postgres_url: str, at: str) -> None:
    """NULL and infinity are refused where scores hold a time, naming the player, and do not matter elsewhere."""
    sql = f"select distinct on (player) player as player_id, points, {at} as reached_at from game where player = 'ann'"
    assert read(source(postgres_url, sql)).keys() == {b"ann"}
    with pytest.raises(OutsideLedgerError, match="player ann a reached_at that is null or infinite"):
        read(source(postgres_url, sql, timed=True))


def test_players_given_twice_are_named(game: psycopg.Connection, postgres_url: str) -> None:
    sql = "select player as player_id, points, at as reached_at from game"
    error = outside.repeated(source(postgres_url, sql))
    assert "ann 2 times" in error.message and "group by player_id" in error.hint


def test_a_statement_timeout_is_told_and_the_next_try_starts_clean(game: psycopg.Connection, postgres_url: str) -> None:
    """The limit is named; the same source, asked again with SQL that is quick enough, answers."""
    slow = "select player as player_id, points, at as reached_at from game, pg_sleep(9)"
    with pytest.raises(OutsideLedgerError, match=r"did not finish within 0\.3 seconds"):
        read(source(postgres_url, slow, timeout=0.3))
    assert read(source(postgres_url))


def test_a_server_that_goes_away_in_the_middle_is_unavailable(game: psycopg.Connection, postgres_url: str) -> None:
    """No fault of the SQL: exit code 10, and the next try starts clean."""
    game.execute(
        "create table many as select n::text as player_id, n as points, now() as reached_at"
        " from generate_series(1, 300000) n"
    )
    of = source(postgres_url, "select * from many")
    with pytest.raises(UnavailableError), outside.reader(of) as reader:
        reader.read_next_batch()
        game.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        for _ in reader:
            pass
    assert len(read(of)) == 300_000


LATE_ERRORS = [
    ("57014", OutsideLedgerError, "did not finish within"),
    ("25006", OutsideLedgerError, "writes: Anweisung nicht möglich"),
    ("22012", OutsideLedgerError, "refused by PostgreSQL: Anweisung nicht möglich"),
    ("42501", AccessError, "may not be read"),
    ("57P01", UnavailableError, "broke off"),
    ("53200", UnavailableError, "broke off"),
    ("40001", UnavailableError, "broke off"),
]


@pytest.mark.parametrize(("code", "kind", "words"), LATE_ERRORS)
def test_an_error_while_rows_are_streamed_is_told_by_its_code(
    game: psycopg.Connection, postgres_url: str, code: str, kind: type[FinaleError], words: str
) -> None:
    """A server whose lc_messages is not English: what it raises after a hundred thousand rows is known by its code."""
    game.execute(
        "create function broken(n bigint) returns bigint language plpgsql as $$ begin if n = 150000 then"
        f" raise exception 'Anweisung nicht möglich' using errcode = '{code}'; end if; return n; end $$"
    )
    rows = "select n::text as player_id, broken(n) as points, now() as reached_at from generate_series(1, 200000) n"
    with pytest.raises(kind, match=words) as raised, outside.reader(source(postgres_url, rows)) as reader:
        assert reader.read_next_batch().num_rows
        for _ in reader:
            pass
    assert type(raised.value) is kind
    assert read(source(postgres_url))


def test_one_state_of_the_ledger(game: psycopg.Connection, postgres_url: str) -> None:
    """What is written while it is read is not in it."""
    game.execute(
        "create table many as select n::text as player_id, n as points, now() as reached_at"
        " from generate_series(1, 300000) n"
    )
    with outside.reader(source(postgres_url, "select * from many")) as reader:
        first = reader.read_next_batch().num_rows
        game.execute("delete from many")
        assert first + sum(batch.num_rows for batch in reader) == 300_000


def test_no_server_shows_no_password() -> None:
    with pytest.raises(FinaleError) as raised:
        read(source("postgresql://u:s3cret@127.0.0.1:1/game"))
    assert isinstance(raised.value, UnavailableError) and "s3cret" not in str(raised.value)
