"""Score codecs: points, and the time they were reached, to a sorted-set score and back, exactly.

A score is an IEEE double, exact for whole numbers up to 2^53. ``packed`` puts the time below the points:
``points * multiplier + (multiplier - 1 - elapsed)`` on high boards, ``points * multiplier + elapsed`` on low ones.
``elapsed`` is the whole units since the season's start; earlier is therefore always nearer the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

from leaderboard.board import Board
from leaderboard.errors import ConfigError, InputError
from leaderboard.season import Bounds
from leaderboard.ties import UNIT_MICROSECONDS

if TYPE_CHECKING:  # imported where it is used: who only reads a season's row starts without it
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Doubles = NDArray[np.float64]

LIMIT = 2**53  #: first whole number beyond which doubles are no longer exact
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(instant: datetime) -> int:
    """Return the microseconds from 1970-01-01 UTC to an aware ``instant``, exactly."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


def from_microseconds(value: int) -> datetime:
    """Return the UTC instant ``value`` microseconds after 1970-01-01."""
    return _EPOCH + timedelta(0, 0, value)


_LAST = to_microseconds(datetime.max.replace(tzinfo=UTC))


class Codec(Protocol):
    """Points and reached_at (microseconds since 1970, UTC) to scores and back, one at a time and in arrays.

    ``minimum`` and ``maximum`` bound the points that can be encoded. Encoding anything else, and decoding a score that
    the codec cannot have written, raises InputError that shows the value.
    """

    @property
    def minimum(self) -> int: ...
    @property
    def maximum(self) -> int: ...
    def encode(self, points: float, reached_at: int, /) -> float: ...
    def decode(self, score: float, /) -> tuple[float, int | None]: ...
    def encode_array(self, points: Integers, reached_at: Integers, /) -> Doubles: ...
    def decode_array(self, scores: Doubles, /) -> tuple[Integers | Doubles, Integers | None]: ...
    def floor(self, reached_at: int, /) -> int | None:
        """Return ``reached_at`` as it survives a round trip; None where the score does not know it."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """The score is the points: whole numbers, or any finite double on ``fraction`` boards."""

    fraction: bool = False
    minimum: int = -(LIMIT - 1)
    maximum: int = LIMIT - 1

    def encode(self, points: float, _reached_at: int = 0) -> float:
        if self.fraction:
            return float(self.encode_array(_one(points, "float64"))[0])
        return float(_whole_within(points, self.minimum, self.maximum))

    def decode(self, score: float) -> tuple[float, int | None]:
        if not self.fraction and float(score).is_integer() and abs(score) < LIMIT:
            return int(score), None
        return self.decode_array(_one(score, "float64"))[0][0].item(), None

    def encode_array(self, points: Integers | Doubles, _reached_at: Integers | None = None) -> Doubles:
        if not self.fraction:
            _within(_integers(points), self.minimum, self.maximum)
        scores: Doubles = points.astype("float64") + 0.0  # -0 is 0: Redis itself turns one into the other
        _finite(scores)
        return scores

    def decode_array(self, scores: Doubles) -> tuple[Integers | Doubles, Integers | None]:
        _finite(scores)
        if self.fraction:
            return scores + 0.0, None
        return _whole(scores), None

    def floor(self, _reached_at: int) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Packed:
    """Points above, the time of reaching below: see the module. Negative points are not encoded, only decoded."""

    multiplier: int
    unit: int  #: microseconds
    epoch: int  #: the season's start, microseconds since 1970
    descending: bool

    @property
    def minimum(self) -> int:
        return 0

    @property
    def maximum(self) -> int:
        return LIMIT // self.multiplier - 1

    def encode(self, points: float, reached_at: int) -> float:
        whole = _whole_within(points, self.minimum, self.maximum)
        return float(self.encode_array(_one(whole, "int64"), _one(reached_at, "int64"))[0])

    def decode(self, score: float) -> tuple[float, int | None]:
        if float(score).is_integer() and abs(score) < LIMIT:
            whole, low = divmod(int(score), self.multiplier)
            elapsed = self.multiplier - 1 - low if self.descending else low
            if elapsed <= (_LAST - self.epoch) // self.unit:
                return whole, self.epoch + elapsed * self.unit
        points, reached_at = self.decode_array(_one(score, "float64"))
        return int(points[0]), int(reached_at[0])

    def encode_array(self, points: Integers, reached_at: Integers) -> Doubles:
        _within(_integers(points), self.minimum, self.maximum)
        if points.shape != reached_at.shape:
            raise ValueError(f"{points.size} points, but {reached_at.size} times")
        # Compared before it is subtracted: a time at the far end of int64 would wrap round into the season.
        outside = (reached_at < self.epoch) | (reached_at >= self.epoch + self.multiplier * self.unit)
        if outside.any():
            wrong = int(reached_at[outside][0])
            raise InputError(
                f"reached_at {_instant(wrong)} does not fit beside the points",
                detail=f"{(wrong - self.epoch) // self.unit:,} units after the season's start; "
                f"0 to {self.multiplier - 1:,} fit",
            )
        elapsed = (reached_at - self.epoch) // self.unit
        low = self.multiplier - 1 - elapsed if self.descending else elapsed
        packed: Doubles = (points * self.multiplier + low).astype("float64")
        return packed

    def decode_array(self, scores: Doubles) -> tuple[Integers, Integers]:
        points, low = divmod(_whole(scores), self.multiplier)
        elapsed = self.multiplier - 1 - low if self.descending else low
        beyond = elapsed > (_LAST - self.epoch) // self.unit
        if beyond.any():
            wrong = float(scores[beyond][0])
            raise InputError(
                f"the score {wrong!r} says a time after the year 9999", hint="something else has written to this key"
            )
        return points, self.epoch + elapsed * self.unit

    def floor(self, reached_at: int) -> int | None:
        return self.epoch + (reached_at - self.epoch) // self.unit * self.unit


def codec_for(board: Board, bounds: Bounds) -> Codec:
    """Return the codec of ``board`` in the season ``bounds``.

    Raises ConfigError, with the arithmetic, for a season too long for the unit of the time packed in its scores.
    """
    if not board.packed:
        return Plain(fraction=board.points == "fraction")
    unit = UNIT_MICROSECONDS[board.ties.unit]
    units = f"{board.ties.unit}s"
    last = (to_microseconds(bounds.ends_at) - 1 - to_microseconds(bounds.starts_at)) // unit
    if last >= board.ties.multiplier:
        raise ConfigError(
            f"board {board.name}, season {bounds.id}: the {units} of the whole season do not fit into its scores",
            detail=f"the season has {last + 1:,} {units}, the multiplier leaves room for {board.ties.multiplier:,}",
            hint=_coarser(last * unit, board.ties.multiplier),
        )
    return Packed(board.ties.multiplier, unit, to_microseconds(bounds.starts_at), board.descending)


def _coarser(length: int, multiplier: int) -> str:
    fits = next((name for name, size in UNIT_MICROSECONDS.items() if length // size < multiplier), None)
    if fits is None:
        return "make the seasons shorter, or the multiplier larger"
    return f'write ties = {{ by = "first_to_reach", unit = "{fits}" }}, or make the seasons shorter'


def _whole_within(points: float, minimum: int, maximum: int) -> int:
    """Return one player's points as an exact int; raise InputError for fractions, inf, nan, and ints out of range."""
    if isinstance(points, float) and not points.is_integer():  # inf and nan are not either
        raise InputError(f"{points!r} points are not a whole number")
    if not minimum <= points <= maximum:
        raise _out_of_range(int(points), minimum, maximum)
    return int(points)


