"""Whole seasons through each kind of Redis URL: a Sentinel's primary with a failover, a cluster with a moved slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis

from archive.proof import ProofConnection
from jobs.redis_clients import redis_client
from leaderboard import keys
from leaderboard.errors import AccessError, UnavailableError
from tests.support.cli import World, finale
from tests.support.servers import ServerFactory, running
from tests.support.topologies import HOST, Cluster, Watched, cluster_of_three, free_port, on_port, sentinel_pair

SECRET = "hunter2hunter2"
BOARDS = ("alpha", "gamma", "zeta")  # of which each node of a cluster has one
BOARD = """
[board.{0}]
source = "matches"
ties = "shared"
keep_live = "0s"
calendar = {{ seasons = [{{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }}] }}
"""
ROWS = [f"m{n},p{n:03d},{n % 40},2026-01-02T00:00:{n % 60:02d}Z" for n in range(300)]
PROTOCOLS = ["", "?protocol=2", "?protocol=3"]
#: A Sentinel lets ten seconds pass between two failovers.
ONE_FAST = [PROTOCOLS[0], *(pytest.param(options, marks=pytest.mark.slow) for options in PROTOCOLS[1:])]


@pytest.fixture(scope="module")
def watched(server_factory: ServerFactory) -> Iterator[Watched]:
    """A primary and a replica, both with the user ``archiver``, and their Sentinel."""
    with sentinel_pair(server_factory) as pair:
        for port in pair.ports:
            with redis.Redis(HOST, port) as client:
                client.acl_setuser("archiver", enabled=True, passwords=[f"+{SECRET}"], keys=["*"], commands=["+@all"])
        yield pair


@pytest.fixture(scope="module")
def cluster(server_factory: ServerFactory) -> Iterator[Cluster]:
    """Three nodes that share the slots."""
    with cluster_of_three(server_factory) as started:
        yield started


@pytest.fixture
def by_sentinel(world: World, watched: Watched) -> Iterator[World]:
    """A world whose Redis is the Sentinel's primary, empty."""
    with watched.sentinel.master_for(watched.name) as client:
        client.flushall()
        world.configure("".join(map(BOARD.format, BOARDS[:1])))
        yield replace(world, redis=client)


@pytest.fixture
def in_cluster(world: World, cluster: Cluster) -> Iterator[World]:
    """A world whose Redis is the cluster, empty, with boards on every node."""
    with redis.RedisCluster(HOST, cluster.ports[0]) as client:
        client.flushall()
        world.configure("".join(map(BOARD.format, BOARDS)))
        found: Any = client
        yield replace(world, redis=found)


def sentinel_url(watched: Watched, login: str = "", options: str = "") -> str:
    """Return the URL of the watched service; of the Sentinels named, the first is not there."""
    (told,) = watched.sentinel.sentinels
    port = told.connection_pool.connection_kwargs["port"]
    return f"redis+sentinel://{login}{HOST}:{free_port()},{HOST}:{port}/{watched.name}/0{options}"


