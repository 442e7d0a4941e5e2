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
