"""I4: a season whose Redis and ledger differ is put right within the bound, else held until a person acts."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.checks import repairing
from tests.support.cli import Answer, World, finale

KEY = "leaderboard:cup:one"
CONFIG = """
[board.cup]
ties = "shared"
rewards = "cup.toml"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = """version = 1
[[rule]]
name = "first"
rank = "1"
grant = { gems = 100 }
[[rule]]
name = "all"
all = true
grant = { gems = 10 }
"""
PLAYERS = 300
NAMES = [f"p{number:03d}" for number in range(PLAYERS)]


def play(world: World, config: str = CONFIG) -> None:
    """Play a season that is due, up to its freeze."""
    world.configure(config, cup=TABLE)
    world.played("cup", *(f"m1,{name},{number},2026-01-02T00:00:00Z" for number, name in enumerate(NAMES)))
    finale("close", "cup", "one", "--until", "freeze").ok()


@pytest.fixture
def cup(world: World) -> World:
    """A frozen season of 300 players; the bound is one in a hundred, so 3."""
    play(world)
    return world


def seal(world: World) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((world.store / "seals/cup/one/standings.json").read_bytes())
    return found


def report(world: World) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of the newest report."""
    path = max((world.store / "reports/cup/one").glob("*.json"), key=lambda found: found.stat().st_mtime_ns)
    return path.name, json.loads(path.read_bytes())


def drift(world: World, count: int = 4) -> None:
    """Give the last ``count`` players a thousand points that the ledger does not have."""
    for name in NAMES[-count:]:
        world.redis.zincrby(KEY, 1_000, name)


def accept(report: str, because: str = "x") -> Answer:
    """Accept the difference of a report, as ana."""
    return finale("season", "release", "cup", "one", "--accept-drift", report, "--because", because, "--as", "ana")


def unpaid(world: World) -> None:
    """Nobody was paid, nothing was sealed, and the live key is there."""
    assert world.sql("select count(*) from finale.grants") == [(0,)]
    assert world.sql("select count(*) from finale.payable") == [(0,)]
    assert world.sql("select count(*) from finale.seal") == [(0,)]
    assert world.files("grants") == world.files("standings") == world.files("seals") == []
    assert world.redis.exists(KEY)


def test_i4_c19_drift_within_the_bound_wakes_nobody(cup: World) -> None:
    """I4, C19: a player lost, one changed, one who is nobody's: put right from the ledger, told in the seal, paid."""
    cup.redis.zrem(KEY, "p010")
    cup.redis.zincrby(KEY, 500, "p020")
    cup.redis.zadd(KEY, {"intruder": 9_999})
    closed = finale("close", "cup", "one", "--json").ok().json
    assert [step["step"] for step in closed["steps"]][:4] == ["snapshot", "reconcile", "snapshot", "reconcile"]
    assert "3 players put right from the ledger" in closed["steps"][1]["figures"]
    assert {name.decode(): score for name, score in cup.redis.zrange(KEY, 0, -1, withscores=True)} == {
        name: float(number) for number, name in enumerate(NAMES)
    }
    assert cup.sql("select count(*), max(amount) from finale.payable") == [(PLAYERS, 100)]
    (repaired,) = seal(cup)["repaired"]
    assert {name: repaired[name] for name in ("players", "only_redis", "only_ledger", "points_differ")} == {
        "players": 3,
        "only_redis": 1,
        "only_ledger": 1,
        "points_differ": 1,
    }
    assert seal(cup)["reconcile"]["drift"] == 0 and seal(cup)["reconcile"]["equal"] == PLAYERS
    assert seal(cup)["accepted_drift"] is None
    assert [event for event, _, _ in cup.journal("cup", "one")].count("repaired") == 1
    told = json.loads((cup.store / repaired["report"]).read_bytes())
    # What Redis alone had has left it, and stands in the report.
    assert [(one["player_id"], one["redis_points"], one["ledger_points"]) for one in told["players"]] == [
        ("intruder", 9_999, None),
        ("p020", 520, 20),
        ("p010", None, 10),
    ]
    assert finale("archive", "verify", "cup", "one").ok()


