"""Servers and stores that are away, refuse or do not exist: a clear error, an exit code, no secret, nothing lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from tests.support.cli import World, differing, finale
from tests.support.s3 import S3Server, s3_server

SECRET = "hunter2"
CONFIG = """
[runner]
postgres_connect_timeout = "2s"
redis_timeout = "2s"
[board.cup]
ties = "shared"
rewards = "cup.toml"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
KEY = "leaderboard:cup:one"
ROWS = ("m1,ann,5,2026-01-02T00:00:00Z", "m1,bob,3,2026-01-02T00:00:00Z")
ALL = [
    ("close", "cup", "one"),
    ("tick",),
    ("standings", "cup", "one"),
    ("results", "apply", "cup", "one", "--all"),
]


@pytest.fixture
def cup(world: World) -> World:
    """A played season that is due."""
    world.configure(CONFIG, cup=TABLE)
    world.played("cup", *ROWS)
    world.sql("update finale.season set backfill = false")
    return world


@contextmanager
def nobody_there() -> Iterator[str]:
    """Give an address at which no server listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def closes_afterwards(world: World) -> None:
    """Check that with the right servers the season ends as if nothing had been."""
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    rows = finale("standings", "cup", "one", "--json").ok().json
    assert [(row["player_id"], row["points"]) for row in rows] == [("ann", 5), ("bob", 3)]
    assert world.sql("select count(*) from finale.payable") == [(2,)]


@pytest.mark.parametrize("command", ALL)
def test_no_redis(cup: World, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """Redis does not answer: exit 10 names the address, not the password; ledger and store are as before."""
    good = os.environ["FINALE_REDIS"]
    before = cup.picture("lease", "bucket_lease", "pending")
    with nobody_there() as address:
        monkeypatch.setenv("FINALE_REDIS", f"redis://:{SECRET}@{address}/0")
        answer = finale(*command).refused(10, f"Redis at {address} did not answer", "check")
    assert SECRET not in answer.out + answer.err
    assert differing(before, cup.picture("lease", "bucket_lease", "pending")) == []
    monkeypatch.setenv("FINALE_REDIS", good)
    closes_afterwards(cup)


def test_an_import_without_redis_loses_no_row(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger has every row though Redis is away: exit 10 says so, and the totals are applied later."""
    good = os.environ["FINALE_REDIS"]
    path = cup.results(*ROWS, "m2,eve,9,2026-01-03T00:00:00Z")
    with nobody_there() as address:
        monkeypatch.setenv("FINALE_REDIS", f"redis://{address}/0")
        answer = finale("results", "import", str(path), "--board", "cup", "--json")
        answer.refused(10, "every row is in the ledger", address)
        assert (answer.json["new"], answer.json["repeated"], answer.json["applied"]) == (1, 2, 0)
    monkeypatch.setenv("FINALE_REDIS", good)
    assert "1 total written" in finale("results", "apply", "cup", "one").ok().out
    assert finale("standings", "cup", "one", "--top", "1", "--json").ok().json[0]["player_id"] == "eve"


