"""Replies decoded as columns are what hiredis makes of the same bytes, or are left to it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.archive import boards
from tests.archive.boards import ODD_MEMBERS, scores
from tests.archive.replies import Row, by_columns, by_hiredis, content, damaged, rendered

PROTOCOLS = pytest.mark.parametrize("protocol", [2, 3])
#: C04: the same double as servers of all versions have written it
TEXTS = [
    b"0", b"-0", b"1", b"-7.5", b"10000000000000000", b"1e+17", b"1.2345678901234568e+17", b"3.2999999999999998",
    b"3.3", b"4.9406564584124654e-324", b"5e-324", b"1.7976931348623157e+308", b"9007199254740992", b"inf", b"-inf",
    b"2.2250738585072011e-308", b"123456789012345678", b"0.1", b"1e-7",
]  # fmt: skip  # a row a line
EVEN = [b"\r\n$1", b"*2\r\n", b"abcd", b"\n\n\n\n", b"1\r\n$", b"$4\r\n"]


def shortest(score: float) -> bytes:
    """Return the text of a score as new servers write it."""
    return b"%d" % score if score == score // 1 and abs(score) < 2**53 else repr(score).encode()


def longest(score: float) -> bytes:
    """Return the text of a score as old servers write it."""
    return b"%.17g" % score


@PROTOCOLS
@settings(max_examples=300, deadline=None)
@given(
    board=st.lists(st.tuples(boards.members, scores), min_size=1, max_size=40),
    text=st.sampled_from([shortest, longest]),
    rest=st.sampled_from([b"", b"*2\r\n$1\r\n", b"\n\r\n\n"]),
)
def test_c04_c07_columns_are_what_hiredis_reads(protocol, board, text, rest):
    """C04, C07: any members and scores; the columns are taken where no member has a line feed, and never wrongly."""
    rows = [(member, text(score)) for member, score in board]
    reply = rendered(rows, protocol)
    found, expected = by_columns(reply + rest, len(rows)), by_hiredis(reply + rest)
    assert expected is not None
    if not any(b"\n" in member for member, _ in rows):
        assert found is not None
    if found is not None:
        assert content(found[0]) == content(expected[0])
        assert found[1] == expected[1] == len(reply)


@PROTOCOLS
@pytest.mark.parametrize("text", TEXTS)
def test_c04_every_text_of_a_score_is_its_double(protocol, text):
    """C04: bit for bit the double that Python reads, signs of zero, subnormals and infinities too."""
    rows = [(b"a", text), (b"b", text)]
    page, _ = by_columns(rendered(rows, protocol), 2)
    assert page.scores.tobytes() == np.array([float(text)] * 2).tobytes()
    assert content(page) == content(by_hiredis(rendered(rows, protocol))[0])


@PROTOCOLS
@pytest.mark.parametrize("seed", range(4))
def test_adversarial_replies_are_never_decoded_wrongly(protocol, seed):
    """8,000 damaged replies, of members that look like protocol: what the columns take, hiredis reads likewise."""
    chance = random.Random(f"{protocol} {seed}")
    words = [*ODD_MEMBERS, b"$1\r\nx", b"*2\r\n$1", b",1", b"1", b"$", b"$1", b"5\r", b"\n", b"p" * 12, b"x" * 120]
    taken = 0
    for _ in range(1_000):
        of = chance.choice([(words, TEXTS), (EVEN, [b"1", b"7", b"0"])])  # rows of any widths, or all of one
        rows: list[Row] = [(chance.choice(of[0]), chance.choice(of[1])) for _ in range(chance.randint(1, 6))]
        reply = rendered(rows, protocol)
        bad = damaged(reply, chance)
        for data in (bad, bad + reply):
            for count in {len(rows), max(len(rows) - 1, 1)}:
                found = by_columns(data, count)
                if found is None:
                    continue
                expected = by_hiredis(data)
                assert expected is not None, data
                assert content(found[0]) == content(expected[0]), data
                assert found[1] == expected[1], data
                taken += 1
    assert taken  # some damage leaves another good reply, or the test would say nothing


@pytest.mark.parametrize(
    ("reply", "rows"),
    [
        (b"*2\r\n$01\r\na\r\n$1\r\n1\r\n", 1),
        (b"*2\r\n$-1\r\na\r\n$1\r\n1\r\n", 1),
        (b"*2\r\n$+1\r\na\r\n$1\r\n1\r\n", 1),
        (b"*2\r\n$2\r\na\r\n$1\r\n1\r\n", 1),
        (b"*2\r\n$0\r\na\r\n$1\r\n1\r\n", 1),
        (b"*2\r\n$1\r\na\r\n$2\r\n1\r\n", 1),
        (b"*2\r\n$1\r\na\r\n:1\r\n1\r\n", 1),
        (b"*02\r\n$1\r\na\r\n$1\r\n1\r\n", 1),
        (b"*4\r\n$1\r\na\r\n$1\r\n1\r\n", 1),
        (b"~2\r\n$1\r\na\r\n$1\r\n1\r\n", 1),
        (b"*2\n$1\r\na\r\n$1\r\n1\r\n", 1),
        (b"*2\r\n$1\r\na\n$1\r\n1\r\n", 1),
        (b"*1\r\n*3\r\n$1\r\na\r\n,1\r\n", 1),
        (b"*1\r\n~2\r\n$1\r\na\r\n,1\r\n", 1),
        (b"*1\r\n*2\r\n$1\r\na\r\n:1\r\n", 1),
        (b"*1\r\n*2\r\n$1\r\na\r\n,\r\n", 1),
        (b"*1\r\n*2\r\n$2\r\na\r\n,1\r\n", 1),
        (b"*1\r\n*2\r\n=1\r\na\r\n,1\r\n", 1),
        (b"*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\n\r\n,1\r\n", 2),
        (b"\n\n\n\n\n", 1),
    ],
)  # fmt: skip  # a row a line
def test_what_is_no_page_is_left_to_the_general_parser(reply, rows):
    """Lengths that lie or are written oddly, other types, other counts, half line ends: none is taken."""
    assert by_columns(reply, rows) is None


@PROTOCOLS
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nan",
        b"-nan",
        b"infinity",
        b"INF",
        b"+inf",
        b"1e400",
        b"1e-400",
        b"0.0",
        b"0x10",
        b"1_0",
        b" 1",
        b"1 ",
        b"one",
        b"1" * 400,
    ],
)
def test_scores_that_parsers_might_read_differently_are_left_to_the_general_one(protocol, text):
    """Only what every parser reads as the same double is taken."""
    assert by_columns(rendered([(b"a", b"1"), (b"b", text)], protocol), 2) is None


@PROTOCOLS
def test_lengths_of_every_number_of_digits(protocol):
    """Members of 0 to 99,999 bytes in one page; longer ones among shorter are left to the general parser."""
    rows = [(b"x" * length, b"1") for length in (0, 1, 9, 10, 11, 99, 100, 999, 1_000, 9_999, 10_000, 65_536, 99_999)]
    page, _ = by_columns(rendered(rows, protocol), len(rows))
    assert page.members.to_pylist() == [member for member, _ in rows]
    assert by_columns(rendered([*rows, (b"x" * 100_000, b"1")], protocol), len(rows) + 1) is None


@pytest.mark.parametrize("members", [[b"a"], [b"a", b"b"], [b"a", b"bb"]])
def test_a_page_keeps_nothing_of_the_buffer(members):
    """The buffer of the reply may be used again: the page has its own memory, in whichever way it was decoded."""
    data = bytearray(rendered([(member, b"1") for member in members], 2))
    page, _ = by_columns(data, len(members))
    data[:] = b"\0" * len(data)
    assert content(page) == (members, np.array([1.0] * len(members)).tobytes())


@PROTOCOLS
def test_rows_of_one_width_are_taken_whatever_their_bytes(protocol):
    """Where all rows have the same widths even line breaks in members are no hindrance; one wider row is seen."""
    rows = [(member, b"12.5") for member in (b"\r\n\r\n", b"$1\r\n", b"abcd", b"\n,1\r")]
    reply = rendered(rows, protocol)
    assert content(by_columns(reply, 4)[0]) == content(by_hiredis(reply)[0])
    wider = rendered([*rows, (b"abcde", b"1.5"), (b"abc", b"1.25")], protocol)  # the same bytes in all
    assert by_columns(wider, 6) is None
