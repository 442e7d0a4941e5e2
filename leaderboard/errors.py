"""Every error an operator can meet: what happened, the detail, the remedy, and an exit code a script can test."""

from __future__ import annotations

from typing import ClassVar


class FinaleError(Exception):
    """An error with a message, an optional detail and a hint that names the remedy.

    ``exit_code`` is what the command line ends with; docs/runbook.md lists them all.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        return ". ".join(part.rstrip(".") for part in (self.message, self.detail, self.hint) if part)


class ConfigError(FinaleError):
    """The configuration, or a reward table, cannot be used as written."""

    exit_code = 3


class InputError(FinaleError):
    """A file or value handed to a command is not what it must be; an import alone took the rest of it."""

    exit_code = 4


class UnknownNameError(FinaleError):
    """A board, season or player that does not exist."""

    exit_code = 5


class NotDueError(FinaleError):
    """The season has not reached the time at which this may be done."""

    exit_code = 6


class UnavailableError(FinaleError):
    """A server did not answer: nothing is known to have changed."""

    exit_code = 10


class AccessError(FinaleError):
    """A server answered and refused: a wrong password, a missing right, a bucket that does not exist."""

    exit_code = 11


class OutcomeUnknownError(FinaleError):
    """A write was sent and its answer lost. Look again before anything is cleaned up."""

    exit_code = 12


class KeyReturnedError(FinaleError):
    """The live key of a season that was cleaned exists again. Nothing touches it unasked."""

    exit_code = 15


class ClockError(FinaleError):
    """This machine's clock and PostgreSQL's are too far apart; nothing was done."""

    exit_code = 16


class CalendarDiffersError(FinaleError):
    """The bounds that the ledger has stored are not those that the calendar says; the stored ones stand."""

    exit_code = 17


class DriftError(FinaleError):
    """Redis and the ledger differ. Told by whoever was asked to compare them; what a season does is another matter."""

    exit_code = 18


class DoctorError(FinaleError):
    """A check of ``finale doctor`` failed; the report says which, and the remedy."""

    exit_code = 19


class LeaseHeldError(FinaleError):
    """Another runner holds the season."""

    exit_code = 20


class LeaseLostError(FinaleError):
    """This runner's lease was taken over; whatever it had not recorded is no longer its to record."""

    exit_code = 21


class SeasonHeldError(FinaleError):
    """The season waits for a person; the message says why, the hint what releases it."""

    exit_code = 22


class WrongStateError(FinaleError):
    """The season's state does not allow what was asked."""

    exit_code = 23


class PausedError(FinaleError):
    """Everything has been paused by a person; no step is taken until they let it go on."""

    exit_code = 24


class ArchiveMismatchError(FinaleError):
    """What the store holds is not what its seal says."""

    exit_code = 30


class EmbeddedError(FinaleError):
    """An embedded server could not be started or stopped."""

    exit_code = 40
