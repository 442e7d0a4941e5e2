"""finale reconcile, on live, staged and sealed standings; repair by hand; totals counted anew; checks of every tick."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from leaderboard.codec import codec_for, to_microseconds
from leaderboard.season import Season
from ledger import seasons
from tests.support.cli import World, finale

KEY = "leaderboard:cup:one"
NOW = datetime.now(UTC).replace(microsecond=0)
OPEN = f"{{ id = 'one', starts_at = {NOW - timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}, ends_at = 2090-01-01T00:00:00Z }}"
OVER = "{ id = 'one', starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }"
PLAYERS = 120


def play(world: World, *keys: str, over: bool = False, ties: str = "'shared'") -> None:
    """Play a season, running or over; each player has two results."""
    lines = ("[board.cup]", f"ties = {ties}", f"calendar = {{ seasons = [{OVER if over else OPEN}] }}", *keys, "")
    world.configure("\n".join(lines))
    at = "2026-01-02T00:00:00Z" if over else f"{NOW - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    world.played("cup", *(f"m{turn},p{number:03d},{number},{at}" for turn in (1, 2) for number in range(PLAYERS)))
    if not over:
        finale("tick").ok()


def test_live_drift_is_told_apart_from_lag(world: World) -> None:
    """A player whose total is still to be written lags; one missing, changed or nobody's drifts; exit code 18."""
    play(world)
    assert finale("reconcile", "cup", "one", "--json").ok().json["drift"] == 0
    world.redis.zrem(KEY, "p010", "p011")
    world.sql(
        "insert into finale.pending (season_id, bucket, players)"
        " select season_id, finale.bucket_of(player_id), array[player_id]"
        " from finale.player_total where player_id = 'p011'"
    )
    world.redis.zincrby(KEY, 20, "p020")
    world.redis.zadd(KEY, {"intruder": 3})
    answer = finale("reconcile", "cup", "one", "--json").refused(18, "differ in 3 players", "--repair")
    found = answer.json
    assert (found["compared"], found["lagging"], found["players_compared"]) == ("live", 1, PLAYERS + 1)
    assert (found["only_redis"], found["only_ledger"], found["points_differ"]) == (1, 1, 1)
    assert {one["player_id"]: one["cause"] for one in found["players"]} == {
        "p010": "never applied",
        "p020": "applied twice",
        "intruder": "written by someone else",
    }


STRANGE = {"p005": "-1e+300", "p006": "12.4", "p007": "inf", "p008": "9007199254740992.0", "nobody": "-inf"}


@pytest.mark.parametrize(
    ("ties", "shards"),
    [
        ("'shared'", "'none'"),
        ("{ by = 'first_to_reach', unit = 'hour' }", "{ by = 'player', count = 4 }"),
        ("'shared'", "{ by = 'score', cuts = [30, 60] }"),
    ],
)
def test_a_score_that_is_none_of_the_boards_is_told_as_it_is(world: World, ties: str, shards: str) -> None:
    """Fractions, infinities and what is beyond every bound are a class of their own, shown raw, and are put right."""
    play(world, f"shards = {shards}", "reconcile = { every = '10s', repair = 5 }", ties=ties)
    with world.outside() as wired:
        season = seasons.find(wired.database, "cup", "one")
        for player, strange in STRANGE.items():
            shard = season.board.layout.shard(player.encode(), score(season, player))
            world.redis.zadd(season.standing_keys[shard], {player: strange})
    asked = finale("reconcile", "cup", "one", "--json").refused(18, "differ in 5 players")
    assert (asked.json["no_score"], asked.json["drift"]) == (5, 5)
    told = {one["player_id"]: one for one in asked.json["players"]}
    assert {name: one["redis_rows"][0]["score"] for name, one in told.items()} == STRANGE
    assert {one["class"] for one in told.values()} == {"no_score"}
    assert {one["redis_points"] for one in told.values()} == {one["difference"] for one in told.values()} == {None}
    table = finale("reconcile", "cup", "one").out
    assert all(one in table for one in STRANGE.values()) and "with a score that is none of the board's" in table
    (path,) = (world.store / "reports/cup/one").glob("live-*.parquet")
    rows = pq.read_table(path).to_pylist()
    assert {row["player_id"].decode(): row["redis_rows"][0]["score"] for row in rows} == STRANGE
    world.sql("update finale.live_check set checked_at = checked_at - interval '1 minute'")
    assert "has a score that is none of the board's: key" in finale("tick").ok().out
    world.redis.zadd(season.standing_keys[0], {"p005": "1e300"})
    other = finale("reconcile", "cup", "one", "--json").refused(18).json
    assert other["report"] != asked.json["report"], "another score is another difference"
    finale("reconcile", "cup", "one", "--repair", "--as", "ana").ok()
    assert finale("reconcile", "cup", "one", "--json").ok().json["players_compared"] == PLAYERS


