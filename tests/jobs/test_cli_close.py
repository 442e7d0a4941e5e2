"""finale close, clean and season: what they do, tell and refuse, and that a dry run changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.cli import World, differing, finale

NOW = datetime.now(UTC).replace(microsecond=0)
STEPS = ["open", "close", "freeze", "snapshot", "reconcile", "seal", "reward", "deliver"]
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'


def config(starts_at: datetime, ends_at: datetime, **more: str) -> str:
    keys = "".join(f"{key} = {value}\n" for key, value in {"grace": '"15m"', **more}.items())
    return f"""
[board.cup]
ties = "shared"
rewards = "cup.toml"
calendar = {{ seasons = [{{ id = "spring", starts_at = {starts_at.isoformat()}, ends_at = {ends_at.isoformat()} }}] }}
{keys}"""


def cup(world: World, starts: timedelta, ends: timedelta, **more: str) -> datetime:
    """Configure the board, create its season as if it had been seen when it began, and play; return its start."""
    starts_at = NOW + starts
    world.configure(config(starts_at, NOW + ends, **more), cup=TABLE)
    world.seen("cup", starts_at)
    return starts_at


def played(world: World, starts_at: datetime) -> None:
    at = (starts_at + timedelta(minutes=1)).isoformat()
    world.played("cup", f"m1,ann,5,{at}", f"m1,bob,3,{at}", f"m2,ann,1,{at}", f"m2,eve,0,{at}")


@pytest.fixture
def ended(world: World) -> World:
    """A played season that ended an hour ago, its grace too."""
    played(world, cup(world, timedelta(days=-1), timedelta(hours=-1)))
    return world


@pytest.fixture
def in_grace(world: World) -> World:
    """A played season that ended a minute ago; its grace runs for hours more."""
    played(world, cup(world, timedelta(days=-1), timedelta(minutes=-1), grace='"10h"'))
    return world


@pytest.fixture
def running(world: World) -> World:
    """A played season that ends in a day."""
    played(world, cup(world, timedelta(days=-1), timedelta(days=1)))
    return world


def test_close_takes_every_step_and_tells_its_time_and_figures(ended: World) -> None:
    """Each step is listed with seconds and figures; the key stays, and the answer says until when."""
    run = finale("close", "cup", "spring", "--json").ok().json
    assert [step["step"] for step in run["steps"]] == STEPS
    assert all(step["seconds"] >= 0 and step["figures"] for step in run["steps"])
    assert run["state"] == "delivered"
    assert run["next"]["step"] == "clean"
    kept = datetime.fromisoformat(run["next"]["at"]) - datetime.fromisoformat(run["sealed_at"])
    assert kept == timedelta(days=7)
    assert ended.redis.zcard("leaderboard:cup:spring") == 3
    assert ended.sql("select count(*), sum(amount) from finale.payable") == [(3, 30)]


def test_the_plain_answer_says_the_same_as_the_json(ended: World) -> None:
    """Without --json a table of the steps and one line on what is next."""
    told = finale("close", "cup", "spring").ok().out
    assert all(step in told for step in STEPS)
    assert "cup/spring is delivered; next: clean at " in told


def test_close_again_changes_nothing(ended: World) -> None:
    """C78: a second close, and a third while the key is kept, change no row, no key and no file, and exit 0."""
    finale("close", "cup", "spring").ok()
    before = ended.picture()
    assert "nothing to do: cup/spring is delivered" in finale("close", "cup", "spring").ok().out
    assert finale("close", "cup", "spring", "--json").ok().json["steps"] == []
    assert differing(before, ended.picture()) == []


def test_until_stops_after_a_step_and_close_goes_on_there(ended: World) -> None:
    """--until names the last step to be taken; the next close takes the rest."""
    first = finale("close", "cup", "spring", "--until", "reconcile", "--json").ok().json
    assert [step["step"] for step in first["steps"]] == STEPS[:5]
    assert first["state"] == "reconciled"
    assert ended.files("standings") == []
    rest = finale("close", "cup", "spring", "--json").ok().json
    assert [step["step"] for step in rest["steps"]] == STEPS[5:]
    finale("close", "cup", "spring", "--until", "lunch").refused(4, "'lunch'", "snapshot")


def test_a_dry_run_changes_nothing_and_decides_like_a_real_run(ended: World) -> None:
    """--dry-run tells the next step's verdict, and leaves ledger, Redis and store as they are, at every stop."""
    for step in STEPS:
        before = ended.picture()
        planned = finale("close", "cup", "spring", "--dry-run", "--json").ok().json
        assert (planned[0]["step"], planned[0]["verdict"]) == (step, "act")
        assert [one["step"] for one in planned] == [*STEPS[STEPS.index(step) :], "clean"]
        assert planned[0]["why"] in finale("close", "cup", "spring", "--dry-run").ok().out
        assert differing(before, ended.picture()) == []
        finale("close", "cup", "spring", "--until", step).ok()
    (waits,) = finale("close", "cup", "spring", "--dry-run", "--json").ok().json
    assert (waits["step"], waits["verdict"]) == ("clean", "wait")


