"""Scores are exact, or refused: points and times packed into doubles and back."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.board import Board
from leaderboard.calendar_rule import Calendar
from leaderboard.codec import LIMIT, Packed, Plain, codec_for, from_microseconds, to_microseconds
from leaderboard.errors import ConfigError, InputError
from leaderboard.season import Bounds
from leaderboard.ties import Ties

START = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH = to_microseconds(START)
SECOND = 1_000_000
ROOM = 2**24
HIGH = Packed(ROOM, SECOND, EPOCH, descending=True)
LOW = Packed(ROOM, SECOND, EPOCH, descending=False)
MILLISECONDS = Packed(10**13, 1_000, EPOCH, descending=True)
PACKED = st.builds(
    Packed,
    multiplier=st.sampled_from([2, 1000, ROOM, 10**13, 2**40, 2**52]),
    unit=st.sampled_from([1_000, SECOND, 60 * SECOND, 86_400 * SECOND]),
    epoch=st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)).map(to_microseconds),  # noqa: DTZ001 (hypothesis wants naive limits)
    descending=st.booleans(),
)


def bounds(length: timedelta) -> Bounds:
    return Bounds(START, START + length, "s2026")


def board(**fields: object) -> Board:
    return Board.model_validate({"name": "goals", "calendar": {"every": "year"}, **fields})


def in_range(codec: Packed) -> st.SearchStrategy[tuple[int, int]]:
    last = min(codec.multiplier * codec.unit, to_microseconds(datetime(9999, 1, 1, tzinfo=UTC)) - codec.epoch) - 1
    return st.tuples(
        st.integers(0, codec.maximum) | st.sampled_from([0, codec.maximum]),
        (st.integers(0, last) | st.sampled_from([0, last])).map(lambda elapsed: codec.epoch + elapsed),
    )


class TestBoundaries:
    """C01, C02: the last values that fit, and the first that do not."""

    def test_c02_the_bit_budget_of_the_default_multiplier(self):
        """C02: 536,870,911 points are the ceiling, and the highest score is 2^53 - 1, exactly."""
        assert HIGH.maximum == LOW.maximum == 536_870_911
        assert HIGH.encode(536_870_911, EPOCH) == 9_007_199_254_740_991 == LIMIT - 1
        assert HIGH.decode(float(LIMIT - 1)) == (536_870_911, EPOCH)
        last = EPOCH + (ROOM - 1) * SECOND
        assert LOW.encode(536_870_911, last) == LIMIT - 1
        assert HIGH.encode(0, last) == 0.0

    @pytest.mark.parametrize("codec", [HIGH, LOW])
    @pytest.mark.parametrize("points", [536_870_912, -1, 2**53 + 1, 2**63, -(2**70), 10**400])
    def test_c02_points_over_the_ceiling_are_refused_with_the_arithmetic(self, codec, points):
        """C02: one more than fits, below zero, and numbers that no int64 or double holds."""
        with pytest.raises(InputError) as caught:
            codec.encode(points, EPOCH)
        assert f"{points:,} points" in str(caught.value)
        assert "0 to 536,870,911" in str(caught.value)

    @pytest.mark.parametrize("points", [LIMIT - 1, 1 - LIMIT, 0, -1])
    def test_c01_plain_points_are_exact_up_to_the_ceiling(self, points):
        """C01: |points| up to 2^53 - 1."""
        assert Plain().encode(points) == points
        assert Plain().decode(float(points)) == (points, None)

    @pytest.mark.parametrize("points", [LIMIT, LIMIT + 1, -LIMIT, 1_009_651_914_519_660_511, 2**64])
    def test_c01_plain_points_past_it_are_refused_and_shown(self, points):
        """C01: 2^53 as well, since 2^53 + 1 would be stored as the same double."""
        with pytest.raises(InputError, match=f"{points:,} points"):
            Plain().encode(points)

    @pytest.mark.parametrize("points", [1.5, float("nan"), float("inf"), float("-inf"), -0.25])
    @pytest.mark.parametrize("codec", [HIGH, Plain()])
    def test_c05_points_are_never_truncated(self, codec, points):
        """C05, C35: 1.5 points are refused, not counted as 1; nan and inf are no points."""
        with pytest.raises(InputError, match="whole number"):
            codec.encode(points, EPOCH)

    @pytest.mark.parametrize("codec", [HIGH, LOW, MILLISECONDS])
    @pytest.mark.parametrize("off", [-1, None])
    def test_c02_a_time_outside_the_room_is_refused(self, codec, off):
        """C02: a microsecond before the season, or the first after the last unit that fits."""
        at = codec.epoch + (codec.multiplier * codec.unit if off is None else off)
        with pytest.raises(InputError, match="does not fit beside the points"):
            codec.encode(1, at)
        assert codec.decode(codec.encode(1, at - 1 if off is None else at + 1))[0] == 1

    @pytest.mark.parametrize("at", [-(2**63), 2**63 - 1])
    def test_a_time_at_the_end_of_int64_does_not_wrap_into_the_season(self, at):
        """PostgreSQL's infinity arrives in Arrow as the end of int64; subtracting the epoch from it would wrap."""
        for codec in (HIGH, Packed(2**52, 1_000, EPOCH, True), Packed(ROOM, SECOND, -EPOCH, False)):
            with pytest.raises(InputError, match="reached_at"):
                codec.encode(1, at)

    @pytest.mark.parametrize("points", [np.array([1.5]), np.array([1], dtype=np.uint64), np.array([1], dtype=np.int32)])
    @pytest.mark.parametrize("codec", [HIGH, Plain()])
    def test_columns_of_another_type_are_a_mistake_of_the_program(self, codec, points):
        """Nothing is cast on the way in: an int32 column would overflow when it is multiplied."""
        with pytest.raises(TypeError, match="int64"):
            codec.encode_array(points, np.array([EPOCH]))


