"""What finale why says of each rule: by what the rule counts, ranks where the table shares ties."""

from __future__ import annotations

import numpy as np
import pytest

from rewards.explain import Outcome, outcomes
from rewards.ladder import Ladder
from rewards.ranges import resolve
from tests.rewards.brute import make_table, rule

#: 84 at rank 1, one a place down to 1,503, eleven at rank 1,504, one a place down to 1,600.
RANKS = [1] * 84 + list(range(85, 1_504)) + [1_504] * 11 + list(range(1_515, 1_601))
LADDER = Ladder(np.array([rank == at for at, rank in enumerate(RANKS, 1)]), None)


def told(condition: dict[str, object], position: int, **table: object) -> Outcome:
    """Return what becomes of the player at ``position`` by a table with this one rule."""
    made = make_table(rule("a", None, condition), **table)
    (one,) = outcomes(made, [resolve(made.rule[0], 0, LADDER, made, None)], position, (LADDER,))
    return one


@pytest.mark.parametrize("position", [1_504, 1_509, 1_514])
def test_distances_of_a_shared_tie_are_those_of_its_rank(position: int) -> None:
    """Whoever shares rank 1,504 is 1,503 places below rank 1, wherever in the tie they stand."""
    one = told({"rank": "1"}, position)
    assert (one.short, one.why) == (1_503, "1,503 places below its last rank, 1")
    one = told({"rank": "80-90"}, position)
    assert (one.short, one.why) == (1_414, "1,414 places below its last rank, 90")


def test_distances_of_other_rules_are_those_of_places() -> None:
    """By position each place counts, also where the table does not share ties."""
    assert told({"position": "1"}, 1_514).short == 1_513
    assert told({"rank": "1"}, 1_514, ties="position").why == "1,513 places below its last place, 1"


def test_a_percentile_counts_a_shared_tie_as_it_takes_it() -> None:
    """With ``in`` the first of a tie must reach the line, with ``out`` the last."""
    assert told({"percentile": "50"}, 1_514, at_line="in").why == "704 places below its line, place 800"
    assert told({"percentile": "50"}, 1_504, at_line="out").why == "714 places below its line, place 800"
    assert told({"percentile": "94.1"}, 1_514, at_line="in").taken
    assert told({"percentile": "94.1"}, 1_506, at_line="out").why == "9 places below its line, place 1,505"


def test_who_is_taken_by_a_shared_rank_is_told_the_rank() -> None:
    """Place 41 of a tie at rank 1 is no contradiction to a rule on rank 1."""
    assert told({"rank": "1"}, 41).why == "the player's rank is 1; it takes places 1 to 84"
    assert told({"rank": "85"}, 85).why == "the player's rank is 85; it takes place 85"
    assert told({"percentile": "1"}, 41, at_line="in").why == "place 41 is within its places 1 to 84"


def split(position: int, *rules: dict[str, object], match: str = "first", tied: str = "112455") -> list[Outcome]:
    """Return what becomes of a player by a table that splits; ``tied`` are the ranks, in order."""
    ladder = Ladder(np.array([int(rank) == at for at, rank in enumerate(tied, 1)]), None)
    made = make_table(*rules, ties="split", match=match)
    return outcomes(made, [resolve(one, 0, ladder, made, None) for one in made.rule], position, (ladder,))


def test_in_a_tie_that_is_split_each_rule_is_told_by_the_places_it_gives_to_the_pool() -> None:
    """Two at places 1 and 2: both rules pay both; who is alone is told as ever; nobody is told of a season before."""
    champion, second = rule("champion", None, {"rank": "1"}), rule("second", None, {"rank": "2-3"})
    for position in (1, 2):
        first, other = split(position, champion, second, tied="113455")
        assert (first.taken, first.why) == (True, "the tie's places 1 to 2 share what they are worth; it takes 1")
        assert (other.taken, other.why) == (True, "the tie's places 1 to 2 share what they are worth; it takes 2")
    first, other = split(3, champion, second, tied="113455")
    assert (first.taken, first.why) == (False, "2 places below its last place, 1")
    assert (other.taken, other.why) == (True, "place 3 is within its places 2 to 3")
    first, other = split(6, champion, second, tied="113455")
    assert (first.short, first.why) == (4, "the tie's places 5 to 6 begin 4 places below its last place, 1")


def test_of_a_split_tie_only_the_first_rule_on_a_place_counts() -> None:
    """With ``first`` a later rule has what is left of the tie's places, or nothing; with ``all`` its own."""
    rules = [rule("a", None, {"rank": "1-2"}), rule("b", None, {"rank": "1-3"}), rule("c", None, {"rank": "1"})]
    a, b, c = split(2, *rules, tied="111455")
    assert (a.taken, b.taken, c.taken) == (True, True, False)
    assert b.why.endswith("it takes 3") and c.why.endswith("only the first rule that does counts")
    assert all(one.taken for one in split(2, *rules, match="all", tied="111455"))
