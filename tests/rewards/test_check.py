"""What finale rewards check finds, against every place looked at one by one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.check import check, places_of
from rewards.rule import LIMIT
from tests.rewards.brute import Brute, make_table, rule, standings
from tests.rewards.test_compute import percentiles, spans

places = st.one_of(
    spans.map(lambda text: {"rank": text}),
    percentiles.map(lambda text: {"percentile": text}),
    st.just({"all": True}),
)


@given(st.lists(places, min_size=1, max_size=4), st.integers(0, 30))
def test_findings_are_those_of_looking_at_every_place(conditions: list[dict[str, object]], players: int) -> None:
    """Nobody reached, places without a rule above others with one: exactly the findings, on a board without ties."""
    table = make_table(*[rule(f"rule {at}", None, each) for at, each in enumerate(conditions)])
    rows = standings(list(range(players, 0, -1)))
    brute = Brute(rows, table)
    first = [next((each.name for each in table.rule if brute.takes(each, row, None)), None) for row in rows]
    found = check(table, players)
    nobody = {each.name for each in table.rule if not any(brute.takes(each, row, None) for row in rows)}
    assert {one.rules[0] for one in found if one.kind == "pays nobody"} == nobody
    hidden = {each.name for each in table.rule} - set(first) - nobody
    assert {one.rules[0] for one in found if one.kind == "unreachable"} == (hidden if players else set())
    paid = [at for at, name in enumerate(first) if name]
    gaps = sum(1 for before, after in pairwise([-1, *paid]) if after - before > 1)
    assert sum(1 for one in found if one.kind == "gap") == gaps


def test_overlaps_name_the_places_and_both_rules() -> None:
    """Rules that share places are told with who gets them; with match = "all" sharing is what is meant."""
    rules = (rule("a", "1-10"), rule("b", "8-20"), rule("c", "9-12"))
    found = check(make_table(*rules))
    assert [(one.kind, one.rules) for one in found] == [("overlap", ("a", "b")), ("unreachable", ("c",))]
    assert "places 8 to 10" in found[0].what and "comes first" in found[0].what
    assert check(make_table(*rules, match="all")) == []


@pytest.mark.parametrize("match", ["first", "all"])
def test_a_board_of_nobody_tells_every_rule(match: str) -> None:
    """Among no players no rule pays anybody, and each is named."""
    table = make_table(rule("a", "1-10"), rule("b", None, {"percentile": "1"}), rule("c"), match=match)
    assert [(one.kind, one.rules) for one in check(table, 0)] == [("pays nobody", (name,)) for name in "abc"]


def test_without_a_number_of_players_only_what_always_holds_is_told() -> None:
    """A percentile pays somebody on a board that is large enough; a rule behind an open one never does."""
    assert check(make_table(rule("a", None, {"percentile": "0.29"}), rule("rest"))) == []
    (one,) = check(make_table(rule("a", "5-"), rule("b", "9-12"), rule("c", "1-4")))
    assert (one.kind, one.rules) == ("unreachable", ("b",))
    assert places_of(make_table(rule("a", "5-")).rule[0], LIMIT) == (5, LIMIT)


def test_conditions_on_players_neither_hide_nor_fill() -> None:
    """Who kept the top 100 may be nobody: the rule after it is reached, and the places are a gap."""
    kept = rule("kept", None, {"rank": "1-100", "previous": "1-100"})
    found = check(make_table(kept, rule("top", "50-100"), rule("low", "101-200")), 500)
    assert [(one.kind, one.what) for one in found] == [("gap", "places 1 to 49 get nothing, though 'low' pays below")]


def test_a_rule_with_conditions_that_loses_its_places_is_told() -> None:
    """Behind a rule that takes them for sure it never counts there; with match = "all" it adds to it, as is meant."""
    kept = rule("kept", None, {"rank": "1-100", "previous": "1-50"})
    (one,) = check(make_table(rule("pct", "1"), kept, rule("rest")))
    assert (one.kind, one.what) == ("overlap", "place 1 of 'kept' goes to 'pct', which comes first")
    assert check(make_table(rule("pct", "1"), kept, rule("rest"), match="all")) == []
    (one,) = check(make_table(rule("top", "2-10")))
    assert one.what == "place 1 gets nothing, though 'top' pays below"


def test_a_budget_that_cannot_be_kept_is_told() -> None:
    """Ten gems for each of 300 players are more than 2,999."""
    (one,) = check(make_table(rule("all", gems=10), budget={"gems": 2_999}), 300)
    assert (one.kind, one.what) == ("over budget", "300 players cost 3,000 gems, the budget has 2,999")
