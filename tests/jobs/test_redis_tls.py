"""Whole seasons over TLS: one server, a Sentinel's primary, a cluster. Skipped where no server speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from jobs.embedded.server import wait_until
from tests.support.cli import World, finale
from tests.support.servers import ServerFactory, running
from tests.support.tls import NO_TLS, certificate, tls_folder, tls_options
from tests.support.topologies import HOST, free_port, of_program, sentinel_of

CONFIG = """
[board.cup]
ties = "shared"
keep_live = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
ONLY_TLS = ("--port", "0", "--appendonly", "no")


@pytest.fixture
def tls_factory(server_factory: ServerFactory) -> ServerFactory:
    """Makes servers that speak TLS."""
    folder = tls_folder()
    if folder is None:
        pytest.skip(NO_TLS)
    return of_program(server_factory, folder)


@pytest.fixture(params=["rediss", "rediss+sentinel", "rediss+cluster"])
def url(request: pytest.FixtureRequest, tls_factory: ServerFactory, private_dir: Path) -> Iterator[str]:
    """The URL of servers that listen with TLS alone, without the certificate that they are to be trusted by."""
    cert, key = certificate(tls_factory, private_dir)
    port, watcher = free_port(), free_port()
    options = [*tls_options(port, cert, key), *ONLY_TLS]
    if request.param == "rediss+cluster":
        options += ["--cluster-enabled", "yes", "--tls-cluster", "yes"]
    with ExitStack() as stack:
        server = stack.enter_context(running(tls_factory.redis(*options)))
        if request.param == "rediss":
            yield f"rediss://{HOST}:{port}/0"
        elif request.param == "rediss+cluster":
            with redis.Redis.from_url(server.url) as client:
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
                assert wait_until(lambda: client.cluster("info")["cluster_state"] == "ok", 20)
            yield f"rediss+cluster://{HOST}:{port}"
        else:
            words = ["port 0", "tls-replication yes", *_lines(tls_options(watcher, cert, key))]
            stack.enter_context(sentinel_of(tls_factory, port, words))
            told = redis.Redis(HOST, watcher, ssl=True, ssl_ca_certs=str(cert))
            with told:
                assert wait_until(lambda: _watches(told), 20)
            yield f"rediss+sentinel://{HOST}:{watcher}/boards"


def _lines(options: list[str]) -> list[str]:
    """Return the options of a command line as lines of a configuration file."""
    return [f"{name.removeprefix('--')} {value}" for name, value in zip(options[::2], options[1::2], strict=True)]


def _watches(sentinel: redis.Redis) -> bool:
    try:
        masters: dict[str, dict[str, object]] = sentinel.sentinel_masters()  # type: ignore[no-untyped-call]  # has no annotations
    except redis.RedisError:
        return False
    return bool(masters["boards"]["is_master"]) and not masters["boards"]["is_sdown"]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["", "&protocol=2", "&protocol=3"])
def test_i1_a_season_over_tls(
    world: World, monkeypatch: pytest.MonkeyPatch, private_dir: Path, url: str, protocol: str
) -> None:
    """I1: sealed and cleaned over TLS; without the certificate nothing is said to a server that cannot be trusted."""
    world.configure(CONFIG)
    monkeypatch.setenv("FINALE_REDIS", f"{url}?ssl_ca_certs={private_dir / 'cert.pem'}{protocol}")
    world.played("cup", *(f"m{n},p{n:03d},{n % 40},2026-01-02T00:00:00Z" for n in range(300)))
    monkeypatch.setenv("FINALE_REDIS", url)
    finale("close", "cup", "one").refused(10)
    monkeypatch.setenv("FINALE_REDIS", f"{url}?ssl_ca_certs={private_dir / 'cert.pem'}{protocol}")
    finale("close", "cup", "one").ok()
    assert world.state("cup", "one") == "cleaned"
    assert finale("standings", "cup", "one", "--top", "1", "--json").ok().json[0]["points"] == 39
