"""finale doctor --rights: a whole season runs with exactly what it prints, on real servers."""

from __future__ import annotations

import json
import os
import shlex
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import psycopg
import pytest
import redis

from config.load import load
from jobs.doctor.rights import least, patterns, policy
from jobs.embedded.redis_server import RedisServer
from ledger.rights import written
from tests.support.cli import World, finale
from tests.support.s3 import S3Server, s3_server

CONFIG = """
[board.cup]
ties = "shared"
rewards = "cup.toml"
current_key = "current:<board>"
keep_live = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
[board.open]
source = "cup"
ties = "shared"
shards = { by = "player", count = 2 }
calendar = { seasons = [{ id = "two", starts_at = 2026-01-01T00:00:00Z, ends_at = 2090-01-01T00:00:00Z }] }
[board.packed]
key = "lb[1]:<board>:<starts_at:%Y>"
source = "cup"
shards = { by = "player", count = 3 }
deliver = { to = "stream", key = "grants:<board>:<season>" }
rewards = "cup.toml"
keep_live = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
[board.renamed]
ties = "shared"
ledger = "none"
freeze = "rename"
cleanup = "expire"
keep_live = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
ROWS = [f"m1,p{number},{number},2026-01-02T00:00:00Z" for number in range(50)]
UNNAMED = "facts/board=cup/season=one/excluded-0123456789abcdef.parquet"
BOARDS = ("cup", "packed", "renamed")


@contextmanager
def user(url: str, line: str) -> Iterator[str]:
    """Make the ACL user that ``line`` says, and give the URL to log in as it."""
    words = [word.replace(">PASSWORD", ">pw") for word in shlex.split(line.replace("\\", "\\\\"))]
    with redis.Redis.from_url(url) as client:
        client.execute_command(*words)
        try:
            yield url.replace("unix://", "unix://finale:pw@")
        finally:
            client.acl_deluser("finale")


@contextmanager
def role(url: str, statements: list[str]) -> Iterator[str]:
    """Make the role that the statements say, in the database of ``url``, and give the URL to log in as it."""
    database = url.rpartition("@/")[2].partition("?")[0]
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            # The tests' superuser is called finale too, and so is the database that the configuration does not name.
            named = statement.replace('on database "finale"', f'on database "{database}"')
            connection.execute(named.replace('"finale"', '"runner"').replace("role finale", "role runner").encode())
        try:
            yield url.replace("finale@", "runner@", 1)
        finally:
            connection.execute("reassign owned by runner to finale")
            connection.execute("drop owned by runner")
            connection.execute("drop role runner")


@pytest.fixture
def cup(world: World) -> World:
    world.configure(CONFIG, cup=TABLE)
    return world


def whole_season(world: World, admin: redis.Redis) -> None:
    """Open, take results, apply, close, seal, pay, clean; and what an operator asks meanwhile."""
    finale("results", "import", str(world.results(*ROWS)), "--source", "cup").ok()
    admin.zadd("leaderboard:renamed:one", {f"p{number}": number for number in range(50)})
    finale("results", "void", "m1", "--player", "p7", "--source", "cup", "--because", "test", "--as", "ana").ok()
    finale("tick", "--as", "cron").ok()  # which checks the season that is still being played
    assert finale("reconcile", "open", "two", "--repair", "--as", "ana", "--json").ok().json["repaired"] == 0
    assert finale("top", "open", "--json").ok().json
    for name in BOARDS:
        finale("close", name, "one", "--until", "freeze").ok()
        finale("close", name, "one").ok()
    assert finale("standings", "cup", "one", "--json", "--top", "1").ok().json[0]["player_id"] == "p49"
    finale("rewards", "correct", "cup", "one", "--exclude", "p9", "--because", "test", "--as", "ana", "--yes").ok()
    finale("tick", "--as", "cron").ok()
    for name in BOARDS:
        finale("clean", name, "one", "--now", "--as", "ana").ok()
        assert world.state(name, "one") == "cleaned"
    finale("season", "strays").ok()
    finale("ledger", "prune", "--as", "ana").ok()
    finale("archive", "verify", "--all").ok()


def test_a_whole_season_with_the_least_rights_of_redis_and_postgresql(
    cup: World, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer, ledger_url: str
) -> None:
    """Three kinds of board, a stream, a void, a correction, cleaning and pruning: nothing else need be allowed."""
    printed = finale("doctor", "--rights", "--json").ok().json
    with (
        user(redis_server.url, printed["redis"]) as limited,
        role(ledger_url, printed["postgres"]) as narrow,
        redis.Redis.from_url(redis_server.url) as admin,
    ):
        monkeypatch.setenv("FINALE_REDIS", limited)
        monkeypatch.setenv("FINALE_POSTGRES", narrow)
        answer = finale("doctor", "--json").ok().json
        verdicts = {(one["area"], one["name"]): one for one in answer["checks"]}
        assert verdicts["postgres", "rights"]["verdict"] == "ok", verdicts["postgres", "rights"]
        whole_season(cup, admin)
        with redis.Redis.from_url(limited) as client, pytest.raises(redis.exceptions.NoPermissionError):
            client.set("somebody:else", "1")
        with redis.Redis.from_url(limited) as client, pytest.raises(redis.exceptions.NoPermissionError):
            client.flushall()
        with psycopg.connect(narrow, autocommit=True) as connection:
            for statement in ("drop table finale.season", "delete from finale.journal", "create role eve"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())


def test_the_tables_that_are_written_exist(ledger_url: str) -> None:
    """Every table that the rights name is one of the schema; the ledger of migrations is only read."""
    with psycopg.connect(ledger_url) as connection:
        there = {row[0] for row in connection.execute("select tablename from pg_tables where schemaname = 'finale'")}
    assert set(written()) <= there
    assert "migration" not in written()
    assert written()["journal"] == ["insert"]


def test_patterns_fit_what_a_board_has_and_nothing_else(cup: World) -> None:
    """Fields become *, special characters are escaped, helper keys keep the tag."""
    boards = load(cup.config, os.environ).boards
    assert patterns(boards["cup"]) == [
        *("leaderboard:cup:*", "{leaderboard:cup:*}:finale:*", "current:cup"),
    ]
    assert patterns(boards["packed"])[:2] == [r"lb\[1\]:packed:*:*", r"{lb\[1\]:packed:*:*}:finale:*"]
    assert patterns(boards["packed"])[2] == "grants:packed:*"


def test_the_printed_text_has_all_three(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text: one ACL line, statements that end with ;, and the policy of the bucket as JSON."""
    monkeypatch.setenv("FINALE_STORE", "s3://boards/live")
    out = finale("doctor", "--rights").ok().out
    assert "ACL SETUSER finale reset on >PASSWORD ~leaderboard:cup:*" in out
    assert 'grant usage, create on schema finale to "finale";' in out
    assert json.loads(out.rpartition("# the store\n")[2]) == policy("boards", "live/")


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[S3Server, str]]:
    """An S3 server that looks at policies, and a bucket; credentials in the environment are of a user without any."""
    with s3_server() as server:
        bucket = server.bucket()
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        yield server, bucket
        _enforce(server, "inf")


