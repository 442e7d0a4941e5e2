"""Redis as it is deployed: every version at hand, TLS, a primary with a replica and a Sentinel, a cluster."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import redis

from jobs.embedded.binaries import REDIS_PROGRAMS, REDIS_WHEELS, Programs, package_folder
from jobs.embedded.redis_server import RedisServer
from jobs.embedded.server import make_private, server_environment, wait_until
from tests.support.servers import ServerFactory, running

HOST = "127.0.0.1"
#: Where the tests look for servers: the wheels of the extras, and PATH.
PROGRAMS = (*(distribution for distribution, _, _ in REDIS_WHEELS), *REDIS_PROGRAMS)
_SECONDS = 30.0


def program_folder(name: str) -> Path | None:
    """Return the folder that holds the server ``name`` of ``PROGRAMS``, or None if it is not on this machine."""
    for distribution, package, inside in REDIS_WHEELS:
        if name == distribution:
            folder = package_folder(package)
            return next((found.parent for found in sorted(folder.glob(inside))), None) if folder else None
    found = shutil.which(name)
    return Path(found).resolve().parent if found else None


def speaks_tls(folder: Path) -> bool:
    """Return whether the server in ``folder`` was built with TLS; it is started so that it ends at once either way."""
    program = next(folder / name for name in REDIS_PROGRAMS if (folder / name).exists())
    nowhere = ["--port", "0", "--unixsocket", str(folder / "no folder" / "socket")]
    words = [program, *nowhere, "--tls-port", str(free_port())]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    return not any(refusal in said.stdout + said.stderr for refusal in ("Bad directive", "Failed finding TLS support"))


def of_program(factory: ServerFactory, folder: Path) -> ServerFactory:
    """Return a factory of servers of the program in ``folder``."""
    return replace(factory, programs=Programs(factory.account, factory.root / "bin", str(folder)))


def free_port() -> int:
    """Return a port that nobody listens on, nor on the one 10,000 above, where a cluster's nodes talk."""
    while True:
        port = random.randrange(20_000, 50_000)  # below those that the system hands out
        with socket.socket() as first, socket.socket() as second, suppress(OSError):
            first.bind((HOST, port))
            second.bind((HOST, port + 10_000))
            return port


def on_port(factory: ServerFactory, port: int, *options: str) -> RedisServer:
    """Return a server, not yet started, that also listens on ``port`` and keeps nothing on disk."""
    return factory.redis("--port", str(port), "--bind", HOST, "--appendonly", "no", *options)


@dataclass(frozen=True)
class Watched:
    """A primary and its replica, with the Sentinel that watches them; ``sentinel`` is redis-py's."""

    sentinel: Any
    ports: tuple[int, int]

    @property
    def name(self) -> str:
        return "boards"

    def fail_over(self) -> None:
        """Make the replica the primary, and wait until both servers and the Sentinel say so."""
        before = self.sentinel.discover_master(self.name)[1]
        (after,) = set(self.ports) - {before}
        assert wait_until(self._ask, _SECONDS), "the Sentinel finds no replica good enough"

        def done() -> bool:
            with suppress(redis.RedisError):
                told = self.sentinel.discover_master(self.name)[1]
                return told == after and (_role(after), _role(before)) == ("master", "slave")
            return False

        assert wait_until(done, _SECONDS), "the Sentinel did not fail over"

    def cut_off(self) -> None:
        """Let the replica hear of nothing more, as where the network to it is cut; a failover then loses writes."""
        (other,) = set(self.ports) - {self.sentinel.discover_master(self.name)[1]}
        # Else the Sentinel soon tells the replica again whom to follow.
        self.sentinel.sentinels[0].execute_command("SENTINEL", "SET", self.name, "failover-timeout", 120_000)
        with redis.Redis(HOST, other) as replica:
            replica.replicaof(HOST, str(free_port()))

    def _ask(self) -> bool:
        try:
            self.sentinel.sentinels[0].execute_command("SENTINEL", "FAILOVER", self.name)
        except redis.ResponseError:  # it has not looked at the replica for long enough
            return False
        return True


@contextmanager
def sentinel_pair(factory: ServerFactory) -> Iterator[Watched]:
    """Run a primary, a replica in step with it, and a Sentinel that knows both."""
    ports = (free_port(), free_port())
    with ExitStack() as stack:
        stack.enter_context(running(on_port(factory, ports[0], "--repl-diskless-sync-delay", "0")))
        stack.enter_context(running(on_port(factory, ports[1])))
        with redis.Redis(HOST, ports[1]) as replica:
            replica.replicaof(HOST, str(ports[0]))
        assert wait_until(lambda: _client_info(ports[1]).get("master_link_status") == "up", _SECONDS)
        port = stack.enter_context(_sentinel(factory, ports[0]))
        sentinel: Any = stack.enter_context(_closing(redis.Sentinel([(HOST, port)], socket_timeout=5)))
        known = sentinel.sentinels[0]
        assert wait_until(lambda: len(known.sentinel_slaves("boards")) == 1, _SECONDS), "the Sentinel knows no replica"
        yield Watched(sentinel, ports)


