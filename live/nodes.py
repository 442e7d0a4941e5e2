"""Which server to ask what no key routes: the one that serves a key, or every primary there is."""

from __future__ import annotations

from typing import Any, cast

from redis import Redis, RedisCluster

from live.translate import translated


def serving(client: Redis, key: str) -> Redis:
    """Return a client of the one server that serves ``key``: ``client`` itself, but of a cluster that key's node.

    Raises UnavailableError if no node of the cluster tells, or none serves the key.
    """
    cluster = _cluster(client)
    if cluster is None:
        return client
    with translated(client, {}):
        client.type(key)  # a slot that has moved is found out so
        return cast("Redis", cluster.get_redis_connection(cluster.get_node_from_key(key)))


def primaries(client: Redis) -> list[Redis]:
    """Return a client of every primary: ``client`` alone, but of a cluster one for each node that serves slots.

    Raises UnavailableError if no node of the cluster tells.
    """
    cluster = _cluster(client)
    if cluster is None:
        return [client]
    with translated(client, {}):
        cluster.nodes_manager.initialize()
        return [cluster.get_redis_connection(node) for node in cluster.get_primaries()]


def _cluster(client: object) -> Any:
    """Return a cluster's client, which redis-py annotates in part; None for any other."""
    return client if isinstance(client, RedisCluster) else None
