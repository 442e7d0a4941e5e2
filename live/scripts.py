"""Runs the Lua scripts of this package: loaded once, called by their hash, sent whole where the server lacks one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Any

from redis import Redis
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError

from live.translate import ERRORS, told

_USES = re.compile(rb"-- use (\w+)\n")


@dataclass(frozen=True, slots=True)
class Script:
    """A script's source and the hash by which a server knows it."""

    source: bytes
    digest: str


@cache
def load(name: str) -> Script:
    """Return the script ``lua/<name>.lua`` of this package, after the file that its first line says it uses."""
    source = _read(name)
    if used := _USES.match(source):
        source = _read(used[1].decode()) + source
    return Script(source, sha1(source, usedforsecurity=False).hexdigest())


def _read(name: str) -> bytes:
    return (files("live") / "lua" / f"{name}.lua").read_bytes()


def run(client: Redis, name: str, keys: Mapping[str, str], *arguments: bytes | str | int) -> Any:
    """Run the script ``name`` atomically and return its reply: lists, integers and bytes, whatever the client decodes.

    ``keys`` maps the script's keys, in its order and in one slot, to the types they must have. Raises UnavailableError,
    AccessError or WrongTypeError; on an error that the script itself met nothing has been written.
    """
    script = load(name)
    rest = (len(keys), *map(str.encode, keys), *arguments)
    try:
        try:
            return send(client, "EVALSHA", script.digest, *rest)
        except NoScriptError:
            return send(client, "EVAL", script.source, *rest)
    except ERRORS as error:
        raise told(client, keys, error) from error


def ask(client: Redis, keys: Mapping[str, str], *command: bytes | str | int) -> Any:
    """Return the reply to one command about ``keys``, otherwise as ``run``."""
    try:
        return send(client, *command)
    except ERRORS as error:
        raise told(client, keys, error) from error


def send(client: Redis, *command: bytes | str | int) -> Any:
    """Return the reply to one command, its strings as bytes even where the client decodes. Raises as Redis does."""
    return client.execute_command(*command, **{NEVER_DECODE: True})  # type: ignore[no-untyped-call]  # has no annotations
