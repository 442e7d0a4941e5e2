"""The runner's fence beside a live key (I9), and the key that names the open season's live key for readers."""

from __future__ import annotations

from redis import Redis

from leaderboard.errors import InputError, LeaseLostError
from leaderboard.keys import helper_key
from live.scripts import run, send
from live.translate import translated


def raise_fence(client: Redis, live_key: str, fence: int) -> None:
    """Write the runner's fence beside the live key, the first thing that a take-over does; safe to repeat.

    Raises LeaseLostError when a higher fence stands there.
    """
    key = helper_key(live_key, "fence")
    stored = _number(key, run(client, "fence", {key: "string"}, fence))
    if stored != fence:
        raise LeaseLostError(
            f"{live_key} belongs to a later runner",
            detail=f"the fence beside it is {stored}, this runner's {fence}",
            hint="nothing was changed; the other runner goes on",
        )


def withdraw_fence(client: Redis, live_key: str, fence: int) -> None:
    """Remove the fence beside the live key if it is still ``fence``: of a runner that had been taken over before.

    Whoever has taken over raises its own, or has cleaned the season and left none. Safe to repeat.
    """
    run(client, "withdraw_fence", {helper_key(live_key, "fence"): "string"}, fence)


def read_fence(client: Redis, live_key: str) -> int | None:
    """Return the fence beside the live key; None where no runner has written one."""
    key = helper_key(live_key, "fence")
    stored = _get(client, key)
    return None if stored is None else _number(key, stored)


def read_current(client: Redis, current_key: str) -> str | None:
    """Return the live key that ``current_key`` names; None where it does not exist."""
    stored = _get(client, current_key)
    return None if stored is None else stored.decode(errors="backslashreplace")


def set_current(client: Redis, current_key: str, live_key: str, *, seen: str | None) -> bool:
    """Let ``current_key`` name ``live_key``; return whether that had to be written.

    ``seen`` is what ``read_current`` returned to the caller. Raises LeaseLostError when the key now says something else
    than that, so a write that arrives late cannot bring an earlier season back.
    """
    before = () if seen is None else (seen.encode(),)
    status, *rest = run(client, "current", {current_key: "string"}, live_key.encode(), *before)
    if status == b"changed":
        stored = rest[0].decode(errors="backslashreplace")
        raise LeaseLostError(
            f"{current_key} was changed by another to {stored!r}",
            detail=f"it said {seen!r} when this runner looked",
            hint="nothing was written; run the command again",
        )
    return bool(status == b"set")


def _get(client: Redis, key: str) -> bytes | None:
    with translated(client, {key: "string"}):
        value: bytes | None = send(client, "GET", key)
    return value


def _number(key: str, stored: bytes) -> int:
    try:
        return int(stored)
    except ValueError:
        raise InputError(
            f"the key {key!r} holds {stored[:40]!r}, not a fence", hint="something else wrote it: move that key away"
        ) from None
