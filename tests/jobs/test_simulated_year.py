"""I5, I7, I8, C54 to C56: a simulated year: every season is closed once, in order, on its bounds, whatever breaks."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

import psycopg
import pytest

from config.load import load
from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from jobs.wiring import outside
from leaderboard.calendar import seasons_from
from leaderboard.states import Step
from tests.harness.plan import Call, Plan
from tests.harness.run import Harness
from tests.support.proxy import Mode, proxied
from tests.support.schedulers import scheduler
from tests.support.servers import Databases
from tests.support.simulation import Year, begin, environ, play, set_clock

STARTS = datetime(2026, 3, 2, 0, 0, 30, tzinfo=UTC)
ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Africa/Cairo", "Asia/Kolkata",
    "Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Auckland", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Kiritimati",
)  # fmt: skip  # a row a line
PERIODS = ("week", "month", "quarter", "year", "month")
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
#: Calls at which a tick is killed, before or after: of each step, and between them.
CALLS = (
    ("between", "redis", "EVAL a script"),
    ("open", "postgres", "COMMIT"),
    ("freeze", "postgres", "COMMIT"),
    ("snapshot", "redis", "EXEC"),
    ("seal", "postgres", "COMMIT"),
    ("reward", "postgres", "COMMIT"),
    ("deliver", "postgres", "COMMIT"),
    ("clean", "redis", "EXEC"),
    ("clean", "postgres", "COMMIT"),
)
#: How late a step may come: the wake-up and the last try of a step that failed a few times.
LATE = timedelta(minutes=15)


def configuration(boards: int) -> str:
    """Return boards over all zones and periods; some with a ledger, some with a grace and a retention."""
    found = [
        '[runner]\nmax_skew = "36000d"\ninterval = "1h"\nworkers = 2\npage_budget = "1s"\nredis_timeout = "1s"\n'
        'statement_timeout = "1s"\npostgres_connect_timeout = "1s"\n'
    ]
    for number in range(boards):
        own = number % 4 == 1
        every, zone = PERIODS[number % len(PERIODS)], ZONES[number % len(ZONES)]
        found.append(
            f'[board.b{number:02}]\nledger = "{"own" if own else "none"}"\nties = "shared"\nahead = 2\n'
            f'grace = "{"1h" if number % 3 else "0s"}"\nkeep_live = "{"1d" if number % 5 == 2 else "0s"}"\n'
            f'rewards = "all.toml"\ncalendar = {{ every = "{every}", timezone = "{zone}" }}\n'
            + ('reconcile = { every = "1d" }\n' if own else "")
        )
    return "\n".join(found)


def kills() -> list[Plan]:
    return [
        Plan(Call(step, kind, text, 1), "kill", done)  # type: ignore[arg-type]  # the kinds that the harness knows
        for step, kind, text in CALLS
        for done in (False, True)
    ]


@pytest.mark.parametrize(
    ("boards", "days", "crashing", "failing", "faults"),
    [
        pytest.param(11, 22, 0.3, 0.2, ("refuse", "cut"), id="three-weeks"),
        # A server that hangs takes a timeout's time, so it is the rarest.
        pytest.param(
            *(50, 365, 0.1, 0.05, (*("refuse", "cut") * 2, "hang")),
            id="a-year",
            marks=[pytest.mark.slow, pytest.mark.timeout(3_600)],
        ),
    ],
)
def test_i5_i7_i8_every_season_once_in_order_on_its_bounds(
    shared_redis: RedisServer,
    shared_postgres: PostgresServer,
    migrated_template: str,
    private_dir: Path,
    redis_url: str,
    boards: int,
    days: int,
    crashing: float,
    failing: float,
    faults: Sequence[Mode],
) -> None:
    """I5, I7, I8: two daemons, random kills and outages of both servers; the clock jumps from bound to bound."""
    (private_dir / "finale.toml").write_text(configuration(boards))
    (private_dir / "all.toml").write_text(TABLE)
    ends = STARTS + timedelta(days=days)
    chance = random.Random(2026)
    with ExitStack() as stack:
        ledger = stack.enter_context(Databases(shared_postgres).fresh(migrated_template))
        begin(ledger, STARTS)
        proxies = {
            "redis": stack.enter_context(proxied(shared_redis.socket)),
            "postgres": stack.enter_context(proxied(shared_postgres.socket)),
        }
        through = environ(
            private_dir,
            f"redis://127.0.0.1:{proxies['redis'].port}",
            f"postgresql://finale@127.0.0.1:{proxies['postgres'].port}/{ledger.rpartition('@/')[2].partition('?')[0]}",
        )
        settings = load(private_dir / "finale.toml", through)
        undisturbed = environ(private_dir, redis_url, ledger)
        direct = stack.enter_context(outside(load(private_dir / "finale.toml", undisturbed), undisturbed))
        harness = stack.enter_context(Harness.start())
        year = Year(
            private_dir,
            through,
            direct,
            proxies,
            harness,
            chance,
            [stack.enter_context(scheduler(stack.enter_context(outside(settings, through)))) for _ in range(2)],
            crashing,
            failing,
            faults,
            kills(),
        )
        now = STARTS
        while now < ends:
            year.round()
            _play(year, now)
            now = year.following(now) + timedelta(seconds=chance.randint(0, 5))
            set_clock(ledger, now)
        assert year.outages and year.crashes
        _check(private_dir, ledger, list(settings.boards), through, ends)


def _play(year: Year, now: datetime) -> None:
    """Let players score once in each season that is open and has not ended, with a ledger or without."""
    rows = year.direct.database.run(
        b"select board, season, live_key, definition ->> 'ledger' as ledger from finale.season"
        b" where state = 'open' and ends_at > %(now)s",
        {"now": now},
    )
    matches = {}
    for row in rows:
        name = (row["board"], row["season"])
        if name in year.played:
            continue
        if row["ledger"] == "own":
            matches[row["board"]] = row["season"]
        else:
            play(year.direct.redis, row["live_key"], year.chance)
            year.played.add(name)
    if matches:
        year.play_matches(matches, now)


def _check(folder: Path, ledger: str, names: Sequence[str], through: dict[str, str], ends: datetime) -> None:
    settings = load(folder / "finale.toml", through)
    with psycopg.connect(ledger, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        for name in names:
            board = settings.boards[name]
            expected = [
                one
                for one in takewhile(lambda one: one.starts_at < ends, seasons_from(board.calendar, STARTS))
                if one.ends_at + board.grace + board.keep_live + LATE < ends
            ]
            _check_board(connection, name, [(one.id, one.starts_at, one.ends_at) for one in expected])
            seals = sorted((folder / "store" / "seals" / name).glob("*/standings.json"))
            assert {path.parent.name for path in seals} >= {one.id for one in expected}
            chain = sorted((json.loads(path.read_text())["chain"]["number"], path.parent.name) for path in seals)
            assert [season for _, season in chain] == [path.parent.name for path in seals]
        _check_totals(connection, folder)
        doubled = connection.execute(
            "select 1 from finale.payable group by board, season, player_id, item having count(*) > 1"
        ).fetchall()
        assert doubled == []


def _check_totals(connection: psycopg.Connection, folder: Path) -> None:
    """Each result has counted: what is sealed is what the ledger has, row by row; every player is paid once."""
    rows = connection.execute(
        "select board, season, count(t.player_id), coalesce(sum(t.points), 0) from finale.season s"
        " left join finale.player_total t using (season_id) where sealed_at is not null"
        " and definition ->> 'ledger' = 'own' group by board, season"
    ).fetchall()
    assert sum(players for *_, players, _ in rows) > 0
    for board, season, players, points in rows:
        found = json.loads((folder / "store" / "seals" / board / season / "standings.json").read_text())
        assert (found["rows"], int(found["points_sum"])) == (players, points), (board, season)
    unpaid = connection.execute(
        "select board, season, player_id from finale.season s join finale.player_total t using (season_id)"
        " where s.state in ('delivered', 'cleaned') except select board, season, player_id from finale.payable"
    ).fetchall()
    assert unpaid == []


def _check_board(connection: psycopg.Connection, name: str, expected: Sequence[tuple[str, datetime, datetime]]) -> None:
    """Each season that is over is cleaned, on its bounds, by each step once, the older ones first."""
    rows = connection.execute(
        "select season, starts_at, ends_at, state, closes_at, hold_reason from finale.season where board = %s"
        " order by starts_at",
        (name,),
    ).fetchall()
    stored = {row[0]: row for row in rows}
    for season, starts_at, ends_at in expected:
        assert stored[season][1:3] == (starts_at, ends_at)
        assert stored[season][3] == "cleaned", stored[season]
    taken = connection.execute(
        "select s.season, j.step, j.at from finale.journal j join finale.season s using (season_id)"
        " where s.board = %s and j.event = 'done' order by journal_id",
        (name,),
    ).fetchall()
    sealed = [season for season, step, _ in taken if step == Step.SEAL]
    assert sealed == sorted(sealed) and len(sealed) == len(set(sealed))
    for season, _, ends_at in expected:
        at = {step: when for one, step, when in taken if one == season}
        assert [step for one, step, _ in taken if one == season] == list(Step)
        assert ends_at <= at[Step.CLOSE] <= ends_at + LATE
        assert stored[season][4] <= at[Step.FREEZE] <= stored[season][4] + LATE