@contextmanager
def _closing(sentinel: Any) -> Iterator[Any]:
    try:
        yield sentinel
    finally:
        for client in sentinel.sentinels:
            client.close()


@contextmanager
def _sentinel(factory: ServerFactory, primary: int) -> Iterator[int]:
    port = free_port()
    with sentinel_of(factory, primary, [f"port {port}", f"bind {HOST}"]):
        assert wait_until(lambda: _answers(port), _SECONDS), "the Sentinel did not start"
        yield port


@contextmanager
def sentinel_of(factory: ServerFactory, primary: int, settings: Sequence[str]) -> Iterator[None]:
    """Run a Sentinel with these ``settings`` that watches the server on the port ``primary``."""
    folder = factory.root / f"sentinel-{primary}"
    make_private(folder, factory.account)
    config = folder / "sentinel.conf"
    lines = [*settings, f"dir {folder}", f"sentinel monitor boards {HOST} {primary} 1"]
    config.write_text("\n".join([*lines, "sentinel failover-timeout boards 5000", ""]))
    factory.account.give(config)
    process = subprocess.Popen(
        [factory.programs.redis(), config, "--sentinel"],
        cwd=folder,
        env=server_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **factory.account.arguments(),
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class Cluster:
    """Three primaries that share the slots; ``ports`` and ``ids`` in the same order."""

    ports: tuple[int, ...]
    ids: tuple[str, ...]

    def node(self, number: int) -> redis.Redis:
        return redis.Redis(HOST, self.ports[number])

    def owner(self, slot: int) -> int:
        """Return the number of the node that was given ``slot``."""
        return slot * len(self.ports) // 16_384

    def move(self, slot: int, *keys: str, target: int, source: int | None = None) -> None:
        """Move ``slot``, with its ``keys``, to the node ``target``, from ``source`` or the one it was given to."""
        source = self.owner(slot) if source is None else source
        with self.node(source) as old, self.node(target) as new:
            _say(new, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.ids[source])
            _say(old, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.ids[target])
            for key in keys:
                _say(old, "MIGRATE", HOST, self.ports[target], key, 0, 5_000)
        for number in range(len(self.ports)):
            with self.node(number) as node:
                _say(node, "CLUSTER", "SETSLOT", slot, "NODE", self.ids[target])


@contextmanager
def cluster_of_three(factory: ServerFactory) -> Iterator[Cluster]:
    """Run a cluster of three primaries."""
    ports = tuple(free_port() for _ in range(3))
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(running(on_port(factory, port, "--cluster-enabled", "yes")))
        nodes = [stack.enter_context(redis.Redis(HOST, port)) for port in ports]
        cluster = Cluster(ports, tuple(_say(node, "CLUSTER", "MYID").decode() for node in nodes))
        for number, node in enumerate(nodes):
            slots = [slot for slot in range(16_384) if cluster.owner(slot) == number]
            _say(node, "CLUSTER", "ADDSLOTS", *slots)
            _say(node, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            _say(node, "CLUSTER", "MEET", HOST, ports[0])
        for node in nodes:
            assert wait_until(lambda node=node: _is_whole(node), _SECONDS), "the cluster did not form"  # type: ignore[misc]  # the default binds the node of this round
        yield cluster


def _is_whole(node: redis.Redis) -> bool:
    info = _text(_say(node, "CLUSTER", "INFO"))
    return "cluster_state:ok" in info and "cluster_known_nodes:3" in info


def _say(node: redis.Redis, *words: Any) -> Any:
    return node.execute_command(*words)


def _text(value: Any) -> str:
    if isinstance(value, dict):  # redis-py has taken it apart
        return "\n".join(f"{name}:{content}" for name, content in value.items())
    return value.decode() if isinstance(value, bytes) else str(value)


def _answers(port: int) -> bool:
    with redis.Redis(HOST, port) as client, suppress(redis.RedisError):
        return bool(client.ping())
    return False


def _client_info(port: int) -> dict[str, Any]:
    with redis.Redis(HOST, port) as client:
        found: dict[str, Any] = client.info("replication")
        return found


def _role(port: int) -> str:
    return str(_client_info(port)["role"])
