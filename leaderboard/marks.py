"""How far a bucket of players has been written to a live key, as the ledger and the server tell it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """The running number of the last batch, and its token: random, so no two batches ever have the same.

    0 and "" where nothing was written; "" also where the ledger did not keep the token.
    """

    number: int = 0
    token: str = ""


def has_lost(server: Mark, recorded: Mark) -> bool:
    """Return whether the server no longer has what was recorded as written.

    A lower number says so. The same number with another token says that batches were lost in a failover and that one
    which should have been refused, sent by a former holder, was then taken in their place. A higher number says
    nothing: whatever was written and not recorded is still pending.
    """
    if server.number == recorded.number:
        return recorded.token not in ("", server.token)
    return server.number < recorded.number