@pytest.mark.parametrize("command", [*ALL, ("season", "list"), ("db", "migrate")])
def test_no_postgresql(cup: World, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """PostgreSQL does not answer: exit 10 names the address, not the password; nothing was touched."""
    before = cup.picture()
    with nobody_there() as address:
        monkeypatch.setenv("FINALE_POSTGRES", f"postgresql://game:{SECRET}@{address}/finale")
        answer = finale(*command).refused(10, f"PostgreSQL at {address}/finale did not answer", "FINALE_POSTGRES")
    assert SECRET not in answer.out + answer.err
    assert differing(before, cup.picture()) == []


def test_a_ledger_without_its_schema_says_what_to_run(
    cup: World, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """An empty database: exit 11 and the hint to migrate; migrate says what it applied, and nothing the second time."""
    monkeypatch.setenv("FINALE_POSTGRES", postgres_url)
    finale("season", "list").refused(11, "lacks", "finale db migrate")
    assert finale("db", "migrate", "--json").ok().json["applied"]
    assert finale("db", "migrate").ok().out == "the schema is up to date\n"
    assert finale("season", "list", "--json").ok().json == []


def test_a_wrong_redis_password(cup: World, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer) -> None:
    """Redis refuses the login, without a password and with a wrong one: exit 11, no secret; the right one works."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("requirepass", "right-" + SECRET)
    before = cup.picture("lease", "bucket_lease", "pending")
    for url in (redis_server.url, redis_server.url.replace("unix://", f"unix://:{SECRET}@")):
        monkeypatch.setenv("FINALE_REDIS", url)
        answer = finale("close", "cup", "one").refused(11, "refused the login", "check user and password")
        assert SECRET not in answer.out + answer.err
    assert differing(before, cup.picture("lease", "bucket_lease", "pending")) == []
    monkeypatch.setenv("FINALE_REDIS", redis_server.url.replace("unix://", f"unix://:right-{SECRET}@"))
    finale("results", "apply", "cup", "one", "--all").ok()
    closes_afterwards(cup)


def test_a_wrong_postgresql_password(
    cup: World, monkeypatch: pytest.MonkeyPatch, postgres_server: PostgresServer
) -> None:
    """PostgreSQL refuses the login, without a password or with a wrong one: exit 11, no secret; the right one works."""
    superuser = postgres_server.database_url("finale")
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(f"create role game login superuser password 'right-{SECRET}'".encode())
        (postgres_server.data / "pg_hba.conf").write_text("local all game scram-sha-256\nlocal all all trust\n")
        connection.execute("select pg_reload_conf()")
    before = cup.picture()
    for login in ("game", f"game:{SECRET}"):
        monkeypatch.setenv("FINALE_POSTGRES", superuser.replace("finale@", f"{login}@", 1))
        answer = finale("close", "cup", "one").refused(11, "refused the login", "check user and password")
        assert SECRET not in answer.out + answer.err
    assert differing(before, cup.picture()) == []
    monkeypatch.setenv("FINALE_POSTGRES", superuser.replace("finale@", f"game:right-{SECRET}@", 1))
    finale("db", "migrate").ok()
    assert finale("season", "list", "--json").ok().json == []


def test_a_store_folder_that_cannot_be_written(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive's folder cannot be made: an error that names the place; the season waits frozen, its key whole."""
    good, key = os.environ["FINALE_STORE"], cup.redis.dump(KEY)
    (cup.folder / "occupied").write_text("a file, not a folder")
    monkeypatch.setenv("FINALE_STORE", (cup.folder / "occupied" / "archive").as_uri())
    answer = finale("close", "cup", "one")
    answer.refused(answer.code, "occupied")
    assert answer.code in (10, 11)
    assert cup.state("cup", "one") == "frozen"
    assert cup.redis.dump(KEY) == key
    assert finale("season", "show", "cup", "one", "--json").ok().json["attempts"] == 1
    monkeypatch.setenv("FINALE_STORE", good)
    closes_afterwards(cup)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def use_s3(monkeypatch: pytest.MonkeyPatch, s3: S3Server, url: str) -> None:
    for name, value in {**s3.environ, "FINALE_STORE": url}.items():
        monkeypatch.setenv(name, value)


def test_a_whole_season_on_s3(cup: World, monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    """A season closes, verifies, cleans and is read back from a bucket, under a prefix; nothing is left in staging."""
    use_s3(monkeypatch, s3, f"s3://{s3.bucket()}/some/prefix")
    closes_afterwards(cup)
    assert [one["kind"] for one in finale("archive", "verify", "cup", "one", "--json").ok().json] == [
        "standings",
        "grants",
    ]
    with cup.outside() as wired:
        assert [found.path for found in wired.store.list("")] == [
            "grants/board=cup/season=one/part-00000.parquet",
            "seals/cup/one/grants.json",
            "seals/cup/one/standings.json",
            "standings/board=cup/season=one/part-00000.parquet",
        ]
    assert cup.files() == []


def test_a_bucket_that_does_not_exist(cup: World, monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    """No such bucket: exit 11 names it and shows no key; the season waits frozen and ends once the bucket is right."""
    good, key = os.environ["FINALE_STORE"], cup.redis.dump(KEY)
    use_s3(monkeypatch, s3, "s3://no-such-bucket/prefix")
    answer = finale("close", "cup", "one").refused(11, "no-such-bucket")
    assert all(secret not in answer.out + answer.err for secret in ("test-secret", "test-key-id"))
    assert cup.state("cup", "one") == "frozen"
    assert cup.redis.dump(KEY) == key
    monkeypatch.setenv("FINALE_STORE", good)
    closes_afterwards(cup)


def test_a_store_url_that_is_none(cup: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A store that this version does not speak, or one with credentials in it, is a fault of the configuration."""
    before = cup.picture()
    for url in ("ftp://bucket/x", f"s3://key:{SECRET}@bucket", "archive", "file://relative"):
        monkeypatch.setenv("FINALE_STORE", url)
        answer = finale("close", "cup", "one").refused(3, "FINALE_STORE")
        assert SECRET not in answer.err
    assert differing(before, cup.picture()) == []
