"""Redis's own errors, told as Finale's: which server, which key, what to do. Never a password."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from redis import Redis
from redis import exceptions as driver

from leaderboard.errors import AccessError, FinaleError, InputError, UnavailableError
from leaderboard.replies import url_hint
from live.errors import WrongTypeError

# What a server says when it cannot serve for now, and the remedy. The code starts the message of a command's error; for
# one raised inside a script, the words of the driver's class are gone and only the text still has it.
_FOR_NOW = {
    "OOM": "its memory is full (maxmemory): give it more, or remove what is not needed; never let it evict boards",
    "READONLY": "this is a replica: name the primary in [servers] redis, or wait until the failover has ended",
    "LOADING": "it is still loading its data: wait, then run the command again",
    "MASTERDOWN": "this replica has lost its primary: name the primary in [servers] redis, or wait for the failover",
    "CLUSTERDOWN": "some slots of the cluster have no server: mend the cluster, then run the command again",
    "MOVED": f"another node serves this slot: run the command again; {url_hint('MOVED')}",
    "TRYAGAIN": "the cluster is moving this slot: run the command again",
    "NOREPLICAS": "it has fewer replicas than min-replicas-to-write: bring them back, then run the command again",
    "MISCONF": "it cannot save to its disk and refuses writes: see its log, then run the command again",
    "BUSY": "it is busy with somebody's long script: wait, or end that with SCRIPT KILL",
}
_CODE = re.compile(rf"\b({'|'.join(_FOR_NOW)}|WRONGTYPE|NOPERM|NOAUTH|WRONGPASS)\b")
_CODES: dict[type[Exception], str] = {
    driver.OutOfMemoryError: "OOM",
    driver.ReadOnlyError: "READONLY",
    driver.BusyLoadingError: "LOADING",
    driver.MasterDownError: "MASTERDOWN",
    driver.ClusterDownError: "CLUSTERDOWN",
    driver.MovedError: "MOVED",
    driver.TryAgainError: "TRYAGAIN",
    driver.AuthenticationError: "WRONGPASS",
    driver.AuthorizationError: "NOAUTH",
    driver.NoPermissionError: "NOPERM",
}

#: What the driver raises.
ERRORS = (driver.RedisError, driver.RedisClusterException, OSError)


@contextmanager
def translated(client: Redis, keys: Mapping[str, str]) -> Iterator[None]:
    """Raise what Redis raises inside as a FinaleError. ``keys`` maps each key in use to the type it must have.

    No answer, or none for now, is UnavailableError; a refused login or right AccessError; a key of another type
    WrongTypeError.
    """
    try:
        yield
    except ERRORS as error:
        raise told(client, keys, error) from error


def told(client: Redis, keys: Mapping[str, str], error: Exception) -> FinaleError:
    """Return one of ``ERRORS`` as ``translated`` raises it, for those to whom a context manager is too slow."""
    if isinstance(error, driver.DataError):
        return InputError(f"not a value that Redis can take: {error}")
    return _told(client, keys, error)


def address(client: Redis) -> str:
    """Return how to name the client's server to a person: its socket, host and port, or the service that Sentinels
    watch; never a user or password.
    """
    pool = getattr(client, "connection_pool", None)
    if service := getattr(pool, "service_name", None):
        return f"Redis, the primary of {service},"
    if pool is None:
        return "the Redis cluster"
    settings = getattr(pool, "connection_kwargs", {})
    if "path" in settings:
        return f"Redis at {settings['path']}"
    if "host" in settings:
        return f"Redis at {settings['host']}:{settings.get('port', 6379)}"
    return "Redis"


def _told(client: Redis, keys: Mapping[str, str], error: Exception) -> FinaleError:
    server = address(client)
    code = _code_of(error)
    if code in _FOR_NOW:
        return UnavailableError(f"{server} cannot do this now ({code})", hint=_FOR_NOW[code])
    if code == "WRONGTYPE":
        return _wrong_type(client, server, keys)
    if code == "NOPERM":
        return AccessError(
            f"{server} does not allow this user what Finale needs",
            detail=str(error),
            hint="grant the user ~<keys>, +@sortedset, +@string, +@hash, +@scripting, +@transaction, +type, +info, "
            "and, for finale rebuild, +exists, +rename, +unlink",
        )
    if code in ("NOAUTH", "WRONGPASS"):
        return AccessError(
            f"{server} refused the login", hint="check user and password in [servers] redis, or FINALE_REDIS"
        )
    if isinstance(error, driver.ResponseError):
        return AccessError(f"{server} refused what Finale asked of it", detail=str(error), hint=url_hint(str(error)))
    return UnavailableError(
        f"{server} did not answer",
        detail=str(error),
        hint="check that it runs and that [servers] redis names it, then run the command again",
    )


def _code_of(error: Exception) -> str:
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return code
    if not isinstance(error, driver.ResponseError):
        return ""
    text = str(error)
    if "ACL failure" in text or "can't run this command" in text:
        return "NOPERM"
    found = _CODE.search(text)
    return found.group(1) if found else ""


def _wrong_type(client: Redis, server: str, keys: Mapping[str, str]) -> FinaleError:
    """Ask which of ``keys`` it was, since a script's error does not say."""
    for key, expected in keys.items():
        with translated(client, {}):
            found = _text(client.type(key))
        if found not in (expected, "none"):
            return WrongTypeError(
                f"the key {key!r} is a {found}, not a {expected}",
                detail=f"on {server}",
                hint="move that key, which is no board, away; finale results apply … --all writes the board anew",
            )
    return UnavailableError(f"{server}: a key changed its type while it was in use", hint="run the command again")


def _text(reply: object) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)
