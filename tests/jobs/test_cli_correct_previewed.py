"""finale rewards correct issues what its preview showed, and tells what the table's budget says of it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.commands import correcting
from tests.jobs.test_cli_correct import CORRECT, TABLE, closed, net, of_archive, paid
from tests.support.cli import World, differing, finale

__all__ = ["closed"]

BANNED = TABLE.replace(
    "version = 1", 'version = 1\nexclude = [{ sql = "select player_id from game.bans", reason = "banned" }]'
)


@pytest.fixture
def banned(closed: World) -> Any:
    """A table that leaves out whom the game has banned, of whom there is one."""
    closed.sql("create schema game")
    closed.sql("create table game.bans as select 'a' as player_id")
    (closed.folder / "fixed.toml").write_text(BANNED)
    yield closed
    closed.sql("drop schema game cascade")


def test_i5_nothing_is_issued_that_the_preview_did_not_show(banned: World) -> None:
    """I5: somebody is banned while the question waits, so the facts say more than was seen: nothing is sealed."""
    command = (*CORRECT, "--table", str(banned.folder / "fixed.toml"))
    before = banned.picture()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correcting, "confirm", lambda *_: banned.sql("insert into game.bans values ('c')"))
        said = ("is not what was previewed", "7 rows for 3 players", "look at the preview again")
        finale(*command).refused(23, *said)
    assert [name for name in differing(before, banned.picture()) if "lease" not in name] == []
    finale(*command).ok()
    assert net(banned) == of_archive(banned) == paid("bdef")


def test_a_correction_tells_what_its_table_may_cost(closed: World) -> None:
    """Everything granted and corrected, with it, is held against the budget of the table; whoever issues it decides."""
    dear = TABLE.replace("gems = 100", "gems = 300").replace("version = 1", "version = 1\nbudget = { gems = 1000 }")
    (closed.folder / "dear.toml").write_text(dear)
    command = (*CORRECT, "--table", str(closed.folder / "dear.toml"))
    told = finale(*command, "--preview", "--json").ok().json
    assert told["over_budget"] == [{"item": "gems", "cost": 1130, "budget": 1000}]
    shown = finale(*command, "--preview").ok()
    assert "passes the budget of the reward table: gems: 1,130, the budget has 1,000" in shown.err
    (closed.folder / "dear.toml").write_text(dear.replace("gems = 1000", "gems = 1130"))
    assert finale(*command, "--preview", "--json").ok().json["over_budget"] == []
