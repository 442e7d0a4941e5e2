"""A step that fails by an error that is no FinaleError: counted, in the journal, and tried again after a pause."""

from __future__ import annotations

from errno import ENOSPC
from typing import Any

import pytest

from jobs.steps import seal
from tests.support import watching
from tests.support.cli import World, finale


@pytest.fixture
def ended(world: World) -> World:
    """A season that has ended an hour ago and is due."""
    return watching.ended_season(world)


def test_an_error_that_nobody_foresaw_is_a_failed_attempt_too(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """C57: it is counted, told without its words, which may hold a secret, and tried again after a pause or a retry."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("postgresql://ana:secret@db")

    with monkeypatch.context() as patch:
        patch.setattr(seal, "_read_back", broken)
        answer = finale("tick", "--json")
        assert answer.code == 1 and "should not have happened: ZeroDivisionError in test_step_fails.py" in answer.err
        ((attempts, error, waits),) = ended.sql(
            "select attempts, last_error, retry_at > clock_timestamp() - interval '1m' from finale.season"
        )
        assert (attempts, waits) == (1, True) and "ZeroDivisionError" in error
        event, _, detail = ended.journal("cup", "one")[-1]
        assert event == "failed" and "finale close cup one" in str(detail["hint"])
        ended.sql("update finale.season set retry_at = clock_timestamp() + interval '5m'")
        assert finale("tick", "--json").ok().json == []
        assert finale("close", "cup", "one").code == 1
        assert "secret" not in str(ended.journal("cup", "one")) + answer.out + answer.err + error
    assert finale("season", "retry", "cup", "one", "--as", "ana", "--json").ok().json["attempts"] == 2
    assert finale("tick", "--json").ok().json[-1]["steps"][0] == "seal"


@pytest.mark.parametrize(
    ("error", "code", "attempts"), [(OSError(ENOSPC, "No space left on device"), 11, 1), (BrokenPipeError(), 141, 0)]
)
def test_a_full_disk_is_a_failed_attempt_and_a_reader_that_went_away_is_none(
    ended: World, monkeypatch: pytest.MonkeyPatch, error: OSError, code: int, attempts: int
) -> None:
    """Both end with their own exit code; what nobody watches any more is not the step's failure."""

    def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr(seal, "_read_back", broken)
    assert finale("close", "cup", "one").code == code
    assert ended.sql("select attempts from finale.season") == [(attempts,)]
