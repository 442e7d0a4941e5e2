"""I10: the reader written from the document alone, over seasons of every kind of board, several parts each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archive.store import FolderStore
from leaderboard.codec import codec_for
from tests.archive.sealed import board, bounds, draft, packed_draft, standings
from tests.archive.stranger import check

MEMBERS = [b"p10", b"p9", b"P1", "Zoë".encode(), b"ann", b"anna", b"", "\U0001f3c6".encode(), b"zed"]
BOARDS: dict[str, dict[str, Any]] = {
    "packed, high": {},
    "packed, low, to the minute": {"order": "low", "ties": {"by": "first_to_reach", "unit": "minute"}},
    "packed by another multiplier": {"ties": {"by": "first_to_reach", "unit": "hour", "multiplier": 10**6}},
    "shared, high": {"ties": "shared"},
    "shared, low": {"ties": "shared", "order": "low"},
    "by member": {"ties": "member"},
    "fractions": {"ties": "shared", "points": "fraction", "ledger": "none"},
    "bytes": {"ties": "member", "member": "binary", "ledger": "none", "order": "low"},
}


@pytest.mark.parametrize("name", BOARDS)
def test_every_kind_of_board(tmp_path: Path, name: str) -> None:
    """Order, ties, ranks and scores of each codec, many ties among them, rows cut into parts of two."""
    of, when = board(**BOARDS[name]), bounds()
    members = [*MEMBERS, b"\xff\x00"] if of.member == "binary" else MEMBERS
    start = int(when.starts_at.timestamp()) * 10**6
    codec = codec_for(of, when)
    step = 0.25 if of.points == "fraction" else 1
    scores = [codec.encode(at // 3 * step, start + at // 2 * 3_700 * 10**6) for at in range(len(members))]
    draft(of, when, standings(of, when, members, scores), part_rows=2).publish(FolderStore(tmp_path))
    check(tmp_path, "daily", "s20261204")


def test_an_empty_season(tmp_path: Path) -> None:
    """C39: one part without rows."""
    packed_draft(rows=0).publish(FolderStore(tmp_path))
    check(tmp_path, "daily", "s20261204")