def test_a_dry_run_of_clean_is_the_verdict_of_clean(ended: World) -> None:
    """clean --dry-run refuses, waits or acts exactly where clean does, with --now and without."""
    finale("clean", "cup", "spring", "--dry-run").refused(23, "is scheduled")
    finale("close", "cup", "spring").ok()
    before = ended.picture()
    (waits,) = finale("clean", "cup", "spring", "--dry-run", "--json").ok().json
    assert waits["verdict"] == "wait"
    (acts,) = finale("clean", "cup", "spring", "--dry-run", "--now", "--json").ok().json
    assert acts["verdict"] == "act"
    finale("clean", "cup", "spring").refused(6, "kept until 20")
    assert differing(before, ended.picture()) == []
    finale("clean", "cup", "spring", "--now", "--as", "ana").ok()
    assert finale("clean", "cup", "spring", "--dry-run").ok().out == "nothing to do\n"


def test_c81_keep_live_is_respected_and_then_the_key_goes(ended: World) -> None:
    """C81: before keep_until neither clean nor tick touches the key; once it has passed, tick removes it."""
    finale("close", "cup", "spring").ok()
    finale("tick").ok()
    finale("clean", "cup", "spring").refused(6, "kept until 20", "--now")
    assert ended.redis.exists("leaderboard:cup:spring")
    ended.sql("update finale.season set keep_until = now() - interval '1 second'")
    assert finale("tick", "--json").ok().json[0]["steps"] == ["clean"]
    assert ended.redis.keys() == []
    assert ended.state("cup", "spring") == "cleaned"


def test_grace_lets_results_in_until_the_freeze(in_grace: World) -> None:
    """A result played before the cutoff counts while the grace runs, and is late once the season is frozen."""
    early = finale("close", "cup", "spring").refused(6, "grace", "steps taken now: open, close", "--now")
    assert early.out == ""
    assert in_grace.state("cup", "spring") == "closing"
    at = (NOW - timedelta(minutes=2)).isoformat()
    in_grace.played("cup", f"m3,bob,9,{at}")
    assert finale("close", "cup", "spring", "--now", "--as", "ana", "--until", "freeze").ok()
    late = finale("results", "import", str(in_grace.results(f"m4,eve,99,{at}")), "--board", "cup", "--json").ok().json
    assert (late["new"], late["late"], late["applied"]) == (1, 1, 0)
    finale("close", "cup", "spring").ok()
    top = finale("standings", "cup", "spring", "--json").ok().json
    assert [(row["player_id"], row["points"]) for row in top] == [("bob", 12), ("ann", 6), ("eve", 0)]


def test_c75_a_score_of_zero_is_a_place_like_any_other(ended: World) -> None:
    """C75: a player with 0 points has a position, a rank, an archived row and a grant."""
    finale("close", "cup", "spring").ok()
    finale("clean", "cup", "spring", "--now", "--as", "ana").ok()
    (eve,) = finale("standings", "cup", "spring", "--player", "eve", "--json").ok().json
    assert (eve["position"], eve["points"]) == (3, 0)
    assert ended.sql("select amount from finale.payable where player_id = 'eve'") == [(10,)]


def test_now_ends_a_running_season_and_the_journal_keeps_who_and_when(running: World) -> None:
    """A season that runs is not closed (exit 6); --now ends it, and the journal tells by whom and the planned end."""
    finale("close", "cup", "spring").refused(6, "has not ended")
    finale("close", "cup", "spring", "--now", "--as", "ana").ok()
    (entry,) = [one for one in running.journal("cup", "spring") if one[0] == "closed early"]
    assert entry[1] == "ana"
    assert datetime.fromisoformat(entry[2]["planned_end"]) == NOW + timedelta(days=1)
    shown = finale("season", "show", "cup", "spring", "--json").ok().json
    assert shown["ends_at"] < (NOW + timedelta(days=1)).isoformat()
    assert shown["state"] == "delivered"


