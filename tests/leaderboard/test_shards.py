"""Which shard has whom, and what a board over several sorted sets may be."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from leaderboard.board import Board
from leaderboard.codec import codec_for
from leaderboard.season import Bounds
from leaderboard.shards import MOST

BOUNDS = Bounds(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC), "s2026")


def board(**fields: object) -> Board:
    return Board.model_validate({"name": "goals", "calendar": {"every": "year"}, **fields})


def by_score(*cuts: float, **fields: object) -> Board:
    return board(shards={"by": "score", "cuts": cuts}, **fields)


class TestLayout:
    def test_a_band_holds_its_lower_cut_and_ends_before_the_next(self):
        layout = by_score(1000, 5000, ties="shared").layout
        points = [-(2.0**52), 999, 1000, 1001, 4999, 5000, 2.0**52]
        assert [layout.shard(b"p", float(one)) for one in points] == [0, 0, 1, 1, 1, 2, 2]
        assert [layout.band(shard) for shard in range(3)] == [(-inf, 1000), (1000, 5000), (5000, inf)]

    @pytest.mark.parametrize("order", ["high", "low"])
    @given(points=st.integers(0, 2**29 - 1), cut=st.integers(1, 2**29 - 1), second=st.integers(0, 181 * 86_400 - 1))
    def test_a_packed_score_is_in_the_band_of_its_points(self, order, points, cut, second):
        """Whatever the time beside them, also at the first and last second of a season, and up to 2^53."""
        made = by_score(cut, order=order, ties={"unit": "second"})
        codec = codec_for(made, BOUNDS)
        score = codec.encode(points, codec.epoch + second * 1_000_000)
        assert made.layout.shard(b"p", score) == (points >= cut)

    def test_zero_and_its_negative_are_in_one_band(self):
        """C75: 0 is a score, and Redis turns -0 and 0 into each other."""
        layout = by_score(0, ties="shared").layout
        assert layout.shard(b"p", 0.0) == layout.shard(b"p", -0.0) == 1

    def test_fractions_are_cut_exactly(self):
        layout = by_score(0.1, 0.5, ties="shared", points="fraction", ledger="none").layout
        before = float(np.nextafter(0.1, 0))
        assert [layout.shard(b"p", score) for score in (-inf, before, 0.1, 0.5, inf)] == [0, 0, 1, 2, 2]

    def test_a_players_shard_is_the_crc_of_the_members_bytes(self):
        """As documented: CRC-32 of IEEE 802.3, whose check value is that of the digits 1 to 9."""
        layout = board(shards={"by": "player", "count": 250}).layout
        assert layout.shard(b"123456789", 5.0) == 0xCBF43926 % 250
        assert layout.shard("Zoë".encode(), -5.0) == layout.of_player("Zoë".encode())
        assert layout.band(7) == (-inf, inf)

    def test_a_players_shard_is_the_same_in_every_process(self):
        """Python's own hash differs from process to process."""
        code = (
            "from leaderboard.shards import Layout;"
            "print([Layout(8, (), True).of_player(b'p%d' % n) for n in range(50)])"
        )
        runs = {
            subprocess.check_output([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}) for seed in ("1", "2")
        }
        expected = [board(shards={"by": "player", "count": 8}).layout.of_player(b"p%d" % n) for n in range(50)]
        assert [json.loads(run) for run in runs] == [expected]

    @given(st.lists(st.tuples(st.binary(), st.floats(allow_nan=False)), max_size=30), st.booleans())
    def test_many_at_once_are_where_each_is(self, rows, cut):
        made = by_score(-3, 0, 7, ties="shared") if cut else board(shards={"by": "player", "count": 5})
        members, scores = [member for member, _ in rows], np.array([score for _, score in rows], np.float64)
        expected = [made.layout.shard(*row) for row in rows]
        assert made.layout.shards(members, scores).tolist() == expected
        if not cut:
            lengths = np.array([len(member) for member in members], np.uint32)
            assert made.layout.of_players(lengths, memoryview(b"".join(members))).tolist() == expected

    def test_players_are_spread_evenly(self):
        layout = board(shards={"by": "player", "count": 8}).layout
        counts = np.bincount([layout.of_player(b"player_%09d" % number) for number in range(8_000)])
        assert counts.min() > 900
        assert counts.max() < 1_100

    def test_bands_are_read_from_the_first_position_on(self):
        assert by_score(1, 2).layout.in_order() == (2, 1, 0)
        assert by_score(1, 2, order="low").layout.in_order() == (0, 1, 2)
        assert board(shards={"by": "player", "count": 3}).layout.in_order() == (0, 1, 2)

    def test_a_board_without_shards_is_one(self):
        layout = board().layout
        assert (layout.number, layout.shard(b"p", 5.0), layout.in_order()) == (1, 0, (0,))


class TestDefinition:
    def test_no_shards_is_the_default_and_may_be_said(self):
        assert board(shards="none") == board()
        assert board().shards.number == 1

    @pytest.mark.parametrize(
        "shards", [{"by": "score", "cuts": [1000, 5000]}, {"by": "player", "count": 8}, {"by": "score", "cuts": [1]}]
    )
    def test_it_survives_json_as_a_season_stores_it(self, shards):
        made = board(shards=shards)
        assert Board.model_validate(json.loads(json.dumps(made.definition()))) == made

    def test_boards_stored_before_there_was_the_choice_have_none(self):
        stored = board().definition()
        del stored["shards"]
        assert Board.model_validate(stored) == board()

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"shards": "score"}, "have cuts"),
            ({"shards": {"by": "score", "cuts": []}}, "have cuts"),
            ({"shards": {"by": "player"}}, "have a count"),
            ({"shards": {"by": "player", "count": 8, "cuts": [1]}}, "have cuts"),
            ({"shards": {"by": "player", "count": 1}}, "greater than or equal to 2"),
            ({"shards": {"by": "player", "count": MOST + 1}}, "less than or equal"),
            ({"shards": {"by": "score", "cuts": [5, 1]}}, "5 stands before 1"),
            ({"shards": {"by": "score", "cuts": [5, 5]}}, "ascending order, each once"),
            ({"shards": {"by": "score", "cuts": [True, 5]}}, "True is no number"),
            ({"shards": {"by": "score", "cuts": ["5"]}}, "valid integer"),
            ({"shards": {"by": "score", "cuts": [1.5]}}, "1.5 is not a whole number"),
            ({"shards": {"by": "score", "cuts": [float("nan")]}}, "finite number"),
            ({"shards": {"by": "score", "cuts": [0]}}, "band would always be empty"),
            ({"shards": {"by": "score", "cuts": [2**29]}}, "536,870,912 is outside .* below 2\\^53 / 16,777,216"),
            ({"ties": "shared", "shards": {"by": "score", "cuts": [2**53]}}, "past 2\\^53"),
            ({"shards": {"by": "score", "cuts": [1], "number": 2}}, "number"),
            ({"shards": "hash"}, "'none', 'score' or 'player'"),
            ({"key": "lb:<season>:<shard>"}, "the board has no shards"),
        ],
    )
    def test_shards_that_cannot_be_are_refused_with_the_reason(self, fields, reason):
        with pytest.raises(ValidationError, match=reason):
            board(**fields)