def score(season: Season, player: str) -> float:
    """Return the score that the ledger's points of a player make; in which shard she is follows from it."""
    points = 0 if player == "nobody" else 2 * int(player[1:])
    return codec_for(season.board, season.bounds).encode(points, to_microseconds(season.bounds.starts_at))


def test_repair_writes_exactly_the_named_players(world: World) -> None:
    """--player names them; the others stay as they are; the journal has who, why and whom."""
    play(world)
    world.redis.zadd(KEY, {"p001": 999, "p002": 999, "intruder": 3})
    finale("reconcile", "cup", "one", "--repair", "--player", "p001").refused(4, "needs the name")
    finale("reconcile", "cup", "one", "--repair", "--player", "p001", "--player", "intruder", "--as", "ana").ok()
    assert world.redis.zmscore(KEY, ["p001", "p002", "intruder"]) == [2.0, 999.0, None]
    finale("reconcile", "cup", "one", "--repair", "--player", "nobody", "--as", "ana").refused(
        5, "neither Redis nor the ledger", "'nobody'"
    )
    (event,) = [entry for entry in world.journal("cup", "one") if entry[0] == "repaired by hand"]
    assert event[1] == "ana" and event[2]["named"] == ["p001", "intruder"]
    done = finale("reconcile", "cup", "one", "--repair", "--as", "ana", "--json").ok().json
    assert done["repaired"] == 1 and world.redis.zscore(KEY, "p002") == 4.0
    finale("reconcile", "cup", "one", "--player", "p001").refused(4, "--repair")


def test_i4_repair_by_hand_lets_a_held_season_close(world: World) -> None:
    """Held, repaired with the command that the hold names, released, closed; after the seal nothing is repaired."""
    play(world, "reconcile = { repair = 0 }", over=True)
    finale("close", "cup", "one", "--until", "freeze").ok()
    world.redis.zincrby(KEY, 5, "p007")
    finale("close", "cup", "one").refused(22, "finale reconcile cup one --repair")
    finale("reconcile", "cup", "one", "--json").refused(18, "differ in 1 player")
    finale("reconcile", "cup", "one", "--repair", "--because", "foreign writer", "--as", "ana").ok()
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert finale("reconcile", "cup", "one", "--json").ok().json["compared"] == "sealed"
    finale("reconcile", "cup", "one", "--repair", "--as", "ana").refused(23, "as it was sealed")


def test_deep_finds_a_total_that_vouches_for_itself(world: World) -> None:
    """--deep: Redis and the total agree, the results say otherwise: named with both numbers; at the close it holds."""
    play(world, "reconcile = { deep = true }", over=True)
    finale("reconcile", "cup", "one", "--deep").ok()
    finale("close", "cup", "one", "--until", "freeze").ok()
    world.sql("update finale.player_total set points = 900 where player_id = 'p030'")
    world.redis.zadd(KEY, {"p030": 900})
    assert finale("reconcile", "cup", "one").code == 0
    finale("reconcile", "cup", "one", "--deep").refused(18, "1 total", "p030: total 900, results 60")
    finale("close", "cup", "one").refused(22, "p030: total 900, results 60", "nobody is paid")
    world.sql("update finale.player_total set points = 60 where player_id = 'p030'")
    world.redis.zadd(KEY, {"p030": 60})
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()