def test_a_report_has_every_player_with_numbers_matches_and_cause(cup: World) -> None:
    """JSON for a person and a script, Parquet for an analyst: both numbers, the difference, last matches, the cause."""
    cup.redis.zrem(KEY, "p010")
    cup.redis.zincrby(KEY, 20, "p020")
    cup.redis.zadd(KEY, {"p030": 7, "intruder": 5})
    finale("close", "cup", "one").refused(22, "differ in 4 players", "p020: Redis 40, ledger 20")
    name, told = report(cup)
    causes = {one["player_id"]: one["cause"] for one in told["players"]}
    assert causes == {
        "p010": "never applied",
        "p020": "applied twice",
        "p030": "written by someone else",
        "intruder": "written by someone else",
    }
    assert (told["only_redis"], told["only_ledger"], told["points_differ"], told["equal"]) == (1, 1, 2, PLAYERS - 3)
    (of_p010,) = [one for one in told["players"] if one["player_id"] == "p010"]
    assert [match["match_id"] for match in of_p010["last_matches"]] == ["m1"]
    rows = pq.read_table(cup.store / "reports/cup/one" / told["files"][0]).to_pylist()
    assert [row["player_id"] for row in rows] == [b"intruder", b"p010", b"p020", b"p030"]
    assert [row["difference"] for row in rows] == [5, -10, 20, -23]
    assert [row["cause"] for row in rows] == [causes[row["player_id"].decode()] for row in rows]
    assert name == f"drift-{told['difference'][:16]}.json"


def test_i4_beyond_the_bound_no_way_round_pays(cup: World) -> None:
    """I4: tick, close again, close --now, a hold by hand, and every plain release: held again, and nobody is paid."""
    drift(cup)
    finale("close", "cup", "one").refused(
        22, "differ in 4 players", "nobody is paid", "more than the 3", "--accept-drift"
    )
    unpaid(cup)
    cup.sql("update finale.season set backfill = false")  # else no tick would take it on
    assert "on hold" in finale("tick").ok().out
    unpaid(cup)
    for words in (("close", "cup", "one"), ("close", "cup", "one", "--now", "--as", "ana"), ("clean", "cup", "one")):
        assert finale(*words).code in (22, 23)
        unpaid(cup)
    for again in ((), ("--again",)):
        finale("season", "release", "cup", "one", *again, "--because", "try", "--as", "ana").ok()
        finale("tick").refused(22, "differ in 4 players")
        unpaid(cup)
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("season", "hold", "cup", "one", "--because", "let me see", "--as", "ana").ok()
    finale("close", "cup", "one").refused(22, "let me see")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one", "--until", "reconcile").refused(22, "differ in 4 players")
    unpaid(cup)


def test_i4_no_command_of_payout_or_cleaning_goes_round_a_hold(cup: World) -> None:
    """I4: neither a preview that is approved, nor a correction, a retry, a clean or an adoption of the key pays."""
    drift(cup)
    finale("close", "cup", "one").refused(22, "differ in 4 players")
    digest = finale("rewards", "preview", "cup", "one", "--json").ok().json["hash"]
    named = ("--because", "x", "--as", "ana")
    for words in (
        ("rewards", "approve", "cup", "one", digest, *named),
        ("rewards", "correct", "cup", "one", "--exclude", NAMES[0], *named),
        ("rewards", "retry", "cup", "one", "--as", "ana"),
        ("season", "retry", "cup", "one", "--as", "ana"),
        ("clean", "cup", "one", "--now", "--as", "ana"),
        ("clean", "cup", "one", "--again", "--as", "ana"),
        ("archive", "adopt", KEY, "--board", "cup", "--season", "one", "--as", "ana"),
        ("tick",),
    ):
        assert finale(*words).code != 1, words
        unpaid(cup)


