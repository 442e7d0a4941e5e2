"""Numbers with their nouns, and lists that are cut."""

from __future__ import annotations

from leaderboard.wording import counted, listed


def test_a_list_that_is_cut_says_how_many_more() -> None:
    """Nothing is left out silently, also where only the first of many are known."""
    assert listed(["a", "b"], 5) == "a, b"
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert listed([1, 2], 5, 1_500, between="; ") == "1; 2 and 1,498 more"
    assert listed([], 5) == ""


def test_one_is_no_plural() -> None:
    """1 fault, 2,000 faults."""
    assert (counted(1, "fault"), counted(2_000, "fault")) == ("1 fault", "2,000 faults")