def _enforce(server: S3Server, after: str) -> None:
    request = urllib.request.Request(
        f"{server.endpoint}/moto-api/reset-auth", data=after.encode(), headers={"Content-Type": "text/plain"}
    )
    with urllib.request.urlopen(request, timeout=30):
        pass


def test_a_whole_season_with_the_policy_of_the_bucket(
    cup: World, monkeypatch: pytest.MonkeyPatch, guarded: tuple[S3Server, str]
) -> None:
    """With the printed policy a season is sealed, paid, cleaned and verified; other places and deletes are refused."""
    server, bucket = guarded
    monkeypatch.setenv("FINALE_STORE", f"s3://{bucket}/boards")
    text = least(load(cup.config, os.environ), load(cup.config, os.environ).boards.values()).store
    options = {"endpoint_url": server.endpoint, "region_name": "us-east-1"}
    iam = boto3.client("iam", **options)
    name = f"finale-{bucket}"
    iam.create_user(UserName=name)
    # moto asks for DeleteObject on the bucket itself where objects are deleted by a list, which S3 does not.
    listed = {"Effect": "Allow", "Action": "s3:DeleteObject", "Resource": f"arn:aws:s3:::{bucket}"}
    whole = json.loads(text)
    document = json.dumps({**whole, "Statement": [*whole["Statement"], listed]})
    iam.put_user_policy(UserName=name, PolicyName="least", PolicyDocument=document)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    _enforce(server, "0")
    assert finale("doctor", "--json").ok().json["verdict"] in ("ok", "warn", "unknown")
    whole_season(cup, cup.redis)
    login = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
    client = boto3.client("s3", **options, **login)
    client.put_object(Bucket=bucket, Key=f"boards/{UNNAMED}", Body=b"")
    assert "removed" in finale("archive", "sweep", "--older-than", "0s").ok().out
    for refused in (
        lambda: client.put_object(Bucket=bucket, Key="elsewhere/x", Body=b""),
        lambda: client.delete_object(Bucket=bucket, Key="boards/seals/cup/one/standings.json"),
    ):
        with pytest.raises(client.exceptions.ClientError, match="AccessDenied"):
            refused()