@pytest.mark.parametrize("part", ["season", "grace"])
def test_now_gives_no_grace_and_every_word_says_so(request: pytest.FixtureRequest, part: str) -> None:
    """What ends early has no grace: dry run, real run, and stored bounds say the same; the journal has the reason."""
    world: World = request.getfixturevalue("running" if part == "season" else "in_grace")
    finale("close", "cup", "spring", "--until", "open").ok()
    first, *_ = finale("close", "cup", "spring", "--now", "--dry-run", "--json").ok().json
    assert (first["step"], first["verdict"], first["why"]) == ("close", "act", "stop at the cutoff; no grace is left")
    assert ("no grace follows" if part == "season" else "the grace ends now") in first["results"]
    finale("close", "cup", "spring", "--because", "x").refused(4, "--because", "--now")
    finale("close", "cup", "spring", "--now", "--until", "freeze", "--because", "cheaters", "--as", "ana").ok()
    (entry,) = [detail for event, _, detail in world.journal("cup", "spring") if event == "closed early"]
    assert entry["because"] == "cheaters"
    ((closes_at, now),) = world.sql("select closes_at, now() from finale.season where season = 'spring'")
    assert closes_at < now and world.state("cup", "spring") == "frozen"


def test_a_dry_run_of_now_ends_nothing(running: World) -> None:
    """close --now --dry-run needs no name and changes nothing, though it says what would be done."""
    before = running.picture()
    assert finale("close", "cup", "spring", "--now", "--dry-run", "--json").ok().json[0]["verdict"] == "act"
    assert differing(before, running.picture()) == []


def test_a_season_that_has_not_begun_is_not_closed_early(world: World) -> None:
    """--now on a season of the future is refused (exit 23), in a dry run too; without --now it is not due (exit 6)."""
    world.configure(config(NOW + timedelta(days=1), NOW + timedelta(days=2)), cup=TABLE)
    finale("tick").ok()
    before = world.picture()
    finale("close", "cup", "spring").refused(6, "has not begun")
    finale("close", "cup", "spring", "--now", "--as", "ana").refused(23, "it begins at")
    finale("close", "cup", "spring", "--now", "--dry-run").refused(23, "it begins at")
    assert differing(before, world.picture()) == []


