"""Snapshots through everything redis-py connects by: users with few rights, Sentinel, a cluster, TLS, every version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from archive.drain import pages
from archive.once import cluster_factory, proof_factory
from archive.proof import DisturbedError, ProofConnection
from archive.snapshot import Source, take
from archive.store import Store, open_store
from leaderboard import keys
from leaderboard.errors import AccessError, UnavailableError
from tests.archive.boards import (
    BOUNDS,
    KEY,
    ODD_MEMBERS,
    ODD_SCORES,
    board,
    connector,
    drained,
    fill,
    plain_rows,
    rows_of,
    staged_rows,
)
from tests.support.servers import ServerFactory, running
from tests.support.tls import NO_TLS, certificate, tls_folder, tls_options
from tests.support.topologies import (
    HOST,
    PROGRAMS,
    cluster_of_three,
    free_port,
    of_program,
    program_folder,
    sentinel_pair,
)

ROWS = 2_500
#: All that a user needs to take a snapshot, besides connecting; redis-py bears that CLIENT SETINFO is refused.
RIGHTS = ["client|id", "role", "info", "watch", "multi", "exec", "type", "zcard", "zrange"]
CONNECTING = ["auth", "hello", "client|setname"]


@pytest.fixture
def store(store_url: str) -> Store:
    return open_store(store_url, {})


def snapshot(connect: Callable[..., ProofConnection], store: Store, attempt: str, key: str = KEY) -> list[Any]:
    """Return members and scores of a snapshot's parts."""
    source = Source(board(), BOUNDS, key)
    taken = take(connect, source, store, attempt=lambda number: f"{attempt}-{number}", page_rows=1_000)
    rows = staged_rows(store, taken)
    return list(zip([text.encode() for text in rows["player_id"].to_pylist()], rows["score"].to_pylist(), strict=True))


def user(client: redis.Redis, redis_url: str, rights: list[str]) -> redis.Redis:
    client.acl_setuser(
        "archiver", enabled=True, reset=True, passwords=["+pw"], keys=[KEY], commands=[f"+{right}" for right in rights]
    )
    return redis.Redis.from_url(redis_url, username="archiver", password="pw", client_name="finale")


class TestUsers:
    @pytest.fixture(autouse=True)
    def client(self, redis_url: str) -> Iterator[redis.Redis]:
        with redis.Redis.from_url(redis_url) as made:
            fill(made, rows=ROWS)
            yield made
            made.acl_deluser("archiver")

    def test_a_user_needs_no_more_than_the_stated_rights(
        self, client: redis.Redis, redis_url: str, store: Store
    ) -> None:
        """An ACL user with those rights, on the board's key alone, can archive it."""
        with user(client, redis_url, [*CONNECTING, *RIGHTS]) as limited:
            assert snapshot(connector(limited), store, "limited") == plain_rows(client)

    @pytest.mark.parametrize("missing", RIGHTS)
    def test_each_right_is_needed_and_named(
        self, client: redis.Redis, redis_url: str, store: Store, missing: str
    ) -> None:
        """Without one of them the command is named that was refused, and nothing is staged."""
        rights = [right for right in [*CONNECTING, *RIGHTS] if right != missing]
        named = f"the command {missing.partition('|')[0].upper()}"
        with user(client, redis_url, rights) as limited, pytest.raises(AccessError, match=named) as refused:
            snapshot(connector(limited), store, "limited")
        assert f"{missing.upper()}" in refused.value.hint
        assert not list(store.list("staging"))


class TestSentinel:
    @pytest.mark.slow
    def test_i3_a_failover_in_the_middle_ends_the_try_and_the_next_reads_the_new_primary(
        self, server_factory: ServerFactory, store: Store
    ) -> None:
        """I3, C18: the old primary's pages are not mixed with the new one's; asked again, the Sentinel names it."""
        with sentinel_pair(server_factory) as pair, pair.sentinel.master_for(pair.name) as client:
            fill(client, rows=ROWS)
            assert client.wait(1, 10_000) == 1
            with connector(client)() as proof:
                proof.watch(KEY)
                read = pages(proof, KEY, descending=True, page_rows=1_000)
                next(read)
                pair.fail_over()
                with pytest.raises((UnavailableError, DisturbedError)):
                    rows_of(read)
                    proof.exec()
            assert snapshot(connector(client), store, "after") == plain_rows(client)
            with connector(client)() as again:
                assert again.address == f"{HOST}:{pair.sentinel.discover_master(pair.name)[1]}"


