"""Redis clients by URL: one server, TLS, the primary that Sentinels name, a cluster. None of them retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.connection import SSLConnection, parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel

from archive.once import Connect, cluster_factory, proof_factory
from archive.proof import ProofConnection
from archive.refusals import unanswered
from leaderboard.errors import AccessError

SENTINEL_PORT = 26_379
CLUSTER_PORT = 6_379
_NO_CLUSTER = "Cluster mode is not enabled on this node"  # in redis-py's words, whatever the node said


def redis_client(url: str, timeout: timedelta) -> redis.Redis:
    """Return a client of the server, the Sentinels' primary or the cluster that ``url`` names (``config.urls``).

    It has no retries: whether a command may be sent twice is decided where it is sent. A cluster's client has the
    commands of any other, each sent to the node that serves its key; it asks the nodes at once, all others connect with
    the first command. Raises UnavailableError for a cluster of which no node answers, AccessError for one that refuses.
    """
    scheme = urlsplit(url).scheme
    seconds = timeout.total_seconds()
    options = {"socket_timeout": seconds, "socket_connect_timeout": seconds, "client_name": "finale"}
    if scheme.endswith("+sentinel"):
        return _by_sentinel(url, options)
    if scheme.endswith("+cluster"):
        return _cluster(url, options)
    client: redis.Redis = redis.Redis.from_url(url, **options, retry=_once())
    return client


@contextmanager
def opened(url: str, timeout: timedelta) -> Iterator[redis.Redis]:
    """Yield a client as :func:`redis_client` returns it, and close all its connections afterwards.

    Those to the Sentinels too, which redis-py leaves to whoever named them.
    """
    client = redis_client(url, timeout)
    try:
        yield client
    finally:
        client.close()
        sentinel: Any = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
        if sentinel is not None:
            sentinel.close()


def connector(client: redis.Redis, key: str) -> Callable[[], ProofConnection]:
    """Return what makes connections for a WATCH to the server that serves ``key``, looked up anew for each."""
    cluster = isinstance(cast("Any", client), redis.RedisCluster)
    connect: Connect = cluster_factory(client, key) if cluster else proof_factory(client)
    return lambda: ProofConnection(connect)


def _once() -> Retry:
    return Retry(NoBackoff(), 0)


def _by_sentinel(url: str, options: dict[str, Any]) -> redis.Redis:
    """Return a client of the primary that the Sentinels name under the service in the URL's path."""
    service, _, database = urlsplit(url).path.strip("/").partition("/")
    given = _given(url, f"/{database or 0}")
    watchers = {name: given[name] for name in given if name.startswith("ssl")}
    watchers |= {
        name: given.pop(f"sentinel_{name}") for name in ("username", "password") if f"sentinel_{name}" in given
    }
    sentinel = cast("Any", Sentinel)(
        [(host, port or SENTINEL_PORT) for host, port in _hosts(url)],
        sentinel_kwargs={**options, **watchers, "retry": _once()},
    )
    client: redis.Redis = sentinel.master_for(service, **given, **options, retry=_once())
    return client


def _cluster(url: str, options: dict[str, Any]) -> redis.Redis:
    """Return a client of the cluster, asking the nodes in the URL in turn until one answers."""
    given = _given(url, "")
    nodes = [cast("Any", ClusterNode)(host, port or CLUSTER_PORT) for host, port in _hosts(url)]
    cluster = cast("Any", redis.RedisCluster)
    try:
        return cast("redis.Redis", cluster(startup_nodes=nodes, retry=_once(), **given, **options))
    except (redis.AuthenticationError, redis.ResponseError) as error:
        raise _refused(url, error) from None
    except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, redis.AuthenticationError | redis.ResponseError):
            raise _refused(url, cause) from None
        if _NO_CLUSTER in str(error):
            raise AccessError(
                f"the server {_shown(url)} is no node of a cluster",
                detail=_NO_CLUSTER,
                hint="write redis:// for one server, redis+sentinel://host:26379/SERVICE for Sentinels",
            ) from None
        raise unanswered(error, f"the cluster {_shown(url)}") from None


def _given(url: str, path: str) -> dict[str, Any]:
    """Return what the URL says of credentials, options and TLS, as redis-py reads the URL of a single server."""
    parts = urlsplit(url)
    tls = parts.scheme.startswith("rediss")
    user, at, _ = parts.netloc.rpartition("@")
    plain = urlunsplit(("rediss" if tls else "redis", f"{user}{at}host", path, parts.query, ""))
    given: dict[str, Any] = parse_url(plain)  # type: ignore[no-untyped-call]  # has no annotations
    given.pop("host")
    if given.pop("connection_class", None) is SSLConnection:
        given["ssl"] = True
    return given


def _hosts(url: str) -> list[tuple[str, int | None]]:
    """Return every host with its port, None where there is none."""
    hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
    parts = [urlsplit(f"//{host}") for host in hosts]
    return [(part.hostname or "", part.port) for part in parts]


def _refused(url: str, error: BaseException) -> AccessError:
    detail = "" if isinstance(error, redis.AuthenticationError) else str(error)
    return AccessError(
        f"the cluster {_shown(url)} refused the connection",
        detail=detail,
        hint="check user and password in [servers] redis, or FINALE_REDIS, and that cluster mode is on",
    )


def _shown(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]