@pytest.mark.parametrize("live", ["report", "repair", "off"])
def test_every_tick_checks_open_seasons(world: World, live: str) -> None:
    """Players active lately and a slice of all: drift is told once and stands in the journal, or is put right."""
    play(world, f'reconcile = {{ live = "{live}", every = "10s", repair = 5 }}')
    world.redis.zincrby(KEY, 5, "p007")
    world.redis.zadd(KEY, {"intruder": 3})
    world.sql("update finale.live_check set checked_at = checked_at - interval '1 minute'")
    out = finale("tick").ok().out
    events = [detail for event, _, detail in world.journal("cup", "one") if event == "drift"]
    if live == "off":
        assert not events and "drift" not in out
        return
    assert events[0]["drift"] == 2 and events[0]["repaired"] == (live == "repair")
    assert world.redis.zscore(KEY, "p007") == (19.0 if live == "report" else 14.0)
    world.sql("update finale.live_check set checked_at = checked_at - interval '1 minute'")
    finale("tick").ok()
    assert len([event for event, _, _ in world.journal("cup", "one") if event == "drift"]) == 1
    (first,) = (world.store / "reports/cup/one").glob("live-*.json")
    told = json.loads(first.read_bytes())
    assert events[0]["report"].endswith(f"reports/cup/one/{first.name}") and first.name in out.replace("\n", "")
    assert {one["player_id"] for one in told["players"]} == {"p007", "intruder"} and told["compared"] == "live"
    # Another difference has another report, which stands in the journal too; no report of a played season is accepted.
    world.redis.zincrby(KEY, 5, "p008")
    world.sql("update finale.live_check set checked_at = checked_at - interval '1 minute'")
    finale("tick").ok()
    assert len([event for event, _, _ in world.journal("cup", "one") if event == "drift"]) == 2
    assert len(world.files("reports/cup/one/")) == 4
    finale("season", "release", "cup", "one", "--accept-drift", first.name, "--because", "x", "--as", "ana").refused(
        23, "no difference holds it"
    )


@pytest.mark.parametrize("compare", ["rows", "buckets"])
@pytest.mark.parametrize("ties", ['"shared"', '{ by = "first_to_reach", unit = "minute" }'])
def test_a_ledger_of_the_users_own(world: World, compare: str, ties: str) -> None:
    """A whole season on the user's SQL, by rows and by buckets: drift holds it, bad SQL too, and then it closes."""
    sql = (
        "select who as player_id, sum(n) as points, max(at) as reached_at from game where at < %(ends_at)s group by who"
    )
    world.configure(
        f'[board.cup]\nties = {ties}\ncalendar = {{ seasons = [{OVER}] }}\nledger = {{ sql = "{sql}" }}\n'
        f'reconcile = {{ compare = "{compare}" }}\n'
    )
    world.sql("create table game (who text, n bigint, at timestamptz)")
    for name, points in (("ann", 5), ("bob", 7), ("cid", -3 if "shared" in ties else 3)):
        world.sql("insert into game values (%s, %s, '2026-01-01T00:10:30Z')", name, points)
        score = points if "shared" in ties else points * 2**24 + 2**24 - 1 - 10
        world.redis.zadd(KEY, {name: score})
    world.redis.zincrby(KEY, 1 if "shared" in ties else 2**24, "bob")
    finale("close", "cup", "one", "--as", "ana").refused(22, "differ in 1 player", "bob: Redis 8, ledger 7")
    world.sql("update game set n = 8 where who = 'bob'")
    world.sql("insert into game values ('dan', null, '2026-01-01T00:10:30Z')")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").refused(22, "player dan a points that is null")
    world.sql("delete from game where who = 'dan'")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert finale("reconcile", "cup", "one", "--json").ok().json["equal"] == 3
    finale("reconcile", "cup", "one", "--repair", "--as", "ana").refused(23, "no ledger of Finale's")


@pytest.mark.parametrize("compare", ["rows", "buckets"])
@pytest.mark.parametrize(
    ("ties", "shards", "multiplier"),
    [
        ('"shared"', '"none"', 1),
        ('{ by = "first_to_reach", unit = "hour" }', '{ by = "player", count = 3 }', 2**24),
    ],
)
def test_an_open_season_on_a_ledger_of_the_users_own(
    world: World, compare: str, ties: str, shards: str, multiplier: int
) -> None:
    """Compared as it is now, each class of drift; a score that is none of the board's is refused by key and name."""
    sql = "select who as player_id, n as points, at as reached_at from game where at < %(ends_at)s"
    world.configure(
        f"[board.cup]\nties = {ties}\nshards = {shards}\ncalendar = {{ seasons = [{OPEN}] }}\n"
        f'ledger = {{ sql = "{sql}" }}\nreconcile = {{ compare = "{compare}" }}\n'
    )
    finale("tick").ok()
    start = NOW - timedelta(days=9)
    world.sql("create table game (who text, n bigint, at timestamptz)")
    world.sql("insert into game select 'p' || n, n, %s from generate_series(1, 500) n", start + timedelta(minutes=10))
    with world.outside() as wired:
        season = seasons.find(wired.database, "cup", "one")

    def put(player: str, points: float) -> None:
        score = points * multiplier + (multiplier - 1 if multiplier > 1 else 0)
        world.redis.zadd(season.standing_keys[season.board.layout.shard(player.encode(), score)], {player: score})

    for number in range(1, 501):
        put(f"p{number}", number)
    assert finale("reconcile", "cup", "one", "--json").ok().json["equal"] == 500
    put("p7", 8)
    put("intruder", 3)
    world.sql("insert into game values ('p999', 4, %s)", start + timedelta(minutes=10))
    found = finale("reconcile", "cup", "one", "--json").refused(18, "differ in 3 players", "where it is written").json
    assert (found["compared"], found["equal"]) == ("live", 499)
    assert (found["only_redis"], found["only_ledger"], found["points_differ"]) == (1, 1, 1)
    key = season.standing_keys[season.board.layout.shard(b"p9", 0.0)]
    world.redis.zadd(key, {"p9": "inf"})
    finale("reconcile", "cup", "one").refused(4, f"'p9' in {key} has a score that is none of the board's")