@pytest.mark.parametrize(
    "lever",
    [
        ("close", "cup", "spring", "--now"),
        ("clean", "cup", "spring", "--now"),
        ("season", "hold", "cup", "spring", "--because", "x"),
        ("season", "release", "cup", "spring"),
    ],
)
def test_a_lever_needs_a_name_without_a_terminal(
    ended: World, lever: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levers are refused without --as or FINALE_OPERATOR when nobody sits at a terminal, before anything is touched."""
    before = ended.picture()
    finale(*lever).refused(4, "--as NAME")
    finale(*lever, "--as", "two\nlines").refused(4, "operator's name")
    assert differing(before, ended.picture()) == []
    monkeypatch.setenv("FINALE_OPERATOR", "night shift")
    assert "--as" not in finale(*lever).err


def test_a_held_season_waits_for_its_release(ended: World) -> None:
    """hold stops close, clean, --now and tick; season show and list tell it; release lets it go on where it stood."""
    finale("close", "cup", "spring", "--until", "snapshot").ok()
    finale("season", "hold", "cup", "spring", "--because", "cheaters?", "--as", "ana").ok()
    before = ended.picture()
    finale("close", "cup", "spring").refused(22, "cheaters?", "finale season release cup spring")
    finale("close", "cup", "spring", "--now", "--as", "bob").refused(22, "cheaters?")
    assert finale("close", "cup", "spring", "--dry-run", "--json").ok().json[0]["verdict"] == "held"
    assert "on hold: cheaters?" in finale("tick").ok().out
    for more in ((), ("--dry-run",)):
        again = finale("season", "hold", "cup", "spring", "--because", "again", "--as", "ana", *more)
        again.refused(23, "on hold already since", "UTC by ana: cheaters?", "hint:", "finale season release cup spring")
    assert differing(before, ended.picture()) == []
    assert finale("season", "show", "cup", "spring", "--json").ok().json["hold"]["reason"] == "cheaters?"
    assert "ON HOLD" in finale("season", "show", "cup", "spring").ok().out
    assert "snapshotted, held" in finale("season", "list").ok().out
    finale("season", "release", "cup", "spring", "--because", "they were not", "--as", "ana").ok()
    finale("season", "release", "cup", "spring", "--as", "ana").refused(23, "not on hold", "it is snapshotted", "hint:")
    assert finale("close", "cup", "spring", "--json").ok().json["steps"][0]["step"] == "reconcile"
    events = [(event, who) for event, who, _ in ended.journal("cup", "spring") if event in ("held", "released")]
    assert events == [("held", "ana"), ("released", "ana")]


def test_release_again_is_for_before_the_seal(ended: World) -> None:
    """--again goes back to the snapshot before the seal, and is refused after it instead of doing nothing."""
    finale("close", "cup", "spring", "--until", "reconcile").ok()
    finale("season", "hold", "cup", "spring", "--because", "x", "--as", "ana").ok()
    finale("season", "release", "cup", "spring", "--again", "--as", "ana").ok()
    assert ended.state("cup", "spring") == "frozen"
    finale("close", "cup", "spring", "--until", "seal").ok()
    finale("season", "hold", "cup", "spring", "--because", "x", "--as", "ana").ok()
    finale("season", "release", "cup", "spring", "--again", "--as", "ana").refused(23, "sealed", "without --again")
    finale("season", "release", "cup", "spring", "--as", "ana").ok()
    finale("close", "cup", "spring").ok()
    finale("clean", "cup", "spring", "--now", "--as", "ana").ok()
    finale("season", "hold", "cup", "spring", "--because", "x", "--as", "ana").refused(23, "is cleaned")


def test_season_show_and_list_tell_state_bounds_journal_and_what_is_next(ended: World) -> None:
    """Both tell the same in JSON and plain; show has the journal with who did what."""
    finale("close", "cup", "spring", "--as", "night").ok()
    shown = finale("season", "show", "cup", "spring", "--json").ok().json
    (listed,) = finale("season", "list", "--json").ok().json
    assert {key: shown[key] for key in listed} == listed
    assert shown["starts_at"] == (NOW - timedelta(days=1)).isoformat().replace("+00:00", "Z")
    done = [entry for entry in shown["journal"] if entry["event"] == "done"]
    assert [entry["step"] for entry in done] == STEPS
    assert {entry["who"] for entry in done} == {"night"}
    assert shown["lease"] is None
    plain = finale("season", "show", "cup", "spring").ok().out
    assert "None" not in plain
    assert all(step in plain for step in STEPS)
    assert "delivered" in finale("season", "list", "cup").ok().out


def test_unknown_boards_seasons_and_players_are_named(ended: World) -> None:
    """A wrong name is exit 5 with the names there are, for every command that takes one."""
    for command in (("close",), ("clean",), ("standings",), ("season", "show")):
        finale(*command, "cupp", "spring").refused(5, "'cupp'", "did you mean cup?")
        finale(*command, "cup", "autumn").refused(5, "'autumn'", "spring")
    finale("season", "list", "cupp").refused(5, "'cupp'")
    finale("standings", "cup", "spring", "--player", "zoe").refused(5, "'zoe'")
    finale("archive", "verify", "cup", "spring").refused(5, "cup/spring")


def test_a_board_that_left_the_configuration_is_not_closed_without_its_rewards(ended: World) -> None:
    """I4: where the reward table the board named cannot be had when it closes, it is held, nobody goes unpaid."""
    finale("close", "cup", "spring", "--until", "open").ok()
    whole = ended.config.read_text()
    ended.configure("")
    finale("close", "cup", "spring").refused(22, "cup.toml", "no longer configured")
    assert ended.state("cup", "spring") == "sealed"
    ended.configure(whole)
    finale("season", "release", "cup", "spring", "--as", "ana").ok()
    finale("close", "cup", "spring").ok()
    assert ended.sql("select count(*) from finale.payable") == [(3,)]


def test_the_reward_table_of_the_close_is_what_pays(ended: World) -> None:
    """A table that is changed after the season closed pays nobody another amount, and the change is told."""
    finale("close", "cup", "spring", "--until", "seal").ok()
    table = ended.folder / "cup.toml"
    before = table.read_text()
    table.write_text(before.replace("grant = {", "grant = { changed = 9,", 1))
    assert "changed since" in finale("close", "cup", "spring").ok().out
    assert ended.sql("select count(*) from finale.payable where item = 'changed'") == [(0,)]
    assert ended.sql("select count(*) from finale.payable") == [(3,)]
