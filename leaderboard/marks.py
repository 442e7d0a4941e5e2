"""How far a bucket of players has been written to a live key, as the ledger and the server tell it."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_bytes

_FENCE, _RANDOM = 8, 8  # bytes of a token


@dataclass(frozen=True, slots=True)
class Mark:
    """The running number of the last batch, and its token in hexadecimal, as :func:`new_token` makes it.

    0 and "" where nothing was written; "" also where the ledger did not keep the token.
    """

    number: int = 0
    token: str = ""

    @property
    def fence(self) -> int:
        """The fence under which the batch was written; 0 if that is not known."""
        return int(self.token[: 2 * _FENCE], 16) if len(self.token) == 2 * (_FENCE + _RANDOM) else 0


def new_token(fence: int) -> bytes:
    """Return a token for a batch: the fence under which it is written, then random bytes, so that none comes twice."""
    return fence.to_bytes(_FENCE, "big") + token_bytes(_RANDOM)


def has_lost(server: Mark, recorded: Mark) -> bool:
    """Return whether the server no longer has what was recorded as written.

    A lower number says so. The same number with another token says that batches were lost in a failover and that one
    which should have been refused, sent by a former holder, was then taken in their place. So does a higher number
    under a lower fence: it was several of them. Any other higher number says nothing: whatever was written and not
    recorded is still pending.
    """
    if server.number == recorded.number:
        return recorded.token not in ("", server.token)
    return server.number < recorded.number or server.fence < recorded.fence