@pytest.mark.parametrize("compare", ["rows", "buckets"])
def test_i4_a_difference_of_more_than_64_bits_is_drift_like_any_other(world: World, compare: str) -> None:
    """I4: points at the ends of a bigint hold the season, with a report that can be read and accepted."""
    sql = "select who as player_id, n as points, null::timestamptz as reached_at from game"
    world.configure(
        f'[board.cup]\nties = "shared"\ncalendar = {{ seasons = [{OVER}] }}\n'
        f'ledger = {{ sql = "{sql}" }}\nreconcile = {{ compare = "{compare}" }}\n'
    )
    world.sql("create table game (who text, n bigint)")
    world.sql("insert into game values ('ann', -9223372036854775808), ('bob', 9223372036854775807), ('cid', 3)")
    world.redis.zadd(KEY, {"ann": 5, "bob": -7, "cid": 3})
    finale("close", "cup", "one", "--as", "ana").refused(
        22, "differ in 2 players", "ann: Redis 5, ledger -92233720368547758"
    )
    (path,) = (world.store / "reports/cup/one").glob("drift-*.parquet")
    told = {row["player_id"]: row["difference"] for row in pq.read_table(path).to_pylist()}
    assert told == {b"ann": None, b"bob": None}
    (report,) = (world.store / "reports/cup/one").glob("drift-*.json")
    finale("season", "release", "cup", "one", "--accept-drift", report.name, "--because", "x", "--as", "ana").ok()
    finale("close", "cup", "one").ok()


def test_wrong_sql_of_a_ledger_is_cured_by_correcting_it(world: World) -> None:
    """I4: a hold for bad SQL is no dead end: each correction in the configuration counts; the seal has the last."""

    def configure(sql: str) -> None:
        ledger = f'ledger = {{ sql = "{sql}" }}'
        world.configure(f'[board.cup]\nties = "shared"\ncalendar = {{ seasons = [{OVER}] }}\n{ledger}\n')

    world.sql("create table game (who text, n bigint)")
    world.sql("insert into game values ('ann', 5), ('bob', 7)")
    world.redis.zadd(KEY, {"ann": 5, "bob": 7})
    rest = "null::timestamptz as reached_at from game"
    wrong = {
        f"select whom as player_id, n as points, {rest}": "is refused by PostgreSQL",
        f"select who as player_id, n::float8 as points, {rest}": "points as float8",
        f"select who as player_id, nullif(n, 7) as points, {rest}": "player bob a points that is null",
        f"select who as player_id, n as points, {rest}, generate_series(1, 2)": "more than once",
        f"select who as player_id, n + 1 as points, {rest}": "differ in 2 players",
    }
    for number, (sql, said) in enumerate(wrong.items()):
        configure(sql)
        if number:
            finale("season", "release", "cup", "one", "--as", "ana").ok()
        finale("close", "cup", "one", "--as", "ana").refused(22, said)
    right = f"select who as player_id, n as points, {rest}"
    configure(right)
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    configure(next(iter(wrong)))  # after the seal it changes nothing
    seal = json.loads((world.store / "seals/cup/one/standings.json").read_text())
    assert seal["board"]["ledger"]["sql"] == right
    assert finale("reconcile", "cup", "one", "--json").ok().json["equal"] == 2


