"""When a server has lost what the ledger recorded."""

from __future__ import annotations

import pytest

from leaderboard.marks import Mark, has_lost, new_token


@pytest.mark.parametrize(
    ("server", "recorded", "lost"),
    [
        (Mark(), Mark(), False),
        (Mark(3, "a"), Mark(3, "a"), False),
        (Mark(3, "a"), Mark(3, ""), False),  # recorded before tokens were
        (Mark(4, "b"), Mark(3, "a"), False),  # written, not recorded: still pending
        (Mark(2, "b"), Mark(3, "a"), True),
        (Mark(), Mark(3, "a"), True),
        (Mark(3, "late"), Mark(3, "a"), True),  # lost, and a late write of a former holder in its place
        (Mark(6, new_token(7).hex()), Mark(5, new_token(8).hex()), True),  # and several of them
        (Mark(6, new_token(8).hex()), Mark(5, new_token(8).hex()), False),
        (Mark(6, new_token(300).hex()), Mark(5, new_token(8).hex()), False),
    ],
)
def test_c19_lost_writes_are_told_by_number_and_token(server: Mark, recorded: Mark, lost: bool) -> None:
    """C19: lower, as high with another token, or higher under a lower fence."""
    assert has_lost(server, recorded) is lost
