"""Connections like those of the user's client, but each connects once and never again.

Address, TLS, credentials, Sentinel and cluster routing are redis-py's work; health checks, retries and decoding are not
taken over. A connection that holds a WATCH must not come back without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import redis
from redis import exceptions as driver
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from archive.parser import ColumnParser
from archive.refusals import unanswered

Connect = Callable[[], Any]  # makes a redis-py connection; their classes are annotated only in part


def proof_factory(client: redis.Redis) -> Connect:
    """Return a maker of connections like those of ``client``, but each connects once and never again.

    Class (TCP, Unix socket, TLS, Sentinel), address, credentials and protocol are the client's; health checks, retries
    and decoding are not.
    """
    pool = client.connection_pool
    kwargs = {
        name: value
        for name, value in pool.connection_kwargs.items()
        if not name.startswith(("maint_", "orig_", "oss_", "retry"))
    }
    kwargs |= {"health_check_interval": 0, "decode_responses": False, "parser_class": ColumnParser}
    if "maint_notifications_config" in pool.connection_kwargs:
        kwargs["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
    once = _once(pool.connection_class)
    return lambda: once(**kwargs, retry=Retry(NoBackoff(), 0))


@cache
def _once(base: type[AbstractConnection]) -> type[AbstractConnection]:
    """Return the subclass of ``base`` whose instances open one socket in their life."""

    class Once(base):  # type: ignore[misc,valid-type]  # the class is the client's, known only at run time
        _opened = False

        def _connect(self) -> Any:
            if self._opened:
                raise driver.ConnectionError("the connection broke, and one that holds a WATCH is never opened again")
            sock = super()._connect()
            self._opened = True
            return sock

        @property
        def columns(self) -> ColumnParser:
            return self._parser  # type: ignore[no-any-return]  # the class that proof_factory asks for

    Once.__name__ = Once.__qualname__ = f"Once{base.__name__}"
    return Once


def cluster_factory(cluster: Any, key: str) -> Connect:
    """Return a maker of connections to the node that serves ``key``, looked up anew each time: slots move.

    ``cluster`` is a redis.RedisCluster, which is annotated only in part. The maker's calls raise UnavailableError if no
    node tells, or none serves the key.
    """

    def connect() -> Any:
        try:
            cluster.nodes_manager.initialize()
            node = cluster.get_node_from_key(key)
            client = cluster.get_redis_connection(node)
        except (driver.RedisError, driver.RedisClusterException, OSError) as error:
            raise unanswered(error, "the cluster's nodes") from None
        return proof_factory(client)()

    return connect