@pytest.mark.parametrize("compare", ["rows", pytest.param("buckets", marks=pytest.mark.slow)])
def test_a_ledger_that_is_gone_or_too_slow_in_the_middle_pays_nobody(world: World, compare: str) -> None:
    """I4: gone amid its rows is exit code 10 and tried again; too slow is a hold; each next try starts clean."""
    sql = (
        "select who as player_id, n + case when trouble = 'gone' and who = 'zed' then"
        " pg_terminate_backend(pg_backend_pid())::int else 0 end as points, null::timestamptz as reached_at"
        " from game, state, lateral (select case when trouble = 'slow' then pg_sleep(5) end) as s"
    )
    world.configure(
        f'[runner]\nstatement_timeout = "1s"\n[board.cup]\nties = "shared"\ncalendar = {{ seasons = [{OVER}] }}\n'
        f'ledger = {{ sql = "{sql}" }}\nreconcile = {{ compare = "{compare}" }}\n'
    )
    world.sql("create table game (who text, n bigint)")
    world.sql("insert into game values ('ann', 5), ('bob', 7), ('zed', 9)")
    world.sql("create table state as select 'gone' as trouble")
    world.redis.zadd(KEY, {"ann": 5, "bob": 7, "zed": 9})

    def nothing_came_of_it() -> None:
        assert world.files("seals") == [] and world.sql("select count(*) from finale.grants") == [(0,)]
        left = "select count(*) from pg_stat_activity where query like %s and state <> 'idle'"
        assert world.sql(left, "%trouble = 'gone'%") == [(0,)]

    finale("close", "cup", "one", "--as", "ana").refused(10, "PostgreSQL at")
    nothing_came_of_it()
    world.sql("update state set trouble = 'slow'")
    finale("close", "cup", "one").refused(22, "did not finish within 1 seconds", "statement_timeout")
    nothing_came_of_it()
    world.sql("update state set trouble = 'none'")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert finale("reconcile", "cup", "one", "--json").ok().json["equal"] == 3


@pytest.mark.parametrize(("aggregate", "order"), [("sum", "high"), ("best", "low"), ("last", "low")])
def test_deep_repair_mends_totals_before_the_freeze(world: World, aggregate: str, order: str) -> None:
    """Of a season that is played: totals are what the results make again, Redis follows, and the journal has it."""
    play(world, f'aggregate = "{aggregate}"\norder = "{order}"')
    right = world.redis.zrange(KEY, 0, -1, withscores=True)
    world.sql("update finale.player_total set points = 900 where player_id in ('p030', 'p031')")
    world.sql("delete from finale.player_total where player_id = 'p040'")
    world.redis.zadd(KEY, {"p030": 900, "p050": 7})
    finale("reconcile", "cup", "one", "--deep").refused(18, "3 totals", "p030: total 900", "--deep --repair")
    finale("reconcile", "cup", "one", "--deep", "--repair").refused(4, "needs the name")
    finale("reconcile", "cup", "one", "--deep", "--repair", "--player", "p030", "--as", "ana").refused(4, "--player")
    words = ("reconcile", "cup", "one", "--deep", "--repair", "--because", "a bad update", "--as", "ana", "--json")
    done = finale(*words).ok().json
    assert (done["mended_totals"], done["repaired"]) == (3, 1)
    assert world.redis.zrange(KEY, 0, -1, withscores=True) == right
    assert finale("reconcile", "cup", "one", "--deep", "--json").ok().json["broken_totals"] == 0
    (event,) = [entry for entry in world.journal("cup", "one") if entry[0] == "totals mended"]
    assert event[1] == "ana" and event[2]["totals"] == 3 and event[2]["because"] == "a bad update"
    assert finale(*words).ok().json["mended_totals"] == 0


def test_i4_deep_repair_lets_a_season_held_for_broken_totals_close(world: World) -> None:
    """I4: held for a total that vouched for itself; mended by the command that the hold names, released, sealed."""
    play(world, "reconcile = { deep = true, repair = 0 }", over=True)
    finale("close", "cup", "one", "--until", "freeze").ok()
    world.sql("update finale.player_total set points = 900 where player_id = 'p030'")
    world.redis.zadd(KEY, {"p030": 900})
    finale("close", "cup", "one").refused(22, "p030: total 900, results 60", "finale reconcile cup one --deep --repair")
    finale("reconcile", "cup", "one", "--deep", "--repair", "--as", "ana").ok()
    assert world.redis.zscore(KEY, "p030") == 60
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    finale("reconcile", "cup", "one", "--deep", "--repair", "--as", "ana").refused(23, "as it was sealed")


def test_deep_refuses_a_season_whose_results_were_pruned(world: World) -> None:
    """Its results are in the archive: told so, instead of every total being called broken."""
    play(world, 'keep_live = "0s"', over=True)
    finale("close", "cup", "one").ok()
    finale("ledger", "prune", "--as", "op").ok()
    finale("reconcile", "cup", "one", "--deep").refused(23, "were pruned from the ledger", "without --deep")
    finale("reconcile", "cup", "one").ok()
