"""docs/adopt.md, literally: its files are written, its commands run, in the order of the page."""

from __future__ import annotations

import re
import shlex

import psycopg
import pytest

from tests.support.cli import REPOSITORY, World, finale

PAGE = (REPOSITORY / "docs/adopt.md").read_text("utf-8")
BLOCK = re.compile(r"^```(toml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s{2,}#.*$")


def commands(block: str) -> list[list[str]]:
    """Return the command lines of a console block, without the answers and the remarks at their ends."""
    lines = [COMMENT.sub("", line[2:]) for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line) for line in lines]


def test_the_page_does_what_it_says(world: World, monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    """A board that exists becomes an archive; with and without a ledger of one's own, a season is paid and cleaned.

    Only the addresses of the servers differ: the environment wins over the file.
    """
    with psycopg.connect(postgres_url, autocommit=True) as game:
        game.execute("create table arena_results (user_id text, points bigint, finished_at timestamptz)")
        game.execute(
            "insert into arena_results select 'p' || n % 40, n, '2025-01-10T00:00:00Z' from generate_series(1, 400) n"
        )
        totals = game.execute("select user_id, sum(points)::int from arena_results group by user_id").fetchall()
    monkeypatch.setenv("GAME_POSTGRES", postgres_url)
    world.redis.zadd("lb:2025-01", {"alice": 70, **{f"p{n}": n for n in range(60)}})
    world.redis.zadd("ladder:2025-01", {f"p{n}": n for n in range(30)})
    world.redis.zadd("arena:2025-01", dict(totals))
    ran = []
    for kind, text in BLOCK.findall(PAGE):
        if kind == "toml":
            named = re.match(r"# (\S+\.toml)\n", text)
            with (world.folder / (named[1] if named else "finale.toml")).open("a") as file:
                file.write(text)
            continue
        for program, *arguments in commands(text):
            assert program == "finale"
            finale(*arguments).ok()
            ran.append(arguments[0])
    assert {"db", "archive", "standings", "doctor", "close", "rewards", "clean"} <= set(ran)
    finale("tick", "--as", "cron").ok()  # the page's line for cron
    assert world.sql("select season from finale.season where board = 'goals'") == [("s2025m01",)]
    finale("close", "goals", "s2025m02").refused(5, "opens = false", "finale archive adopt KEY --board goals")
    paid = world.sql("select board, count(*), sum(amount) filter (where item = 'gems') from finale.payable group by 1")
    assert sorted((board, rows, int(gems)) for board, rows, gems in paid) == [
        ("arena", 41, 39 * 10 + 500),
        ("ladder", 31, 29 * 10 + 500),
    ]
    assert world.state("arena", "s2025m01") == "cleaned"
    assert world.redis.zcard("lb:2025-01") == 61  # adopted, and not touched
    assert not world.redis.exists("arena:2025-01")
    seal = finale("archive", "show", "arena", "s2025m01", "--json").ok().json
    told = seal["reconcile"]
    assert (told["ledger"], told["equal"], told["drift"], told["ledger_points"]) == ("outside", 40, 0, 80_200)
