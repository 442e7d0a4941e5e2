"""When a server has lost what the ledger recorded."""

from __future__ import annotations

import pytest

from leaderboard.marks import Mark, has_lost


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
    ],
)
def test_c19_lost_writes_are_told_by_number_and_token(server: Mark, recorded: Mark, lost: bool) -> None:
    """C19: lower, or as high with another token."""
    assert has_lost(server, recorded) is lost
