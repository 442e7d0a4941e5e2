"""What Redis answers when it does not do as asked, in words an operator can act on and without secrets."""

from __future__ import annotations

from redis import exceptions as driver

from leaderboard.errors import AccessError, FinaleError, InputError, UnavailableError
from leaderboard.replies import url_hint

# First words of error replies that mean "not now": nothing was done and the same command may work later.
_NOT_NOW = {
    "LOADING": ("is still loading its data", "wait until it has; then run again"),
    "MISCONF": (
        "refuses writes because it cannot save to disk",
        "mend its disk or its snapshot settings; then run again",
    ),
    "OOM": ("is at its maxmemory and refuses commands", "raise maxmemory or free some; then run again"),
    "READONLY": ("is a replica now and takes no writes", "run again, against the primary"),
    "NOREPLICAS": ("refuses writes because too few replicas follow it", "bring the replicas back; then run again"),
    "MASTERDOWN": ("has lost its primary", "run again once a primary answers"),
    "CLUSTERDOWN": ("says that its cluster is down", "run again once the cluster is whole"),
    "BUSY": ("is busy with a script", "run again once the script has ended"),
    "MOVED": ("says that another node serves the key", "run again; the node is looked up anew"),
    "ASK": ("says that the key is moving to another node", "run again once the slot has moved"),
    "TRYAGAIN": ("says that the key is moving to another node", "run again once the slot has moved"),
    "EXECABORT": ("discarded the transaction", "nothing was changed; run again"),
}
_RIGHTS = (
    "allow the user CLIENT|ID, ROLE, INFO, WATCH, MULTI, EXEC, TYPE, ZCARD, ZRANGE, for boards with shards ZCOUNT and "
    "ZSCORE, and, for cleaning, GET, EXISTS, UNLINK, RENAMENX, EXPIRE, PERSIST, WAIT and EVAL, on the board's keys"
)
_EXEC_DENIED = "permissions to run the 'exec' command"  # told as a transaction that was discarded


class CrowdedError(UnavailableError):
    """The server is at its maxmemory and refuses the command; a transaction of any commands at all, where it is old."""


class MovedError(UnavailableError):
    """The key's slot is on another node of the cluster, or on its way there; whoever asks anew finds it."""


class WrongTypeError(InputError):
    """The key named for a board holds something that is not a sorted set."""


_KINDS: dict[str, type[UnavailableError]] = {
    "OOM": CrowdedError,
    "MOVED": MovedError,
    "ASK": MovedError,
    "TRYAGAIN": MovedError,
}


def refused(error: driver.RedisError, address: str, command: str) -> FinaleError:
    """Return the error reply of Redis at ``address`` to ``command`` (its name) as what an operator is told."""
    text = str(error)
    code = getattr(error, "status_code", None) or text.split(" ", 1)[0]
    if isinstance(error, driver.AuthenticationError) or code in ("NOAUTH", "WRONGPASS"):
        return AccessError(
            f"Redis at {address} refused the user name or password", hint="check the URL, or the variable it comes from"
        )
    if isinstance(error, driver.NoPermissionError) or code == "NOPERM" or _EXEC_DENIED in text:
        return AccessError(
            f"Redis at {address} does not allow this user the command {command}", detail=text, hint=_RIGHTS
        )
    if code == "WRONGTYPE":
        return WrongTypeError(f"Redis at {address}: a key that is not a sorted set was named to {command}", detail=text)
    if code in _NOT_NOW:
        reason, hint = _NOT_NOW[code]
        hints = "; ".join(filter(None, (hint, url_hint(text))))
        return _KINDS.get(code, UnavailableError)(f"Redis at {address} {reason}", detail=text, hint=hints)
    return AccessError(f"Redis at {address} refused the command {command}", detail=text, hint=url_hint(text))


def refused_hello(error: driver.ResponseError, address: str) -> FinaleError:
    """Return an error reply to the first commands of a connection, without its text.

    A server that does not know HELLO repeats its arguments, the password among them, in the reply.
    """
    told = refused(error, address, "HELLO or AUTH")
    return type(told)(told.message, hint=told.hint or "check the server's version and the protocol in its URL")


def unanswered(error: Exception, address: str) -> UnavailableError:
    """Return a timeout or a broken connection as an UnavailableError that names the server."""
    return UnavailableError(
        f"Redis at {address} did not answer",
        detail=str(error),
        hint="check that it runs and can be reached",
    )
