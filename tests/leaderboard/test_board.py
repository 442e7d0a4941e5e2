"""A board's definition: what is refused, what is fixed when a season opens, and that it survives JSON."""

import json
from datetime import timedelta

import pytest
from pydantic import ValidationError

from leaderboard.board import FIXED_AT_OPEN, Board

CALENDAR = {"every": "year"}


def board(**fields: object) -> Board:
    return Board.model_validate({"name": "goals", "calendar": CALENDAR, **fields})


FULL = {
    "source": "matches",
    "where": {"region": "eu", "ranked": True, "division": 1, "factor": 1.5},
    "key": "lb:{<board>}:<starts_at:%Y>",
    "current_key": "lb:<board>:current",
    "order": "low",
    "aggregate": "best",
    "ties": {"by": "first_to_reach", "unit": "minute", "multiplier": 2**20},
    "member": "binary",
    "calendar": {"every": "3 weeks", "anchor": "2026-06-04", "at": "18:00", "timezone": "Europe/Berlin"},
    "grace": "1h30m",
    "keep_live": "2w",
    "cleanup": "expire",
    "rewards": "rewards/goals.toml",
    "ahead": 4,
    "freeze": "rename",
}


class TestDefinition:
    @pytest.mark.parametrize("made", [board(), board(**FULL), board(ties="shared", points="fraction", ledger="none")])
    def test_it_survives_json_as_a_season_stores_it(self, made):
        assert Board.model_validate(json.loads(json.dumps(made.definition()))) == made

    def test_it_names_every_field_so_that_a_later_default_changes_nothing(self):
        assert set(board().definition()) == set(Board.model_fields)

    def test_the_source_is_the_boards_own_name_by_default(self):
        assert board().source == "goals"
        assert board(source="matches").source == "matches"

    @pytest.mark.parametrize("by", ["shared", "member", "first_to_reach"])
    def test_ties_may_be_one_word(self, by):
        assert board(ties=by) == board(ties={"by": by})
        assert board(ties=by).packed == (by == "first_to_reach")

    def test_order_high_is_read_from_the_top_score(self):
        assert board().descending
        assert not board(order="low").descending

    def test_filters_keep_the_type_of_each_value(self):
        """true is not 1, and 1 is not "1": a filter compares as it was written, also after JSON."""
        where = {"a": True, "b": 1, "c": "1", "d": 1.5, "e": "true", "f": 0}
        again = Board.model_validate(json.loads(json.dumps(board(where=where).definition())))
        assert [(value, type(value)) for value in again.where.values()] == [(v, type(v)) for v in where.values()]

    def test_it_cannot_be_changed_in_place(self):
        with pytest.raises(ValidationError, match="frozen"):
            board().name = "other"


class TestFixedAtOpen:
    def test_what_is_fixed_stays_and_the_rest_follows_the_configuration(self):
        """Codec, ties, aggregate, key: as opened. Grace, keep_live, cleanup, rewards, current_key: as configured."""
        opened, configured = board(), board(**FULL)
        assert all(getattr(opened, name) != getattr(configured, name) for name in FIXED_AT_OPEN if name in FULL)
        closing = configured.with_fixed_of(opened)
        for name in Board.model_fields:
            expected = opened if name in FIXED_AT_OPEN else configured
            assert getattr(closing, name) == getattr(expected, name), name

    def test_a_ledger_of_the_users_own_is_asked_as_configured(self):
        """Its SQL and place can be corrected; which kind of ledger counts is fixed."""
        wrong, right = board(ledger={"sql": "select 1"}), board(ledger={"sql": "select 2", "url_env": "GAME"})
        assert right.with_fixed_of(wrong).ledger == wrong.with_ledger_of(right).ledger == right.ledger
        for other in (board(), board(ledger="none")):
            assert right.with_fixed_of(other).ledger == other.with_ledger_of(right).ledger == other.ledger
            assert other.with_fixed_of(wrong).ledger == wrong.with_ledger_of(other).ledger == wrong.ledger

    def test_a_copy_leaves_both_as_they_were_and_is_a_whole_board(self):
        opened, configured = board(), board(**FULL)
        closing = configured.with_fixed_of(opened)
        assert (opened, configured) == (board(), board(**FULL))
        assert Board.model_validate(closing.definition()) == closing

    def test_every_choice_that_changes_a_score_a_key_or_who_counts_is_fixed(self):
        free = set(Board.model_fields) - set(FIXED_AT_OPEN)
        assert free == {
            "name",
            "calendar",
            "current_key",
            "grace",
            "keep_live",
            "cleanup",
            "rewards",
            "ahead",
            "reconcile",
            "deliver",
        }


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"ordre": "high"}, "ordre"),
            ({"calendar": {"every": "year", "zone": "UTC"}}, "zone"),
            ({"ties": {"by": "shared", "units": "minute"}}, "units"),
            ({"ties": "random"}, "first_to_reach"),
            ({"ties": {"unit": "week"}}, "millisecond"),
            ({"ties": {"multiplier": 1}}, "greater than or equal to 2"),
            ({"ties": {"multiplier": 2**53}}, "less than or equal"),
            ({"order": "up"}, "'high' or 'low'"),
            ({"aggregate": "avg"}, "'sum', 'best' or 'last'"),
            ({"name": "a/b"}, "'a/b' cannot name a board"),
            ({"name": "epoch"}, "'epoch' cannot name a board"),
            ({"source": "a b"}, "'a b' cannot name a source"),
            ({"key": "lb:<board>"}, "same key"),
            ({"key": "lb}:<season>"}, "same cluster slot"),
            ({"current_key": "x:<season>"}, "one fixed name"),
            ({"grace": "soon"}, "'soon' is no duration"),
            ({"grace": 15}, "15 has no unit"),
            ({"keep_live": 0.5}, "0.5 has no unit"),
            ({"keep_live": True}, "no unit"),
            ({"keep_live": "999999999d"}, "0s to 36525d"),
            ({"grace": timedelta(-1)}, "0s to 36525d"),
            ({"where": {"a": float("nan")}}, "finite"),
            ({"where": {"a": [1]}}, "where"),
            ({"points": "fraction"}, "no room for a time"),
            ({"points": "fraction", "ties": "shared"}, "whole points"),
            ({"ahead": -1}, "greater than or equal"),
            ({"key": "lb", "freeze": "rename"}, 'ledger = "none"'),
            ({"key": "lb", "freeze": "rename", "ledger": "none", "grace": "15m"}, "grace must be 0s"),
            ({"freeze": "stop"}, "watch. or .rename"),
        ],
    )
    def test_a_board_that_cannot_be_is_refused_with_the_reason(self, fields, reason):
        with pytest.raises(ValidationError, match=reason):
            board(**fields)

    def test_a_board_needs_a_calendar(self):
        with pytest.raises(ValidationError, match="calendar"):
            Board.model_validate({"name": "goals"})


class TestFreezeByRenaming:
    def test_one_key_for_all_seasons_has_no_grace_unless_something_else_is_said(self):
        """The next season is played under the key from its first second, so there is nothing to wait for."""
        ever = board(key="lb", freeze="rename", ledger="none")
        assert (ever.shares_key, ever.grace) == (True, timedelta(0))
        assert board(freeze="rename").grace == board().grace == timedelta(minutes=15)

    def test_boards_stored_before_there_was_the_choice_are_watched(self):
        stored = board().definition()
        del stored["freeze"]
        assert Board.model_validate(stored) == board()