class TestForeignScores:
    """What somebody else wrote into the key."""

    @pytest.mark.parametrize("codec", [HIGH, LOW, MILLISECONDS, Plain()])
    @pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan")])
    def test_c02_infinite_scores_are_refused(self, codec, score):
        """C02: Redis keeps inf and -inf; a nan can only come from a file."""
        with pytest.raises(InputError, match="not a finite number"):
            codec.decode(score)

    @pytest.mark.parametrize("codec", [HIGH, LOW, MILLISECONDS, Plain()])
    @pytest.mark.parametrize("score", [0.5, -1.25, 3.2999999999999998])
    def test_c02_a_fraction_part_is_refused(self, codec, score):
        """C02, C05: never truncated."""
        with pytest.raises(InputError, match=f"{score} is not a whole number"):
            codec.decode(score)

    @pytest.mark.parametrize("codec", [HIGH, LOW, Plain()])
    @pytest.mark.parametrize("score", [float(LIMIT), -float(LIMIT), 1e17, 1e300, 1009651914519660511.0])
    def test_c01_a_score_past_two_to_the_53_is_refused(self, codec, score):
        """C01: such a double stands for several whole numbers."""
        with pytest.raises(InputError, match="past 2\\^53"):
            codec.decode(score)

    def test_c02_negative_scores_decode_by_floor(self):
        """C02: -3 * 2^24 + 123 is -3 points, where int(score / 2^24) says -2."""
        score = float(-3 * ROOM + 123)
        assert LOW.decode(score) == (-3, EPOCH + 123 * SECOND)
        assert HIGH.decode(score) == (-3, EPOCH + (ROOM - 1 - 123) * SECOND)
        assert LOW.decode(-1.0) == (-1, EPOCH + (ROOM - 1) * SECOND)

    def test_c03_an_increment_of_the_points_keeps_the_old_time(self):
        """C03: ZINCRBY by points * 2^24 decodes to the new points and the old time, for the comparison to find."""
        score = HIGH.encode(2, EPOCH + 7 * SECOND) + 3 * ROOM
        assert HIGH.decode(score) == (5, EPOCH + 7 * SECOND)

    def test_minus_zero_is_zero(self):
        """Redis turns one into the other; it must not show in points."""
        for codec in (Plain(), Plain(fraction=True)):
            points, _ = codec.decode(-0.0)
            assert str(points).startswith("0")
        assert LOW.decode(-0.0) == (0, EPOCH)
        assert np.copysign(1.0, Plain(fraction=True).encode(-0.0)) == 1.0
        assert np.copysign(1.0, Plain().encode(-0.0)) == 1.0

    @pytest.mark.parametrize("unit", ["second", "day"])
    def test_a_time_that_no_calendar_has_is_refused_instead_of_wrapping(self, unit):
        """The room below 10^13 is longer than all years; elapsed * unit would pass int64 and come back as a date."""
        wide = Packed(10**13, {"second": SECOND, "day": 86_400 * SECOND}[unit], EPOCH, True)
        with pytest.raises(InputError, match="after the year 9999"):
            wide.decode(0.0)
        assert wide.decode(float(10**13 - 1)) == (0, EPOCH)

    def test_the_score_shown_is_the_number_and_not_its_type(self):
        with pytest.raises(InputError) as caught:
            HIGH.decode(1.5)
        assert "np." not in str(caught.value)


