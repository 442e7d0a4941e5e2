"""finale doctor on servers that are well, and on servers that are not: verdict, remedy, exit code, nothing left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import redis

from jobs.doctor import host
from jobs.doctor.checks import Checks
from jobs.embedded.redis_server import RedisServer
from leaderboard.keys import canary_keys
from ledger.inspection import kind_of_pooling
from live import inspection
from tests.support.cli import Answer, World, differing, finale
from tests.support.s3 import s3_server

CONFIG = """
[runner]
redis_timeout = "2s"
postgres_connect_timeout = "2s"
[board.cup]
ties = "shared"
calendar = { every = "year" }
[board.split]
ties = "shared"
shards = { by = "player", count = 2 }
calendar = { every = "year" }
"""


@pytest.fixture
def cup(world: World) -> World:
    world.configure(CONFIG)
    return world


def checks(answer: Answer) -> dict[str, dict[str, Any]]:
    """Return the checks by area and name; of a name that is there twice, the worse."""
    order = ["ok", "unknown", "warn", "fail"]
    found: dict[str, dict[str, Any]] = {}
    for check in answer.json["checks"]:
        name = f"{check['area']} {check['name']}"
        if name not in found or order.index(check["verdict"]) > order.index(found[name]["verdict"]):
            found[name] = check
    return found


def test_all_is_looked_at_and_nothing_stays(cup: World) -> None:
    """Whatever a season relies on has a verdict, and a remedy if it is not well; ledger, keys, store as before."""
    before = cup.picture()
    found = checks(finale("doctor", "--json").ok())
    assert differing(before, cup.picture()) == []
    for name in (
        *("host version", "host configuration", "host time zones", "host room"),
        *("postgres latency", "postgres version", "postgres role", "postgres clock", "postgres persistence"),
        *("postgres migrations", "postgres rights", "postgres pooling", "postgres size", "postgres room"),
        *("redis latency", "redis version", "redis role", "redis clock", "redis persistence", "redis memory"),
        *("redis eviction", "redis rights cup", "redis WATCH cup", "redis rights split", "redis WATCH split"),
        *("store earlier seals", "store answers", "store read after write"),
        *("store list after write", "store conditional put", "store room"),
    ):
        assert found[name]["found"], name
        assert found[name]["verdict"] == "ok" or found[name]["remedy"], name
    for name in ("redis rights cup", "redis WATCH split", "postgres migrations", "store conditional put"):
        assert found[name]["verdict"] == "ok", found[name]
    assert found["postgres pooling"]["found"] == "no pooler in between"


LEDGER = """
[board.{name}]
ties = "shared"
calendar = {{ every = "year" }}
ledger = {{ sql = "{sql}", url_env = "GAME_POSTGRES" }}
"""


def test_a_ledger_of_the_users_own_is_tried(cup: World, monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    """Each board's SQL: good, with a wrong column, no table, that may not be read; verdict and remedy."""
    with psycopg.connect(postgres_url, autocommit=True) as game:
        game.execute("create table game_result (who text, points bigint, at timestamptz)")
        game.execute("create role doctor_reader login")
    bare = postgres_url.replace("postgresql://", "postgresql://doctor_reader@").replace("@@", "@")
    good = "select who as player_id, sum(points) as points, max(at) as reached_at from game_result group by who"
    texts = {
        "good": good,
        "lacks": "select who as player_id, sum(points) as points from game_result group by who",
        "nowhere": good.replace("game_result", "game_results"),
    }
    monkeypatch.setenv("GAME_POSTGRES", postgres_url)
    cup.configure(CONFIG + "".join(LEDGER.format(name=name, sql=sql) for name, sql in texts.items()))
    found = checks(finale("doctor", "--json").refused(19, "ledger lacks"))
    assert found["ledger good"]["verdict"] == "ok"
    for name, words in (("lacks", "columns player_id, points"), ("nowhere", "game_results")):
        assert found[f"ledger {name}"]["verdict"] == "fail" and words in found[f"ledger {name}"]["found"]
        assert found[f"ledger {name}"]["remedy"]
    assert "ledger cup" not in found
    monkeypatch.setenv("GAME_POSTGRES", bare)
    refused = checks(finale("doctor", "good", "--json").refused(19, "ledger good"))["ledger good"]
    assert "may not be read" in refused["found"] and "SELECT" in refused["remedy"]


def test_as_a_table_for_some_boards(cup: World) -> None:
    """The table tells the same; a board that is named is the only one tried; one that is not there is named."""
    out = finale("doctor", "cup").ok().out
    assert "WATCH cup" in out
    assert "WATCH split" not in out
    finale("doctor", "cub").refused(5, "did you mean cup?")


