"""Names that become Redis keys, paths and partition values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.errors import ConfigError
from leaderboard.names import RESERVED, check_name, in_one_line


@pytest.mark.parametrize("name", ["a", "goals", "s2026", "s2026q4", "s20261204", "eu-west_1", "a" * 63])
def test_a_plain_name_is_returned_as_it_is(name):
    assert check_name(name, "board") == name


@pytest.mark.parametrize(
    "name",
    [
        *("a/b", "a b", "s=1", "ü", "..", ".", "", "epoch", "a%2Fb", "A", "1", "2026", "-a", "_a"),
        *("a\n", "a\0", "a{b}", "a:b", "__HIVE_DEFAULT_PARTITION__", "a" * 64),
    ],
)
def test_c30_a_name_that_a_path_or_key_would_have_to_escape_is_refused_and_shown(name):
    """C30: nothing is slugged or percent-encoded, because nothing that would need it is let in."""
    with pytest.raises(ConfigError) as caught:
        check_name(name, "season")
    assert repr(name) in str(caught.value)
    assert "season" in str(caught.value)


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_c30_words_that_readers_take_for_a_date_or_number_are_refused(name):
    """C30: a partition value `epoch` becomes 1970-01-01 in DuckDB, `nan` a float in pandas."""
    with pytest.raises(ConfigError, match=name):
        check_name(name, "board")


@given(st.text(max_size=70))
def test_c30_whatever_is_let_in_is_one_harmless_path_element(text):
    """C30: no text passes that holds anything but lower-case ASCII letters, digits, _ and -."""
    try:
        check_name(text, "board")
    except ConfigError:
        return
    assert text.isascii()
    assert text[0].isalpha()
    assert text == text.lower()
    assert not set(text) - set("abcdefghijklmnopqrstuvwxyz0123456789_-")


@given(st.binary(max_size=20))
def test_any_member_is_shown_in_one_line(member):
    """Whatever bytes a member has, an error that names it stays one line, and text stays as it is."""
    shown = in_one_line(member)
    assert shown.isprintable()
    if member.isascii() and member.decode().isprintable():
        assert shown == member.decode()
    assert in_one_line(b"a\r\n\x00\xff") == r"a\r\n\x00\xff"