class TestFractions:
    def test_any_finite_double_is_kept_bit_for_bit(self):
        codec = Plain(fraction=True)
        for score in (3.3, 1e300, 5e-324, -2.5, 1e17):
            assert codec.decode(codec.encode(score)) == (score, None)
        with pytest.raises(InputError, match="finite"):
            codec.encode(float("inf"))

    def test_a_fraction_board_has_this_codec(self):
        assert codec_for(board(points="fraction", ties="shared", ledger="none"), bounds(timedelta(days=900))) == Plain(
            fraction=True
        )


class TestRoundTrip:
    @given(st.data())
    def test_what_is_packed_is_read_back_at_the_units_resolution(self, data):
        """Every codec, high and low, any unit and multiplier, and both ends of each."""
        codec = data.draw(PACKED)
        points, at = data.draw(in_range(codec))
        score = codec.encode(points, at)
        assert abs(score) < LIMIT
        assert codec.decode(score) == (points, codec.floor(at))
        assert 0 <= at - codec.floor(at) < codec.unit
        assert codec.encode(*codec.decode(score)) == score

    @given(st.data())
    def test_one_at_a_time_and_in_arrays_are_the_same(self, data):
        """Scalar == vectorised, both ways."""
        codec = data.draw(PACKED)
        rows = data.draw(st.lists(in_range(codec), max_size=20))
        points, at = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
        scores = codec.encode_array(points, at)
        assert scores.tolist() == [codec.encode(*row) for row in rows]
        decoded, reached = codec.decode_array(scores)
        assert list(zip(decoded.tolist(), reached.tolist(), strict=True)) == [codec.decode(s) for s in scores.tolist()]
        assert (scores.dtype, decoded.dtype, reached.dtype) == (np.float64, np.int64, np.int64)

    @given(st.integers(1 - LIMIT, LIMIT - 1))
    def test_c02_any_whole_score_decodes_as_exact_integers_say(self, score):
        """C02: against divmod on Python's own integers, negative ones too."""
        points, elapsed = divmod(score, ROOM)
        assert LOW.decode(float(score)) == (points, EPOCH + elapsed * SECOND)
        assert HIGH.decode(float(score)) == (points, EPOCH + (ROOM - 1 - elapsed) * SECOND)

    @given(st.lists(st.integers(1 - LIMIT, LIMIT - 1), max_size=20))
    def test_c01_plain_arrays_are_exact(self, values):
        """C01: int64 to double and back."""
        points = np.array(values, dtype=np.int64)
        decoded, reached = Plain().decode_array(Plain().encode_array(points))
        assert decoded.tolist() == values
        assert decoded.dtype == np.int64
        assert reached is None

    @pytest.mark.parametrize("codec", [HIGH, LOW, Plain(), Plain(fraction=True)])
    def test_empty_columns_are_fine(self, codec):
        """C39: an empty season has columns like any other."""
        none = np.empty(0, dtype=np.int64)
        scores = codec.encode_array(none, none)
        assert scores.size == 0
        assert scores.dtype == np.float64
        assert codec.decode_array(scores)[0].size == 0

    def test_each_player_needs_a_time(self):
        """One time is not spread over all players, as numpy would."""
        with pytest.raises(ValueError, match="2 points, but 1 times"):
            HIGH.encode_array(np.array([1, 2]), np.array([EPOCH]))

    def test_one_wrong_row_is_found_among_many_and_shown(self):
        scores = np.arange(1000, dtype=np.float64)
        scores[777] = 12.5
        with pytest.raises(InputError, match=r"12\.5"):
            HIGH.decode_array(scores)
        points = np.ones(1000, dtype=np.int64)
        points[3] = 536_870_912
        with pytest.raises(InputError, match="536,870,912"):
            HIGH.encode_array(points, np.full(1000, EPOCH))


