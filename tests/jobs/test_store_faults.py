"""I1, I2, I8: a store that answers badly at any call of a season ends in the right archive, or a hold that says why.

The season is closed and cleaned at the command line on a store whose calls go wrong as a script says; whatever came of
it, nothing left Redis that is not whole in the archive, and once the store is well again the season ends as ever.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from archive.store import open_store
from jobs import wiring
from tests.support.cli import World, finale
from tests.support.faulty_store import FaultyStore

KEY = "leaderboard:cup:one"
CONFIG = """
[runner]
part_rows = 1000
[board.cup]
ties = "shared"
ledger = "none"
keep_live = "0s"
rewards = "cup.toml"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
ROWS = {f"p{number:04d}": float(number) for number in range(1_500)}  # two parts of standings, two of grants

#: What the store does at one call: letters of ``FaultyStore``. A truncated or misread answer, and one that lies about
#: a size, may hold the season, since a person must look at a store that does that.
LETTERS = {
    "n": "fails before",
    "u": "its answer is lost, not done",
    "d": "its answer is lost, done",
    "c": "says 409 or 412, not done",
    "C": "says 409 or 412, done",
    "t": "truncates",
    "s": "lies about the size",
}
AGAIN, HELD, UNFIT = {0, 10, 12}, {22, 30}, 11


@pytest.fixture
def cup(world: World) -> World:
    """A finished season whose key was written by somebody else."""
    world.configure(CONFIG, cup=TABLE)
    world.redis.zadd(KEY, ROWS)
    return world


def through(patch: pytest.MonkeyPatch, script: str) -> list[FaultyStore]:
    """Let the stores of commands from now on follow the script; return those that were opened."""
    opened: list[FaultyStore] = []

    def open_faulty(url: str, environ: object, timeout: timedelta) -> FaultyStore:
        opened.append(FaultyStore(open_store(url, {}), script))
        return opened[-1]

    patch.setattr(wiring, "open_store", open_faulty)
    return opened


def rows_of(world: World) -> dict[str, float]:
    found = finale("standings", "cup", "one", "--top", "2000", "--json").ok().json
    return {row["player_id"]: row["points"] for row in found}


@pytest.fixture(scope="module")
def known() -> list[str]:
    """The calls of an undisturbed season, once the first test has listened to one."""
    return []


def calls_of_a_season(known: list[str], world: World, patch: pytest.MonkeyPatch) -> list[str]:
    """Return what an undisturbed close and clean asks of the store."""
    if known:
        return known
    opened = through(patch, "")
    finale("close", "cup", "one").ok()
    assert world.state("cup", "one") == "cleaned"
    known += opened[0].calls
    return known


def applies(letter: str, call: str) -> bool:
    """Return whether a call can go wrong so."""
    verb = call.partition(" ")[0]
    return {"t": verb in ("get", "get_range"), "s": verb == "list", "c": verb == "put_new", "C": verb == "put_new"}.get(
        letter, True
    )


def tried(calls: list[str], letter: str, most: int | None) -> Iterator[int]:
    """Yield the numbers of the calls to go wrong; of at most ``most``, the same every time."""
    found = [number for number, call in enumerate(calls) if applies(letter, call)]
    if most is not None:
        found = sorted(random.Random(f"20261204 {letter}").sample(found, min(most, len(found))))
    yield from found


def strike(world: World, patch: pytest.MonkeyPatch, letter: str, number: int) -> None:
    """Close the season with one call going wrong, and then with a store that is well."""
    opened = through(patch, "." * number + letter)
    struck = finale("close", "cup", "one")
    assert len(opened[0].calls) > number, "the call did not come"
    assert struck.code in AGAIN | HELD | ({UNFIT} if letter == "t" else set()), struck.err
    assert "Traceback" not in struck.err
    if struck.code in HELD:
        assert letter in "ts", struck.err
    through(patch, "")
    if not world.redis.exists(KEY):  # never without its archive
        finale("archive", "verify", "cup", "one").ok()
    if world.state("cup", "one") != "cleaned" and struck.code in HELD:
        finale("season", "release", "cup", "one", "--as", "ana", "--because", "the store is well").ok()
    finale("close", "cup", "one").ok()
    assert world.state("cup", "one") == "cleaned"
    assert world.redis.keys() == []
    assert rows_of(world) == ROWS
    finale("archive", "verify", "--all").ok()
    # What the check of a store leaves, where it could not remove it, is swept by age.
    assert [path for path in world.files("staging") if not path.startswith("staging/cup/canary/")] == []
    assert [Path(path).name for path in world.files("seals")] == ["grants.json", "standings.json"]


def season_anew(world: World) -> None:
    """Make the world what it was before the season was closed."""
    for table in ("season", "seal", "journal", "step_result", "lease", "delivery"):
        world.sql(f"truncate finale.{table} cascade")
    for path in sorted(world.store.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    world.redis.flushall()
    world.redis.zadd(KEY, ROWS)


@pytest.mark.parametrize("letter", LETTERS)
def test_i1_i2_i8_a_store_that_answers_badly_at_some_calls(
    known: list[str], cup: World, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    """I1, I2, I8: at one call of a season."""
    calls = calls_of_a_season(known, cup, monkeypatch)
    for number in tried(calls, letter, 1):
        season_anew(cup)
        strike(cup, monkeypatch, letter, number)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("letter", LETTERS)
def test_i1_i2_i8_a_store_that_answers_badly_at_any_call(
    known: list[str], cup: World, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    """I1, I2, I8: at every call of a season."""
    calls = calls_of_a_season(known, cup, monkeypatch)
    for number in tried(calls, letter, None):
        season_anew(cup)
        strike(cup, monkeypatch, letter, number)