@pytest.mark.parametrize("options", ONE_FAST)
def test_c18_i1_a_season_through_sentinel_survives_a_failover(
    by_sentinel: World, watched: Watched, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    """I1, C18: sealed on one primary, cleaned on the next; user and password are the servers', and nobody sees them."""
    url = sentinel_url(watched, f"archiver:{SECRET}@", options)
    monkeypatch.setenv("FINALE_REDIS", url)
    by_sentinel.played("alpha", *ROWS)
    told = [finale("close", "alpha", "one", "--until", "seal").ok()]
    assert by_sentinel.redis.zcard("leaderboard:alpha:one") == 300
    assert by_sentinel.redis.wait(1, 10_000) == 1
    watched.fail_over()
    by_sentinel.redis.connection_pool.disconnect()
    assert by_sentinel.redis.zcard("leaderboard:alpha:one") == 300
    told += [finale("close", "alpha", "one").ok(), finale("archive", "verify", "alpha", "one").ok()]
    told += [finale("season", "strays").ok(), finale("config", "show").ok()]
    assert by_sentinel.state("alpha", "one") == "cleaned"
    assert by_sentinel.redis.keys() == []
    assert not any(SECRET in answer.out + answer.err for answer in told)


@pytest.mark.parametrize("options", PROTOCOLS)
def test_c14_c16_c17_i1_seasons_of_a_cluster(
    in_cluster: World, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    """C14, C16, C17, I1: boards on every node, each with its helper keys in its own slot, are sealed and cleaned."""
    monkeypatch.setenv("FINALE_REDIS", f"redis+cluster://{HOST}:{free_port()},{HOST}:{cluster.ports[2]}{options}")
    in_cluster.played("alpha", *ROWS)
    live = {board: f"leaderboard:{board}:one" for board in BOARDS}
    assert {cluster.owner(keys.slot(key)) for key in live.values()} == {0, 1, 2}
    in_cluster.redis.zadd("leaderboard:alpha:two", {"ann": 1})
    for board in BOARDS:
        finale("close", board, "one", "--until", "seal").ok()
    assert [in_cluster.redis.zcard(key) for key in live.values()] == [300] * len(BOARDS)
    for board in BOARDS:
        finale("close", board, "one").ok()
        assert in_cluster.state(board, "one") == "cleaned"
        assert finale("standings", board, "one", "--top", "1", "--json").ok().json[0]["points"] == 39
    strays = finale("season", "strays", "--json").ok().json
    assert [found["key"] for found in strays] == ["leaderboard:alpha:two"]
    assert sum(len(node_keys(cluster, number)) for number in range(3)) == 1


def node_keys(cluster: Cluster, number: int) -> list[bytes]:
    with cluster.node(number) as node:
        found: list[bytes] = node.keys()  # type: ignore[assignment]  # annotated for async clients too
        return found


def test_i1_a_slot_that_moved_between_two_steps(
    in_cluster: World, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1: the live key and its helpers are found on the node that has them now, and go there."""
    monkeypatch.setenv("FINALE_REDIS", f"redis+cluster://{HOST}:{cluster.ports[0]}")
    in_cluster.played("alpha", *ROWS)
    finale("close", "alpha", "one", "--until", "seal").ok()
    key = "leaderboard:alpha:one"
    slot, home = keys.slot(key), cluster.owner(keys.slot(key))
    away = (home + 1) % 3
    beside = [found.decode() for found in node_keys(cluster, home) if keys.slot(found.decode()) == slot]
    assert len(beside) == 3
    before = set(node_keys(cluster, away))
    cluster.move(slot, *beside, target=away)
    try:
        assert {found.decode() for found in {*node_keys(cluster, away)} - before} == {*beside}
        finale("close", "alpha", "one").ok()
        assert in_cluster.state("alpha", "one") == "cleaned"
        assert {*node_keys(cluster, away)} == before
    finally:
        cluster.move(slot, target=home, source=away)


REFUSED: dict[str, tuple[str, int, str]] = {
    "no Sentinel": ("redis+sentinel://127.0.0.1:1,127.0.0.1:2/boards", 10, "the primary of boards"),
    "no node": ("redis+cluster://127.0.0.1:1,127.0.0.1:2", 10, "did not answer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_nobody_there(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Servers that do not answer are told as that, with the same exit code as a single one."""
    url, code, words = REFUSED[name]
    world.configure(BOARD.format("alpha"))
    world.played("alpha", *ROWS[:2])
    monkeypatch.setenv("FINALE_REDIS", url)
    finale("close", "alpha", "one").refused(code, words)


def test_an_unknown_service_is_told(by_sentinel: World, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that the Sentinel does not watch."""
    by_sentinel.played("alpha", *ROWS[:2])
    url = sentinel_url(watched).replace("/boards/", "/other/")
    monkeypatch.setenv("FINALE_REDIS", url)
    finale("close", "alpha", "one").refused(10, "the primary of other", "No master found")


def test_a_wrong_password_is_refused_and_not_shown(cluster: Cluster, watched: Watched) -> None:
    """A refused login is told as one, without the password."""
    wait = timedelta(seconds=5)
    login = f"archiver:{SECRET}wrong@"
    with pytest.raises(AccessError, match="refused") as refused:
        redis_client(f"redis+cluster://{login}{HOST}:{cluster.ports[0]}", wait)
    assert SECRET not in str(refused.value)
    with redis_client(sentinel_url(watched, login), wait) as client, pytest.raises(redis.AuthenticationError) as said:
        client.ping()
    assert SECRET not in str(said.value)


def test_a_server_that_is_no_cluster_is_told(server_factory: ServerFactory) -> None:
    """A single server under a cluster's URL is refused in words."""
    port = free_port()
    with running(on_port(server_factory, port)), pytest.raises((AccessError, UnavailableError), match="cluster"):
        redis_client(f"redis+cluster://{HOST}:{port}", timedelta(seconds=5))


MISADDRESSED = {
    "an ordinary server named as a Sentinel": ("redis+sentinel://{server}/boards", "no Sentinel", 11),
    "a Sentinel named as an ordinary server": ("redis://{sentinel}", "write redis+sentinel://", 11),
    "a Sentinel, in RESP2": ("redis://{sentinel}?protocol=2", "write redis+sentinel://", 11),
    "a node of a cluster named as an ordinary server": ("redis://{node}", "write redis+cluster://", 10),
    "a Sentinel named as a cluster": ("redis+cluster://{sentinel}", "no node of a cluster", 11),
    "an ordinary server named as a cluster": ("redis+cluster://{server}", "no node of a cluster", 11),
    "a cluster's node named as a Sentinel": ("redis+sentinel://{node}/boards", "no Sentinel", 11),
}


@pytest.mark.parametrize("name", MISADDRESSED)
def test_a_url_of_another_kind_of_server_is_told(
    world: World, cluster: Cluster, watched: Watched, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever is asked first: the error says what the URL should be, and ends with the same exit code."""
    url, words, code = MISADDRESSED[name]
    with redis.RedisCluster(HOST, cluster.ports[0]) as client:
        client.flushall()
    boards = BOARDS if code == 10 else BOARDS[:1]  # a node serves its own slots, and says who serves the others
    world.configure("".join(map(BOARD.format, boards)))
    for board in boards:
        world.played(board, *ROWS[:2])
    (told,) = watched.sentinel.sentinels
    ports = {"server": watched.ports[0], "node": cluster.ports[0]}
    ports["sentinel"] = told.connection_pool.connection_kwargs["port"]
    monkeypatch.setenv("FINALE_REDIS", url.format(**{kind: f"{HOST}:{port}" for kind, port in ports.items()}))
    for command in (["close", "{}", "one"], ["top", "{}", "--season", "one"]):
        answers = [finale(*(word.format(board) for word in command)) for board in boards]
        wrong = [answer.refused(code, words) for answer in answers if answer.code]
        assert len(wrong) == (2 if code == 10 else 1)
    if code == 11:
        assert words in finale("doctor").refused(19).out


def test_the_sentinels_login_is_their_own() -> None:
    """``sentinel_username`` and ``sentinel_password`` go to the Sentinels, the others to the servers; both get TLS."""
    url = "rediss+sentinel://u:p%40ss@s1:1,s2/boards/3?sentinel_password=other&ssl_cert_reqs=none&protocol=3"
    with redis_client(url, timedelta(seconds=7)) as client:
        pool: Any = client.connection_pool
        theirs = pool.connection_kwargs
        assert (theirs["username"], theirs["password"], theirs["db"]) == ("u", "p@ss", 3)
        assert (theirs["protocol"], theirs["ssl_cert_reqs"], theirs["socket_timeout"]) == (3, "none", 7)
        asked = [sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels]
        assert [(one.connection_kwargs["host"], one.connection_kwargs["port"]) for one in asked] == [
            ("s1", 1),
            ("s2", 26_379),
        ]
        for one in asked:
            assert issubclass(one.connection_class, redis.SSLConnection)
            assert one.connection_kwargs["password"] == "other"
            assert one.connection_kwargs.get("username") is None


def in_the_middle(patch: pytest.MonkeyPatch, act: Callable[[], Any]) -> list[bool]:
    """Let ``act`` come once, after the second page that is read from now on; return a list that is filled then."""
    page, pages, came = ProofConnection.page, [0], list[bool]()

    def paged(self: ProofConnection, rows: int) -> Any:
        found = page(self, rows)
        pages[0] += 1
        if pages[0] == 2:
            came.append(True)
            act()
        return found

    patch.setattr(ProofConnection, "page", paged)
    return came


PAGED = "[runner]\npage_rows = 50\n"


@pytest.mark.slow
@pytest.mark.parametrize("until", ["snapshot", "clean"])
def test_i1_i3_c18_a_failover_in_the_middle(
    by_sentinel: World, watched: Watched, monkeypatch: pytest.MonkeyPatch, until: str
) -> None:
    """I1, I3, C18: the step that reads when the primary changes ends with nothing changed; the next run ends well."""
    by_sentinel.configure(PAGED + BOARD.format("alpha"))
    monkeypatch.setenv("FINALE_REDIS", sentinel_url(watched))
    by_sentinel.played("alpha", *ROWS)
    if until == "clean":
        finale("close", "alpha", "one", "--until", "deliver").ok()
    assert by_sentinel.redis.wait(1, 10_000) == 1
    came = in_the_middle(monkeypatch, watched.fail_over)
    struck = finale("close", "alpha", "one")
    assert came
    struck.refused(struck.code)
    assert struck.code in (10, 14)
    by_sentinel.redis.connection_pool.disconnect()
    assert by_sentinel.redis.zcard("leaderboard:alpha:one") == 300
    finale("close", "alpha", "one").ok()
    assert by_sentinel.state("alpha", "one") == "cleaned"
    finale("archive", "verify", "alpha", "one").ok()
    rows = finale("standings", "alpha", "one", "--top", "300", "--json").ok().json
    assert {row["player_id"]: row["points"] for row in rows} == {f"p{n:03d}": n % 40 for n in range(300)}
    assert by_sentinel.redis.keys() == []


@pytest.mark.parametrize("until", ["snapshot", pytest.param("clean", marks=pytest.mark.slow)])
def test_i1_i3_a_slot_that_moves_in_the_middle(
    in_cluster: World, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, until: str
) -> None:
    """I1, I3: the step that reads when the slot moves changes nothing, starts over or ends; the next run ends well."""
    in_cluster.configure(PAGED + BOARD.format("alpha"))
    monkeypatch.setenv("FINALE_REDIS", f"redis+cluster://{HOST}:{cluster.ports[0]}")
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    in_cluster.played("alpha", *ROWS)
    if until == "clean":
        finale("close", "alpha", "one", "--until", "deliver").ok()
    key = "leaderboard:alpha:one"
    slot, home = keys.slot(key), cluster.owner(keys.slot(key))
    away = (home + 1) % 3

    def move() -> None:
        beside = [found.decode() for found in node_keys(cluster, home) if keys.slot(found.decode()) == slot]
        cluster.move(slot, *beside, target=away)

    came = in_the_middle(monkeypatch, move)
    try:
        struck = finale("close", "alpha", "one")
        assert came
        assert struck.code in (0, 10, 14), struck.err
        if struck.code:
            struck.refused(struck.code)
            with cluster.node(away) as node:
                assert node.zcard(key) == 300
            finale("close", "alpha", "one").ok()
        assert in_cluster.state("alpha", "one") == "cleaned"
        finale("archive", "verify", "alpha", "one").ok()
        assert len(finale("standings", "alpha", "one", "--top", "300", "--json").ok().json) == 300
        assert not node_keys(cluster, away)
    finally:
        cluster.move(slot, target=home, source=away)