@given(st.data(), st.sampled_from([HIGH, LOW, MILLISECONDS]))
def test_the_order_of_scores_is_more_points_first_then_earlier_first(data, codec):
    """High boards are read from the highest score, low ones from the lowest: earlier is nearer the top on both."""
    elapsed = st.integers(0, 5_000_000).map(lambda at: codec.epoch + at)
    first, second = (data.draw(st.tuples(st.integers(0, 3), elapsed)) for _ in range(2))

    def wanted(row):
        return (-row[0] if codec.descending else row[0], codec.floor(row[1]))

    def found(row):
        return -codec.encode(*row) if codec.descending else codec.encode(*row)

    assert (wanted(first) < wanted(second)) == (found(first) < found(second))
    assert (wanted(first) == wanted(second)) == (found(first) == found(second))


class TestSeasons:
    """C02: whether a whole season fits is decided when its bounds are known, before a score is written."""

    @pytest.mark.parametrize("order", ["high", "low"])
    def test_c02_two_hundred_days_in_seconds_are_refused_with_the_arithmetic(self, order):
        """C02: 2^24 seconds are 194.18 days; 200 days would run over into the points."""
        with pytest.raises(ConfigError) as caught:
            codec_for(board(order=order), bounds(timedelta(days=200)))
        said = str(caught.value)
        assert "goals" in said
        assert "s2026" in said
        assert "17,280,000 seconds" in said
        assert "16,777,216" in said
        assert 'unit = "minute"' in said

    def test_c02_the_longest_season_in_seconds_is_two_to_the_24(self):
        """C02: to the second."""
        fits = timedelta(seconds=ROOM)
        codec = codec_for(board(), bounds(fits))
        last = to_microseconds(START + fits) - 1
        assert codec.decode(codec.encode(1, last)) == (1, codec.floor(last))
        with pytest.raises(ConfigError, match="16,777,217 seconds"):
            codec_for(board(), bounds(fits + timedelta(microseconds=1)))

    @pytest.mark.parametrize("unit", ["minute", "hour", "day"])
    def test_a_leap_year_fits_in_minutes_and_coarser(self, unit):
        codec = codec_for(board(ties={"unit": unit}), bounds(timedelta(days=366)))
        assert isinstance(codec, Packed)
        assert (codec.epoch, codec.multiplier, codec.descending) == (EPOCH, ROOM, True)

    def test_the_hint_names_a_unit_that_does_fit(self):
        """Whatever it says is tried."""
        for days in (1, 7, 31, 200, 366, 20_000):
            length = bounds(timedelta(days=days))
            with pytest.raises(ConfigError) as caught:
                codec_for(board(ties={"unit": "millisecond", "multiplier": 50_000}), length)
            unit = caught.value.hint.split('unit = "')[1].split('"')[0]
            codec_for(board(ties={"unit": unit, "multiplier": 50_000}), length)

    def test_where_no_unit_fits_the_hint_does_not_pretend(self):
        with pytest.raises(ConfigError, match="multiplier larger") as caught:
            codec_for(board(ties={"unit": "day", "multiplier": 300}), bounds(timedelta(days=366)))
        assert "unit =" not in caught.value.hint

    @pytest.mark.parametrize("ties", ["shared", "member"])
    def test_boards_without_a_time_take_any_season(self, ties):
        assert codec_for(board(ties=ties), bounds(timedelta(days=4000))) == Plain()

    def test_the_multiplier_that_people_have_already_is_readable(self):
        """points * 10^13 and milliseconds: 900 points at most, and exact."""
        codec = codec_for(board(ties={"unit": "millisecond", "multiplier": 10**13}), bounds(timedelta(days=366)))
        assert codec.maximum == 899
        assert codec.decode(899 * 10**13 + (10**13 - 1 - 5_000)) == (899, EPOCH + 5_000_000)


@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_are_exact_for_every_instant(instant):
    """No float on the way: a double cannot hold the microseconds of the year 9999."""
    assert from_microseconds(to_microseconds(instant)) == instant


def test_ties_default_to_seconds_below_two_to_the_24():
    assert (Ties().unit, Ties().multiplier) == ("second", ROOM)
    assert codec_for(Board(name="a", calendar=Calendar(every="day")), bounds(timedelta(days=1))) == HIGH