def test_servers_that_are_away_hinder_no_other_check(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Redis, then without PostgreSQL: exit 19, what failed is named, the rest is still looked at; no secret."""
    good = os.environ["FINALE_REDIS"]
    monkeypatch.setenv("FINALE_REDIS", "redis://:hunter2@127.0.0.1:1/0")
    answer = finale("doctor", "--json").refused(19, "redis answers")
    assert answer.json["verdict"] == "fail"
    assert {checks(answer)[f"{area} answers"]["verdict"] for area in ("redis", "store")} == {"fail", "ok"}
    assert "hunter2" not in answer.out + answer.err
    monkeypatch.setenv("FINALE_REDIS", good)
    monkeypatch.setenv("FINALE_POSTGRES", "postgresql://game:hunter2@127.0.0.1:1/finale")
    answer = finale("doctor", "--json").refused(19, "postgres answers")
    assert checks(answer)["redis WATCH cup"]["verdict"] == "ok"
    assert "hunter2" not in answer.out + answer.err


def test_an_evicting_server_without_persistence_is_warned_of(
    cup: World, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer
) -> None:
    """allkeys-lru, neither log nor snapshots, and nearly full: warnings, each with a remedy, and exit code 0."""
    monkeypatch.setenv("FINALE_REDIS", redis_server.url)
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("appendonly", "no")
        client.config_set("save", "")
        for number in range(60):
            client.set(f"ballast:{number}", b"x" * 1_000_000)
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", int(used * 1.15))
        found = checks(finale("doctor", "--json").ok())
        for name in ("eviction", "persistence", "memory"):
            assert found[f"redis {name}"]["verdict"] == "warn", found[f"redis {name}"]
        assert "noeviction" in found["redis eviction"]["remedy"]
        client.config_set("maxmemory", 0)
        client.config_set("save", "60 1000")
        assert checks(finale("doctor", "--json").ok())["redis persistence"]["verdict"] == "ok"


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("missing", ["watch", "zrange", "eval", "unlink", "renamenx", "expire"])
def test_a_right_that_is_missing_is_named(
    cup: World, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer, missing: str, dry_run: bool
) -> None:
    """A user without one command: it is named, by a dry run where the user may ask for one, else on canary keys."""
    with redis.Redis.from_url(redis_server.url) as client:
        commands = ["+@all", f"-{missing}", *([] if dry_run else ["-acl"])]
        client.acl_setuser("narrow", enabled=True, passwords=["+pw"], keys=["*"], commands=commands)
        monkeypatch.setenv("FINALE_REDIS", redis_server.url.replace("unix://", "unix://narrow:pw@"))
        answer = finale("doctor", "cup", "--json").refused(19, "rights cup")
        told = checks(answer)["redis rights cup"]
        assert told["found"] == f"this user may not: {missing.upper()}"
        assert "--rights" in told["remedy"]
        # Without UNLINK the canaries cannot be removed: they go by themselves.
        left = client.keys()
        for key in left:
            assert 0 < client.ttl(key) <= 60


class _Killed(BaseException):
    pass


def test_i8_what_a_killed_doctor_leaves_goes_by_itself(cup: World, redis_url: str) -> None:
    """I8: killed before any of its commands: at most canaries, with a time to live but for the one just made.

    The next run removes them. From the kill on, nothing more is sent.
    """
    key, sent, admin = "leaderboard:cup:s2026", inspection.send, cup.redis
    admin.acl_setuser("plain", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-acl"])
    plain = redis_url.replace("unix://", "unix://plain:pw@")
    try:
        for last in range(len(inspection.FORMS) + 1):
            rest = iter(range(last + 1))  # the first is the refused ACL WHOAMI

            def dying(connection: Any, *command: Any, rest: Iterator[int] = rest) -> Any:
                if next(rest, None) is None:
                    raise _Killed
                return sent(connection, *command)

            with redis.Redis.from_url(plain) as client, pytest.MonkeyPatch.context() as patch:
                patch.setattr(inspection, "send", dying)
                with pytest.raises(_Killed):
                    inspection.refusals(client, key)
            left = [name.decode() for name in admin.keys("*")]
            assert set(left) <= set(canary_keys(key))
            assert sum(admin.ttl(name) < 0 for name in left) <= 1
            with redis.Redis.from_url(plain) as client:
                assert inspection.refusals(client, key) == []
            assert admin.keys("*") == []
    finally:
        admin.acl_deluser("plain")
    inspection.touch(cup.redis, canary_keys(key)[0])
    assert 0 < cup.redis.ttl(canary_keys(key)[0]) <= 60


def test_a_proxy_that_loses_the_watch_is_found(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a transaction is executed although its key was written to, the check fails and says why."""
    from archive.proof import ProofConnection

    def forgetful(connection: ProofConnection, *commands: Any) -> list[Any]:
        return [None for _ in commands]  # as through a proxy that sends WATCH and EXEC to two servers

    monkeypatch.setattr(ProofConnection, "exec", forgetful)
    answer = finale("doctor", "cup", "--json").refused(19, "WATCH cup")
    assert "not a proxy" in checks(answer)["redis WATCH cup"]["remedy"]


def test_a_ledger_that_lacks_its_schema(cup: World, monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    """An empty database: the migrations are named, with the command; the rights are told to be missing."""
    monkeypatch.setenv("FINALE_POSTGRES", postgres_url)
    answer = finale("doctor", "--json").refused(19, "postgres migrations")
    told = checks(answer)["postgres migrations"]
    assert "0001_spine" in told["found"]
    assert told["remedy"] == "run: finale db migrate"


def test_a_role_with_too_few_rights(cup: World, monkeypatch: pytest.MonkeyPatch, ledger_url: str) -> None:
    """A role that may only read: what it lacks is listed, table by table."""
    with psycopg.connect(ledger_url, autocommit=True) as connection:
        connection.execute("create role reader login")
        try:
            connection.execute("grant usage on schema finale to reader")
            connection.execute("grant select on all tables in schema finale to reader")
            monkeypatch.setenv("FINALE_POSTGRES", ledger_url.replace("finale@", "reader@", 1))
            told = checks(finale("doctor", "--json").refused(19, "postgres rights"))["postgres rights"]
            assert "update on finale.season" in told["found"]
            assert "ownership of finale.grants" in told["found"]
            assert "select on" not in told["found"]
        finally:
            connection.execute("drop owned by reader")
            connection.execute("drop role reader")


def test_a_bucket(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket is tried alike; its lifecycle rules are said to be untested; a bucket that is missing fails."""
    with s3_server() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("FINALE_STORE", f"s3://{server.bucket()}/boards")
        found = checks(finale("doctor", "--json").ok())
        assert found["store conditional put"]["verdict"] == "ok"
        assert found["store lifecycle rules"]["verdict"] == "unknown"
        monkeypatch.setenv("FINALE_STORE", "s3://no-such-bucket/boards")
        answer = finale("doctor", "--json").refused(19, "store answers")
        assert "does not exist" in checks(answer)["store answers"]["found"]


@pytest.mark.parametrize(
    ("pids", "kind"),
    [
        ((7, 7, 8, 7), "none"),
        ((99, 7, 8, 7), "session"),
        ((99, 7, 7, 8), "transaction"),
        ((99, 7, 7, 7), "transaction"),
    ],
)
def test_a_pooler_is_told_by_the_processes_that_answer(pids: tuple[int, int, int, int], kind: str) -> None:
    """The process named at login, the first's, the second's within a transaction, the first's again."""
    assert kind_of_pooling(*pids) == kind


@pytest.mark.parametrize(("seconds", "verdict"), [(0, "ok"), (3, "warn"), (-4, "warn"), (6, "fail"), (-90, "fail")])
def test_clocks(seconds: int, verdict: str) -> None:
    """More than max_skew apart fails, as a runner would stop; more than half of it is a warning."""
    of = Checks("redis")
    of.clock(timedelta(seconds=seconds), timedelta(seconds=5), "Redis")
    (check,) = of.found
    assert check.verdict == verdict
    assert bool(check.remedy) == (verdict != "ok")


@pytest.mark.parametrize(
    ("free", "verdict"), [(None, "unknown"), (1 << 20, "fail"), (1 << 30, "warn"), (1 << 40, "ok")]
)
def test_room(free: int | None, verdict: str) -> None:
    """Less than 100 MiB fails, less than 2 GiB is a warning."""
    of = Checks("host")
    of.room("room", free, "it")
    assert of.found[0].verdict == verdict


def test_old_zone_data_of_the_system_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's files win over the package, so older ones there are a warning; both ways to write a version."""
    assert host.comparable("2025b") == host.comparable("2025.2") == (2025, 2)
    assert host.comparable("2024a") < host.comparable("2024.2") < host.comparable("2025a")
    monkeypatch.setattr(host, "zone_data_version", lambda: "system 2001a")
    of = Checks("host")
    host._zones(of)
    assert of.found[0].verdict == "warn"
