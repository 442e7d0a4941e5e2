"""One question to many keys: sent together, a round trip a node, whatever the topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from redis import Redis, RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import ExecAbortError, NoScriptError, ResponseError

from live.scripts import load
from live.translate import translated

Argument = bytes | str | int


def each(client: Redis, keys: Mapping[str, str], commands: Sequence[Sequence[Argument]]) -> list[Any]:
    """Return the replies to several commands, in order; on one server from one version of all its keys.

    ``keys`` maps the keys that they read to their types. Raises as ``live.scripts.run``.
    """
    with translated(client, keys):
        return _all(client, commands)


def run_each(client: Redis, name: str, calls: Sequence[tuple[Sequence[str], Sequence[Argument]]]) -> list[Any]:
    """Return the replies of the script ``name`` to several calls, each given as its keys and arguments."""
    script = load(name)

    def words(*command: Argument) -> list[list[Argument]]:
        return [[*command, len(keys), *(key.encode() for key in keys), *arguments] for keys, arguments in calls]

    with translated(client, {keys[0]: "zset" for keys, _ in calls}):
        try:
            return _all(client, words("EVALSHA", script.digest))
        except NoScriptError:
            return _all(client, words("EVAL", script.source))


def _all(client: Redis, commands: Sequence[Sequence[Argument]]) -> list[Any]:
    if isinstance(cast("Any", client), RedisCluster):
        return _by_node(client, commands)
    pool: Any = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_packed_command(connection.pack_commands([("MULTI",), *commands, ("EXEC",)]))
        replies = [_reply(connection) for _ in range(len(commands) + 2)]
    except BaseException:
        connection.disconnect()  # half an answer must not be the next one's
        raise
    finally:
        pool.release(connection)
    return _checked([*replies[:-1], *(replies[-1] if isinstance(replies[-1], list) else [replies[-1]])])[
        -len(commands) :
    ]


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response(disable_decoding=True)
    except ResponseError as error:
        return error


def _by_node(client: Redis, commands: Sequence[Sequence[Argument]]) -> list[Any]:
    with client.pipeline() as pipeline:
        for command in commands:
            pipeline.execute_command(*command, **{NEVER_DECODE: True})  # type: ignore[no-untyped-call]  # has no annotations
        return _checked(pipeline.execute(raise_on_error=False))


def _checked(replies: list[Any]) -> list[Any]:
    for reply in replies:
        if isinstance(reply, Exception) and not isinstance(reply, ExecAbortError):
            raise reply
    return replies
