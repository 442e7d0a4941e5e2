"""What the live board refuses: a lost lease, a lost claim, lost writes, a key of the wrong type."""

from __future__ import annotations

from leaderboard.errors import FinaleError, InputError, LeaseLostError


class FencedError(LeaseLostError):
    """Another applier holds the bucket now; nothing was written."""


class LostWritesError(FinaleError):
    """The server no longer holds what was written to it. Claim the bucket again and write what is pending again."""

    exit_code = 13


class UnclaimedError(LostWritesError):
    """The server does not know the bucket's claim: a failover lost it, or the season was cleaned."""


class RolledBackError(LostWritesError):
    """The bucket's running number is not the one before the batch's; nothing was written.

    ``stored`` is the number on the server: lower, and a failover has lost batches; higher, and an earlier write arrived
    although its answer did not.
    """

    def __init__(self, message: str, *, stored: int, detail: str = "", hint: str = "") -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.stored = stored


class WrongTypeError(InputError):
    """A key holds another type than Finale expects there; the message names the key and both types."""
