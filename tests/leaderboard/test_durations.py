"""Durations as a person writes them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("15m", timedelta(minutes=15)),
        ("7d", timedelta(days=7)),
        ("1h30m", timedelta(minutes=90)),
        (" 2w ", timedelta(days=14)),
        ("90s", timedelta(seconds=90)),
        ("2ms", timedelta(milliseconds=2)),
        ("1m1s500ms", timedelta(seconds=61, milliseconds=500)),
        ("0", timedelta(0)),
        ("0s", timedelta(0)),
        ("1w1d1h1m1s", timedelta(days=8, hours=1, minutes=1, seconds=1)),
    ],
)
def test_what_is_written_is_understood(text, length):
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    "text", ["", "m", "15", "-1m", "1.5h", "15 m", "30m1h", "5ms1s", "1M", "15min", "٣d", "P1D", "1h1h", "9" * 30 + "w"]
)
def test_anything_else_is_refused_and_shown(text):
    with pytest.raises(ValueError, match=r"duration|longer") as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


@given(st.integers(0, 10**12).map(lambda count: timedelta(milliseconds=count)))
def test_what_is_written_out_is_read_back(length):
    assert parse_duration(format_duration(length)) == length
