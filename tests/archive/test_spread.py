"""The digests of a sharded season's live keys are computed again from its rows, where rows tell which key had them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archive.digest import StandingDigest
from archive.seal import KeyFacts
from archive.store import Store, open_store
from archive.verify import verify
from leaderboard.board import Board
from leaderboard.errors import ArchiveMismatchError
from tests.archive.sealed import Draft, board, bounds, draft, standings

SEASON = ("daily", "s20261204")
LAYOUTS: list[dict[str, Any]] = [{"by": "player", "count": 3}, {"by": "score", "cuts": [10, 20, 30]}]


@pytest.fixture
def memory() -> Store:
    return open_store("memory://", {})


def facts_of(of: Board, table: Any, shard: Callable[[bytes, float], int]) -> tuple[KeyFacts, ...]:
    """Return what a snapshot tells of the live keys, if ``shard`` says who was in which."""
    digests = [StandingDigest() for _ in range(of.shards.number)]
    for row in range(table.num_rows):
        one = table.slice(row, 1).combine_chunks().to_batches()[0]
        member, score = one.column("player_id")[0].as_py(), one.column("score")[0].as_py()
        whose = shard(member if isinstance(member, bytes) else member.encode(), score)
        digests[whose].update(one.column("player_id"), np.array([score]))
    return tuple(KeyFacts(f"cup:{n}", digest.rows, digest.hexdigest()) for n, digest in enumerate(digests))


def season(
    shards: dict[str, Any],
    shard: Callable[[bytes, float], int] | None = None,
    members: Sequence[bytes] = (),
    **more: Any,
) -> Draft:
    """Return 40 players, 0 to 39 points, in the shards of the layout, or in those that ``shard`` says."""
    of = board(shards=shards, ties="shared", **more)
    ids = members or [b"p%02d" % number for number in range(40)]
    made = draft(of, bounds(), standings(of, bounds(), list(ids), [float(number) for number in range(len(ids))]))
    return replace(made, facts=replace(made.facts, keys=facts_of(of, made.table, shard or of.layout.shard)))


@pytest.mark.parametrize("order", ["high", "low"])
@pytest.mark.parametrize("shards", LAYOUTS)
def test_the_digest_of_each_live_key_is_computed_again(memory: Store, shards: dict[str, Any], order: str) -> None:
    """By player and by score, high and low, over several parts and batches; and the number of keys is told."""
    made = season(shards, order=order)
    made.publish(memory)
    assert verify(memory, *SEASON).keys == len(made.facts.keys) == made.board.shards.number


def test_binary_members_are_dealt_by_their_bytes(memory: Store) -> None:
    made = season(LAYOUTS[0], member="binary", members=[b"\xff", b"", b"\x00\r\n", "🏆".encode(), b"a"])
    made.publish(memory)
    assert verify(memory, *SEASON).keys == 3


@pytest.mark.parametrize("shards", LAYOUTS)
def test_a_key_whose_digest_differs_is_named(memory: Store, shards: dict[str, Any]) -> None:
    """The digest of the whole agrees, the numbers of rows too; only the one key's digest is another."""
    made = season(shards)
    wrong = (*made.facts.keys[:1], replace(made.facts.keys[1], digest="0" * 64), *made.facts.keys[2:])
    replace(made, facts=replace(made.facts, keys=wrong)).publish(memory)
    with pytest.raises(ArchiveMismatchError) as caught:
        verify(memory, *SEASON)
    assert f"digest of the live key cup:1 {made.facts.keys[1].digest}, the seal says {'0' * 64}" in str(caught.value)
    assert "cup:0" not in str(caught.value)


def test_players_whom_another_writer_spread_otherwise_are_no_fault(memory: Store) -> None:
    """No row tells its key then: the standing is verified, and of how many keys, none, is said."""
    season(LAYOUTS[0], lambda member, _: int(member[1:]) // 30).publish(memory)
    assert verify(memory, *SEASON).keys == 0


@pytest.mark.parametrize(
    "ledger", ["none", {"url_env": "THEIRS", "sql": "SELECT player_id, points, reached_at FROM totals"}]
)
def test_another_spread_of_as_many_rows_a_key_is_no_fault_either(memory: Store, ledger: Any) -> None:
    """Mirrored, each of two shards has as many players as CRC-32 gives it; the standing is verified, of no key."""
    shards = {"by": "player", "count": 2}
    layout = board(shards=shards).layout
    ids = sorted((b"p%02d" % number for number in range(40)), key=lambda member: layout.shard(member, 0))
    even = min(sum(layout.shard(member, 0) == number for member in ids) for number in (0, 1))
    members = ids[:even] + ids[-even:]
    made = season(shards, lambda member, _: 1 - layout.shard(member, 0), members, ledger=ledger)
    assert [key.rows for key in made.facts.keys] == [even, even]
    made.publish(memory)
    assert verify(memory, *SEASON).keys == 0
    season(shards, None, members, ledger=ledger).publish(again := open_store("memory://", {}))
    assert verify(again, *SEASON).keys == 2


def test_a_seal_with_other_keys_than_its_board_has_shards(memory: Store) -> None:
    made = season(LAYOUTS[0])
    replace(made, facts=replace(made.facts, keys=(*made.facts.keys, KeyFacts("more", 0, "0" * 64)))).publish(memory)
    with pytest.raises(ArchiveMismatchError, match="4 live keys, its board has 3 shards"):
        verify(memory, *SEASON)


def test_a_season_of_one_key_says_one(memory: Store) -> None:
    of = board(ties="shared")
    draft(of, bounds(), standings(of, bounds(), [b"a"], [1.0])).publish(memory)
    assert verify(memory, *SEASON).keys == 1