class TestCluster:
    def test_boards_are_read_from_the_nodes_that_serve_them(self, server_factory: ServerFactory, store: Store) -> None:
        """C16: each key comes from its own node; a slot that moves meanwhile ends the try, and is found by the next."""
        with cluster_of_three(server_factory) as cluster:
            boards = {cluster.owner(keys.slot(key)): key for key in (f"leaderboard:{n}:s2026" for n in range(50))}
            assert sorted(boards) == [0, 1, 2]
            with redis.RedisCluster(HOST, cluster.ports[0]) as client:
                for key in boards.values():
                    fill(client, key, rows=ROWS)  # type: ignore[arg-type]  # zadd is all it needs
                for number, key in boards.items():
                    connect = self.connector(client, key)
                    with connect() as proof:
                        assert proof.address == f"{HOST}:{cluster.ports[number]}"
                    with cluster.node(number) as node:
                        assert snapshot(connect, store, f"node-{number}", key) == plain_rows(node, key)

                connect = self.connector(client, boards[0])
                with connect() as proof:
                    proof.watch(boards[0])
                    read = pages(proof, boards[0], descending=True, page_rows=1_000)
                    next(read)
                    cluster.move(keys.slot(boards[0]), boards[0], target=1)
                    with pytest.raises((UnavailableError, DisturbedError)):
                        rows_of(read)
                        proof.exec()
                with cluster.node(1) as node:
                    assert snapshot(connect, store, "moved", boards[0]) == plain_rows(node, boards[0])

    def test_no_node_is_unavailable(self, server_factory: ServerFactory) -> None:
        """A cluster of which no node answers any more is told as that."""
        with cluster_of_three(server_factory) as cluster:
            client = redis.RedisCluster(HOST, cluster.ports[0])
        with client, pytest.raises(UnavailableError, match="the cluster's nodes did not answer"):
            self.connector(client, KEY)()

    @staticmethod
    def connector(client: Any, key: str) -> Callable[..., ProofConnection]:
        connect = cluster_factory(client, key)
        return lambda *_: ProofConnection(connect)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
class TestVersions:
    """Redis 6.2, 7.0, 8.2 and Valkey 9.1, from wheels and from the distribution."""

    @pytest.fixture
    def client(self, server_factory: ServerFactory, program: str) -> Iterator[redis.Redis]:
        folder = program_folder(program)
        if folder is None:
            # A distribution's server is where somebody installed it; the wheels have none for some Pythons.
            pytest.skip(f"{program} is not on this machine")
        started = running(of_program(server_factory, folder).redis())
        with started as server, redis.Redis.from_url(server.url) as made:
            yield made

    @pytest.mark.parametrize("descending", [True, False])
    @pytest.mark.parametrize("protocol", [2, 3, None])
    def test_c04_c07_odd_rows_are_the_same_everywhere(
        self, client: redis.Redis, protocol: int | None, descending: bool
    ) -> None:
        """C04, C07: odd members, odd scores: bit for bit what redis-py reads from the same server."""
        client.zadd(KEY, dict(zip(ODD_MEMBERS, ODD_SCORES, strict=False)))
        client.zadd(KEY, {f"p{number}": number / 7 for number in range(500)})
        kwargs = client.connection_pool.connection_kwargs | ({"protocol": protocol} if protocol else {})
        pool = redis.ConnectionPool(connection_class=client.connection_pool.connection_class, **kwargs)
        with redis.Redis(connection_pool=pool) as other, connector(other)() as proof:
            proof.watch(KEY)
            assert drained(proof, descending=descending, page_rows=100) == plain_rows(client, descending=descending)
            proof.exec()
        pool.close()

    def test_i3_a_snapshot_is_proved(self, client: redis.Redis, store: Store) -> None:
        """I3: drained in many pages, proved and staged."""
        fill(client, rows=ROWS)
        assert snapshot(connector(client), store, "whole") == plain_rows(client)


@pytest.mark.slow
class TestTls:
    """Where a server with TLS is at hand: Debian's is built with it, none of the wheels is."""

    @pytest.fixture
    def folder(self) -> Path:
        found = tls_folder()
        if found is None:
            pytest.skip(NO_TLS)
        return found

    @pytest.mark.parametrize("protocol", [2, 3, None])
    def test_a_snapshot_through_tls(
        self, server_factory: ServerFactory, store: Store, private_dir: Path, folder: Path, protocol: int | None
    ) -> None:
        """The same rows as by the socket, in records of 16 KB; a server that the client cannot trust is refused."""
        cert, key = certificate(server_factory, private_dir)
        port = free_port()
        tls = tls_options(port, cert, key)
        with running(of_program(server_factory, folder).redis(*tls)) as server:
            options = {"protocol": protocol} if protocol else {}
            url = f"rediss://{HOST}:{port}"
            with (
                redis.Redis.from_url(server.url) as plain,
                redis.Redis.from_url(url, ssl_ca_certs=str(cert), **options) as client,
            ):
                fill(plain, rows=20_000)
                with connector(client)() as proof:
                    proof.watch(KEY)
                    assert drained(proof, page_rows=10_000) == plain_rows(plain)
                    proof.exec()
                assert snapshot(connector(client), store, "tls") == plain_rows(plain)
            with redis.Redis.from_url(url) as stranger, pytest.raises(UnavailableError, match="did not answer"):
                ProofConnection(proof_factory(stranger))