def _integers(points: Integers | Doubles) -> Integers:
    if points.dtype != "int64":
        raise TypeError(f"points are {points.dtype}, and int64 is wanted")
    return points  # type: ignore[return-value]  # just looked at


def _within(points: Integers, minimum: int, maximum: int) -> None:
    if points.size and (points.min() < minimum or points.max() > maximum):
        raise _out_of_range(int(points[(points < minimum) | (points > maximum)][0]), minimum, maximum)


def _out_of_range(points: int, minimum: int, maximum: int) -> InputError:
    return InputError(
        f"{points:,} points cannot be told apart exactly in a score",
        detail=f"{minimum:,} to {maximum:,} can, below the ceiling of 2^53",
    )


def _instant(microseconds: int) -> str:
    try:
        return from_microseconds(microseconds).isoformat()
    except OverflowError:
        return f"{microseconds} microseconds after 1970"


def _one(value: float, kind: Literal["int64", "float64"]) -> NDArray[Any]:
    import numpy as np

    return np.array([value], dtype=kind)


def _finite(scores: Doubles) -> None:
    import numpy as np

    if not np.isfinite(scores).all():
        wrong = float(scores[~np.isfinite(scores)][0])
        raise InputError(f"the score {wrong!r} is not a finite number", hint="something else has written to this key")


def _whole(scores: Doubles) -> Integers:
    import numpy as np

    _finite(scores)
    inexact = (np.abs(scores) >= LIMIT) | (scores != np.floor(scores))
    if inexact.any():
        wrong = float(scores[inexact][0])
        reason = "is not a whole number" if abs(wrong) < LIMIT else "is past 2^53, where scores are no longer exact"
        raise InputError(f"the score {wrong!r} {reason}", hint="something else has written to this key")
    return scores.astype("int64")