def test_i4_what_was_mended_closes_after_a_plain_release(cup: World) -> None:
    """A season held at its comparison takes its snapshot again: what was put right in Redis counts, without --again."""
    drift(cup)
    finale("close", "cup", "one").refused(22, "finale season release cup one")
    for name in NAMES[-4:]:
        cup.redis.zincrby(KEY, -1_000, name)
    finale("season", "release", "cup", "one", "--because", "mended by hand", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert seal(cup)["repaired"] is None and seal(cup)["accepted_drift"] is None


def test_i4_an_accepted_difference_stands_in_the_seal(cup: World) -> None:
    """I4: accepted by its report, with name and reason; who differs is paid as Redis says, and the seal tells all."""
    drift(cup)
    finale("close", "cup", "one").refused(22)
    name, told = report(cup)
    words = ("season", "release", "cup", "one", "--accept-drift", name)
    finale(*words, "--as", "ana").refused(4, "needs a reason")
    finale(*words, "--because", "x").refused(4, "needs the name")
    finale(*words, "--because", "x", "--again", "--as", "ana").refused(23, "no difference yet")
    unpaid(cup)
    finale(*words, "--because", "the bonus weekend was paid in Redis alone", "--as", "ana").ok()
    unpaid(cup)
    finale("close", "cup", "one").ok()
    accepted = seal(cup)["accepted_drift"]
    assert accepted.pop("at")
    assert accepted == {
        "difference": told["difference"],
        "report": f"reports/cup/one/{name}",
        "players": 4,
        "by": "ana",
        "because": "the bonus weekend was paid in Redis alone",
    }
    assert seal(cup)["reconcile"]["drift"] == 4
    assert cup.sql("select encode(player_id, 'escape') from finale.payable where amount = 100") == [("p299",)]
    shown = finale("archive", "show", "cup", "one").ok().out
    assert "by ana" in shown and "bonus weekend" in shown
    finale("reconcile", "cup", "one", "--live").refused(
        18, "accepted for the seal by ana at 20", "bonus weekend", "live key must stay as it was sealed"
    )


def test_i4_an_acceptance_does_not_cover_a_new_difference(cup: World) -> None:
    """I4: one point more in the ledger, and the accepted season is held again, with another report."""
    drift(cup)
    finale("close", "cup", "one").refused(22)
    first, told = report(cup)
    finale(
        "season", "release", "cup", "one", "--accept-drift", told["difference"], "--because", "x", "--as", "ana"
    ).ok()
    cup.sql("update finale.player_total set points = points + 1 where player_id = 'p299'")
    finale("close", "cup", "one").refused(22, "differ in 4 players")
    second, _ = report(cup)
    assert first != second
    unpaid(cup)
    accept(first).refused(4, "another difference", second)
    accept(second, "y").ok()
    finale("close", "cup", "one").ok()
    assert seal(cup)["accepted_drift"]["because"] == "y"


@pytest.mark.parametrize(
    ("named", "code", "words"),
    [
        ("drift-0123456789abcdef.json", 5, "has no report"),
        ("../../seals/cup/one/standings.json", 4, "names no report"),
        ("all of it", 4, "names no report"),
    ],
)
def test_what_is_no_report_is_not_accepted(cup: World, named: str, code: int, words: str) -> None:
    drift(cup)
    finale("close", "cup", "one").refused(22)
    finale("season", "release", "cup", "one", "--accept-drift", named, "--because", "x", "--as", "ana").refused(
        code, words
    )
    finale("close", "cup", "one").refused(22, "on hold")


def test_a_board_that_drifts_again_and_again_is_held(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else writes after every repair: put right twice, then held for a person, who lets it be tried again."""
    original = repairing.repair

    def spoiled(*given: Any, **named: Any) -> Any:
        done = original(*given, **named)
        cup.redis.zincrby(KEY, 1, "p100")
        return done

    cup.redis.zincrby(KEY, 1, "p100")
    monkeypatch.setattr(repairing, "repair", spoiled)
    finale("close", "cup", "one").refused(22, "repaired 2 times already", "something else writes")
    unpaid(cup)
    monkeypatch.setattr(repairing, "repair", original)
    finale("season", "release", "cup", "one", "--because", "the writer is stopped", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert len(seal(cup)["repaired"]) == 3


@pytest.mark.parametrize(("repair", "held"), [('"0%"', True), ("0", True), ("4", False), ('"2%"', False)])
def test_the_bound_is_the_boards(world: World, repair: str, held: bool) -> None:
    """Players or a share; 0 repairs nothing unasked."""
    play(world, CONFIG + f"reconcile = {{ repair = {repair} }}\n")
    drift(world)
    assert finale("close", "cup", "one").code == (22 if held else 0)


def test_a_declared_tolerance_is_told_in_the_seal(world: World) -> None:
    """C86: within the tolerance nothing is drift, and the seal counts who was tolerated."""
    play(world, CONFIG + "reconcile = { tolerance = 2, repair = 0 }\n")
    for name, more in (("p100", 1), ("p200", 2)):
        world.redis.zincrby(KEY, more, name)
    finale("close", "cup", "one").ok()
    found = seal(world)["reconcile"]
    assert (found["tolerated"], found["equal"], found["drift"]) == (2, PLAYERS - 2, 0)
    assert found["redis_points"] == found["ledger_points"] + 3


def test_c03_points_moved_by_zincrby_keep_the_old_time_and_are_found(world: World) -> None:
    """C03: a packed score raised by ZINCRBY has other points and the old time: points differ, and are put right."""
    play(world, CONFIG.replace('ties = "shared"', 'ties = { by = "first_to_reach", unit = "minute" }'))
    world.redis.zincrby(KEY, 5 * 2**24, "p100")
    world.redis.zincrby(KEY, 1, "p200")  # the time alone
    finale("close", "cup", "one").ok()
    (repaired,) = seal(world)["repaired"]
    assert (repaired["points_differ"], repaired["reached_at_differs"]) == (1, 1)
