"""finale season release while a step is under way or has left a seal: nothing thrown away is sealed or paid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.steps import seal as sealing
from jobs.steps import snapshot as snapping
from leaderboard.errors import UnavailableError
from tests.support.cli import World, differing, finale

KEY = "leaderboard:cup:one"
CONFIG = """
[board.cup]
ties = "shared"
ledger = "none"
rewards = "cup.toml"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
HOLD = ("season", "hold", "cup", "one", "--because", "cheaters", "--as", "ana")
RELEASE = ("season", "release", "cup", "one", "--because", "removed", "--as", "ana")
AGAIN = (*RELEASE, "--again")


@pytest.fixture
def cup(world: World) -> World:
    """A season that is over, of a board whose only truth is its key; a cheater leads it."""
    world.configure(CONFIG, cup=TABLE)
    world.redis.zadd(KEY, {"ann": 5, "ben": 3, "cheater": 99})
    return world


def sealed(world: World) -> set[str]:
    (part,) = (world.store / "standings").rglob("*.parquet")
    return set(pq.read_table(part, columns=["player_id"], partitioning=None)["player_id"].to_pylist())


def paid(world: World) -> set[str]:
    return {bytes(player).decode() for (player,) in world.sql("select player_id from finale.grants")}


def once(monkeypatch: pytest.MonkeyPatch, module: object, name: str, instead: Callable[..., Any]) -> None:
    """Let the next call of ``module.name`` be one of ``instead``, which is given the original first."""
    original = getattr(module, name)

    def called(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(module, name, original)
        return instead(original, *given, **named)

    monkeypatch.setattr(module, name, called)


def test_i4_no_snapshot_is_taken_again_once_its_seal_is_committed(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I2, I4: the put failed and may still arrive: --again is refused, in the dry run too, and the hold stays."""

    def away(*_: Any) -> None:
        raise UnavailableError("the store did not answer")

    once(monkeypatch, sealing, "settle", away)
    finale("close", "cup", "one").refused(10, "the store did not answer")
    assert cup.state("cup", "one") == "reconciled"
    finale(*HOLD).ok()
    cup.redis.zrem(KEY, "cheater")
    before = cup.picture()
    for dry in ((), ("--dry-run",)):
        finale(*AGAIN, *dry).refused(23, "its seal is committed", "without --again", "finale rewards correct cup one")
    assert differing(before, cup.picture()) == []
    finale(*RELEASE).ok()
    finale("close", "cup", "one").ok()
    assert sealed(cup) == {"ann", "ben", "cheater"}


def test_i4_a_seal_under_way_is_waited_for(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I4, I9: held and released while the seal step runs: refused first for that, then for the seal; nobody is paid."""

    def meanwhile(original: Callable[..., Any], *given: Any, **named: Any) -> Any:
        finale(*HOLD).ok()
        cup.redis.zrem(KEY, "cheater")
        finale(*AGAIN).refused(20, "is being worked on")
        row = original(*given, **named)
        finale(*AGAIN).refused(23, "its seal is committed")
        return row

    once(monkeypatch, sealing, "commit", meanwhile)
    finale("close", "cup", "one").refused(22, "cheaters")
    assert cup.state("cup", "one") == "sealed"
    finale(*AGAIN).refused(23, "sealed", "without --again")
    assert paid(cup) == set()


@pytest.mark.parametrize(
    ("step", "release"),
    [
        pytest.param("snapshot", RELEASE, id="snapshot, plain"),
        pytest.param("snapshot", AGAIN, id="snapshot, again"),
        pytest.param("seal", AGAIN, id="seal, again"),
    ],
)
def test_i4_i9_what_a_stale_runner_had_read_is_thrown_away(
    cup: World, monkeypatch: pytest.MonkeyPatch, step: str, release: tuple[str, ...]
) -> None:
    """I4, I9: a runner that slept past its lease, with what it had read before the release, records and seals nothing.

    A season that is frozen and released takes a snapshot that begins after that, asked for or not.
    """

    def asleep() -> None:
        finale(*HOLD).ok()
        cup.redis.zrem(KEY, "cheater")
        finale(*release).refused(20, "is being worked on")
        cup.sql("update finale.lease set expires_at = clock_timestamp()")
        finale(*release).ok()

    def snapshot(original: Callable[..., Any], *given: Any, **named: Any) -> Any:
        taken = original(*given, **named)
        asleep()
        return taken

    def commit(original: Callable[..., Any], *given: Any, **named: Any) -> Any:
        asleep()
        return original(*given, **named)

    if step == "snapshot":
        once(monkeypatch, snapping.snapshot, "take", snapshot)
    else:
        once(monkeypatch, sealing, "commit", commit)
    finale("close", "cup", "one").refused(21, "another runner has taken this season over")
    assert cup.state("cup", "one") == "frozen"
    assert cup.sql("select count(*) from finale.seal") == [(0,)]
    finale("close", "cup", "one").ok()
    assert sealed(cup) == paid(cup) == {"ann", "ben"}


def test_i4_a_release_that_comes_too_late_changes_nothing(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I4: asked for while the season was reconciled, and sealed by the time it is done: refused, and the hold stays."""
    from jobs.seasons import releasing

    def sealed_meanwhile(original: Callable[..., Any], *given: Any, **named: Any) -> Any:
        finale(*RELEASE).ok()
        finale("close", "cup", "one", "--until", "seal").ok()
        finale(*HOLD).ok()
        return original(*given, **named)

    finale("close", "cup", "one", "--until", "reconcile").ok()
    finale(*HOLD).ok()
    once(monkeypatch, releasing, "leased", sealed_meanwhile)
    finale(*AGAIN).refused(23, "sealed", "without --again")
    assert finale("season", "show", "cup", "one", "--json").ok().json["hold"] is not None
    finale("close", "cup", "one").refused(22, "cheaters")
    assert paid(cup) == set()
