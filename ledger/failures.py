"""PostgreSQL's refusals and silences in an operator's words, without user, password or the driver's own classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from leaderboard.errors import AccessError, ConfigError, FinaleError, UnavailableError

_AGAIN = "run the command again"
#: Classes of codes that say nothing of the statement: the connection, resources, an operator, another transaction.
REFUSED_FOR_NOW = ("08", "40", "53", "57", "58")
# What a server says that is there, but not for us now; anything else that is FATAL is a refusal.
_BUSY = ("the database system is", "too many", "remaining connection slots", "terminating connection")


def where(url: str) -> str:
    """Return host, port and database of a URL, without user or password. Raises ConfigError if it cannot be read."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise _unreadable() from None
    host, port, name = (str(parts.get(key) or "") for key in ("host", "port", "dbname"))
    # A bare / or @ in a password shifts its end into these, where it would be shown.
    if not re.fullmatch(r"[0-9,]*", port) or "@" in host + name:
        raise _unreadable()
    return f"{host or 'localhost'}{f':{port}' if port else ''}/{name}"


def _unreadable() -> ConfigError:
    return ConfigError(
        "the PostgreSQL URL cannot be read",
        hint="write postgresql://user:password@host:5432/database, with / @ : ? # in a password as %2F %40 %3A %3F %23",
    )


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn the driver's errors into Finale's, naming the server but no secret."""
    try:
        yield
    except psycopg.Error as error:
        raise _translation(url, error) from error


def _translation(url: str, error: psycopg.Error) -> FinaleError:
    place = where(url)
    said = (error.diag.message_primary or str(error).strip() or type(error).__name__).splitlines()[0]
    match error:
        case psycopg.OperationalError() if error.sqlstate is None:
            return _not_connected(url, error)
        case errors.QueryCanceled() | errors.LockNotAvailable():
            return UnavailableError(f"PostgreSQL at {place} did not finish in time", detail=said, hint=_AGAIN)
        case psycopg.OperationalError() if (error.sqlstate or "").startswith("40"):
            return UnavailableError(f"PostgreSQL at {place} gave up a transaction", detail=said, hint=_AGAIN)
        case psycopg.OperationalError() | errors.IdleInTransactionSessionTimeout():
            return UnavailableError(
                f"PostgreSQL at {place} broke off", detail=said, hint="see its log, then run the command again"
            )
        case psycopg.InterfaceError():
            return UnavailableError(f"the connection to PostgreSQL at {place} is closed", hint=_AGAIN)
        case _:
            return refusal(place, error.sqlstate or "", said)


def refusal(place: str, sqlstate: str, said: str) -> FinaleError:
    """Return what an error code of PostgreSQL means to an operator; ``said`` is the server's own message.

    The codes: PostgreSQL documentation, appendix A.
    """
    match sqlstate:
        case "42P01" | "3F000" | "42883" | "42703":
            return AccessError(
                f"the database {place} lacks a part of Finale's schema", detail=said, hint="run: finale db migrate"
            )
        case "42501":
            return AccessError(
                f"PostgreSQL at {place} does not allow it", detail=said, hint="grant the role what it lacks"
            )
        case "25006":
            return AccessError(f"PostgreSQL at {place} only reads", detail=said, hint="give the URL of the primary")
        case _:
            return FinaleError(f"PostgreSQL at {place} refused a statement", detail=said, hint="see its log")


def _not_connected(url: str, error: psycopg.OperationalError) -> FinaleError:
    """Return the error for a connection that failed or broke: libpq then gives a text, and no code."""
    place, text = where(url), str(error)
    hint = "start it, or correct FINALE_POSTGRES or [servers] postgres"
    if "password authentication failed" in text or "no password supplied" in text:
        return AccessError(
            f"PostgreSQL at {place} refused the login", hint="check user and password in FINALE_POSTGRES or [servers]"
        )
    if "does not exist" in text:
        return AccessError(f"PostgreSQL at {place} has no such database or role", hint="create it, or correct the URL")
    if "unsupported startup parameter" in text:
        return AccessError(
            f"the pooler at {place} refuses Finale's settings",
            hint="add statement_timeout to ignore_startup_parameters of PgBouncer",
        )
    if "FATAL" in text and not any(words in text for words in _BUSY):
        return AccessError(f"PostgreSQL at {place} refused the connection", detail=_last_words(text), hint=hint)
    return UnavailableError(f"PostgreSQL at {place} did not answer", detail=_last_words(text), hint=hint)


def _last_words(text: str) -> str:
    """Return what the server said, or else what the network did, without the addresses before it."""
    return re.split(r"FATAL: |failed: |error: ", text.strip().splitlines()[0])[-1].strip()
