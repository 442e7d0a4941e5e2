"""finale rewards correct: the difference, sealed and delivered; nothing that stood is changed (I2, I5, I10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import World, differing, finale
from tests.support.receivers import SECRET, receiver

TABLE = """
version = 1
[[rule]]
name = "first"
rank = "1"
grant = { "title.first" = 1, gems = 500 }
[[rule]]
name = "top three"
rank = "2-3"
grant = { gems = 100 }
[[rule]]
name = "all"
all = true
grant = { gems = 10 }
"""
BETTER = TABLE.replace("gems = 100", "gems = 150")
BOARD = """
[board.cup]
rewards = "cup.toml"
keep_live = "0s"
calendar = { seasons = [{ id = "s1", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
CORRECT = ("rewards", "correct", "cup", "s1", "--as", "ana", "--because", "ticket 7")


@pytest.fixture
def closed(world: World) -> World:
    """A season of six players that was closed, paid by table and cleaned."""
    world.configure(BOARD, cup=TABLE)
    world.played("cup", *(f"m{n},{name},{n * 10},2026-01-05T10:0{n}:00Z" for n, name in enumerate("fedcba")))
    finale("close", "cup", "s1", "--as", "ops").ok()
    return world


def net(world: World) -> dict[tuple[str, str], int]:
    """Return what each player has got of each item, of those that did not come to nothing, as the game reads it."""
    rows = world.sql(
        "select convert_from(player_id, 'UTF8'), item, sum(amount)::int from finale.payable group by 1, 2 order by 1, 2"
    )
    return {(player, item): amount for player, item, amount in rows if amount}


def of_archive(world: World) -> dict[tuple[str, str], int]:
    rows = finale("archive", "sql", "select player_id, item, amount from grants_net", "--json").ok().json
    return {(row["player_id"], row["item"]): row["amount"] for row in rows}


def paid(order: str, *, top: int = 100) -> dict[tuple[str, str], int]:
    """Return what is right if players stand in this order."""
    found = {(order[0], "title.first"): 1, (order[0], "gems"): 500}
    found |= {(player, "gems"): top for player in order[1:3]}
    return found | {(player, "gems"): 10 for player in order[3:]}


def test_an_excluded_player_gives_back_and_the_others_move_up(closed: World) -> None:
    """I5: everything together is what the table says without him; the preview says the same and changes nothing."""
    assert net(closed) == paid("abcdef")
    before = closed.picture()
    told = finale(*CORRECT, "--exclude", "a", "--preview", "--json").ok().json
    assert differing(before, closed.picture()) == []
    assert (told["number"], told["issued"], told["players"]) == (1, False, 3)
    assert told["taken"] == {"gems": 610, "title.first": 1} and told["given"] == {"gems": 600, "title.first": 1}
    done = finale(*CORRECT, "--exclude", "a", "--json").ok().json
    assert done["issued"] and {name: done[name] for name in told} == {**told, "issued": True}
    assert net(closed) == of_archive(closed) == paid("bcdef")
    changed = [name for name in differing(before, closed.picture()) if name.startswith("file ")]
    assert all("correction" in name or "/facts/" in name or "file facts/" in name for name in changed), changed
    assert closed.sql("select count(*) from finale.grants") == [(8 - 1,)]
    [(who, detail)] = [(who, detail) for event, who, detail in closed.journal("cup", "s1") if event == "corrected"]
    assert who == "ana" and detail["because"] == "ticket 7"
    finale("archive", "verify", "--all").ok()


def test_corrections_are_numbered_and_chained_and_hold_on(closed: World) -> None:
    """Exclusions stay when a later correction brings another table; each seal is the next in the chain."""
    finale(*CORRECT, "--exclude", "a").ok()
    (closed.folder / "better.toml").write_text(BETTER)
    told = finale(*CORRECT, "--table", str(closed.folder / "better.toml"), "--json").ok().json
    assert (told["number"], told["sums"]) == (2, {"gems": 100})
    assert net(closed) == of_archive(closed) == paid("bcdef", top=150)
    finale(*CORRECT, "--exclude", "c").ok()
    assert net(closed) == of_archive(closed) == paid("bdef", top=150)
    seals = [json.loads(path.read_text()) for path in sorted((closed.store / "seals/cup/s1").glob("correction-*.json"))]
    assert [(seal["number"], seal["chain"]["number"]) for seal in seals] == [(1, 3), (2, 4), (3, 5)]
    assert closed.sql("select correction, mode, delivered_at is not null from finale.delivery order by 1") == [
        (number, "table", True) for number in range(4)
    ]
    shown = finale("archive", "show", "cup", "s1", "--kind", "correction-0002").ok().out
    assert "ticket 7" in shown and "+100 gems" in shown
    finale("archive", "verify", "--all").ok()


def test_repeated_it_finds_nothing_to_do(closed: World) -> None:
    """I8: the same once more is no second correction."""
    finale(*CORRECT, "--exclude", "a").ok()
    before = closed.picture()
    assert "nothing differs" in finale(*CORRECT, "--exclude", "a").ok().out
    assert differing(before, closed.picture()) == []


@pytest.mark.parametrize(
    ("match", "order"), [("m5", "bcdef"), ("m3", "abdef")], ids=["the first falls off", "one in the middle falls off"]
)
def test_a_voided_match_is_undone(closed: World, match: str, order: str) -> None:
    """Points after the freeze are those without the match; who has none left is off the board; the rest close up."""
    finale("results", "void", match, "--source", "cup", "--because", "cheated", "--as", "ana").ok()
    finale(*CORRECT, "--voided").ok()
    assert net(closed) == of_archive(closed) == paid(order)
    assert "nothing differs" in finale(*CORRECT, "--voided").ok().out
    finale(*CORRECT, "--exclude", order[0]).ok()
    assert net(closed) == paid(order[1:])


@pytest.mark.parametrize("ties", ["shared", "member", "first_to_reach"])
@pytest.mark.parametrize("order", ["high", "low"])
def test_voided_matches_move_players_to_places_before_others(world: World, ties: str, order: str) -> None:
    """I5: each keeps points but passes players who stay; what the preview tells is what comes to pass."""
    world.configure(f'{BOARD}order = "{order}"\nties = "{ties}"\n', cup=TABLE)
    won = {"a": (30, 30), "b": (25, 25), "c": (40,), "d": (31,), "e": (1, 20), "f": (10,)}
    rows = [f"{name}{n},{name},{points}" for name, each in won.items() for n, points in enumerate(each)]
    world.played("cup", *(f"{row},2026-01-05T10:00:00Z" for row in rows))
    finale("close", "cup", "s1", "--as", "ops").ok()
    assert net(world) == paid("abcdef"[:: 1 if order == "high" else -1])
    for match in ("a1", "b1", "e1"):
        finale("results", "void", match, "--source", "cup", "--because", "cheated", "--as", "ana").ok()
    told = finale(*CORRECT, "--voided", "--preview", "--json").ok().json
    done = finale(*CORRECT, "--voided", "--json").ok().json
    assert {name: done[name] for name in told} == {**told, "issued": True}
    assert net(world) == of_archive(world) == paid("cdabfe"[:: 1 if order == "high" else -1])
    finale("archive", "verify", "--all").ok()


def test_players_come_from_files(closed: World) -> None:
    """A .csv with player_id, or a .txt with one a line; who is not on the board is told."""
    (closed.folder / "cheaters.csv").write_text("reason,player_id\nx,a\ny,nobody\n")
    (closed.folder / "more.txt").write_text("b\n\n")
    files = [closed.folder / name for name in ("cheaters.csv", "more.txt")]
    told = finale(*CORRECT, *(word for file in files for word in ("--exclude", str(file))), "--json").ok().json
    assert told["not_on_board"] == ["nobody"]
    assert net(closed) == paid("cdef")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 4, "say what is to be put right"),
        (("--exclude", "nobody"), 5, "none of the players to exclude is on the board"),
        (("--exclude", "a", "--exclude", "\udcff"), 4, "no UTF-8 text: b'\\xff'"),
        (("--exclude", "missing.csv"), 4, "missing.csv cannot be read"),
        (("--voided",), 23, "was voided after its freeze"),
        (("--table", "missing.toml"), 4, "missing.toml cannot be read"),
    ],
)
def test_what_cannot_be_corrected_is_told(closed: World, words: tuple[str, ...], code: int, said: str) -> None:
    """Nothing is changed by a request that cannot be meant."""
    before = closed.picture()
    finale(*CORRECT, *words).refused(code, said)
    assert differing(before, closed.picture()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('player_id,reason\na,"cheater\nb,bot\nc,bot\n', "line 2 cannot be read: unexpected end of data"),
        ("reason,player_id\na\nbot,c\n", "line 2: 1 cells where the header names 2"),
        ("player_id,reason\na,bot\n,bot\n", "line 3: player_id is empty"),
    ],
)
def test_a_file_of_players_is_taken_whole_or_not_at_all(closed: World, text: str, said: str) -> None:
    """A row that a quote hides, or that has no id, is never passed over: the file is refused with the line."""
    (closed.folder / "q.csv").write_text(text)
    finale(*CORRECT, "--exclude", str(closed.folder / "q.csv"), "--preview").refused(4, "q.csv", said)


def test_nothing_to_correct_before_anything_was_granted(world: World) -> None:
    """A season that is not rewarded yet has another remedy: its table and exclusions."""
    world.configure(BOARD, cup=TABLE)
    world.played("cup", "m1,a,1,2026-01-05T10:00:00Z")
    finale(*CORRECT, "--exclude", "a").refused(23, "there is nothing to correct")


def test_i5_corrections_go_the_way_of_the_grants(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I5: by webhook, with the id of what they correct; a grant that is a dead letter is told, and retried first."""
    monkeypatch.setenv("GAME_SECRET", SECRET)
    with receiver(tmp_path, items=frozenset({"gems"})) as found:
        deliver = f'deliver = {{ to = "webhook", url = "{found.url}", secret_env = "GAME_SECRET", backoff = "1ms" }}\n'
        world.configure(BOARD.replace("[board.cup]\n", f"[board.cup]\n{deliver}"), cup=TABLE)
        world.played("cup", *(f"m{n},{name},{n * 10},2026-01-05T10:0{n}:00Z" for n, name in enumerate("fedcba")))
        finale("close", "cup", "s1", "--as", "ops").ok()
        found.script.append("lost")
        done = finale(*CORRECT, "--exclude", "a")
        assert "1 of the grants that it changes are dead letters" in done.ok().err
        found.wallet._items = None
        finale("rewards", "retry", "cup", "s1", "--as", "ana").ok()
        assert {key: amount for key, amount in found.balances().items() if amount} == paid("bcdef")
        corrected = [json.loads(one["body"]) for one in found.requests if b'"correction":1' in one["body"]]
        granted = {row[0] for row in world.sql("select grant_id::text from finale.grants")}
        assert {one["corrects"] for body in corrected for one in body["grants"]} - granted
        told = finale("rewards", "status", "cup", "s1", "--json").ok().json["deliveries"]
        assert [(one["what"], one["dead"], one["waiting"]) for one in told] == [
            ("grants", 0, 0),
            ("correction 1", 0, 0),
        ]


def test_another_table_may_ask_for_other_facts(closed: World) -> None:
    """They are looked up now and sealed; players excluded by earlier corrections stay out; the audit agrees."""
    finale(*CORRECT, "--exclude", "a").ok()
    (closed.folder / "banned.csv").write_text("player_id,reason\nd,bought points\n")
    (closed.folder / "strict.toml").write_text(
        TABLE.replace("version = 1", 'version = 1\nexclude = [{ file = "banned.csv" }]')
    )
    finale(*CORRECT, "--table", str(closed.folder / "strict.toml")).ok()
    assert net(closed) == of_archive(closed) == paid("bcef")
    (closed.folder / "plain.toml").write_text(TABLE)
    finale(*CORRECT, "--table", str(closed.folder / "plain.toml")).ok()
    assert net(closed) == of_archive(closed) == paid("bcdef")
    told = finale("audit", closed.store.as_uri(), "cup", "s1", "--json").ok().json
    assert told["ok"] and told["last"]["number"] == 5


def test_ids_that_are_bytes(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a binary board ids are hex wherever a person or a receiver meets them, through all of it."""
    monkeypatch.setenv("GAME_SECRET", SECRET)
    with receiver(tmp_path) as found:
        deliver = (
            f'member = "binary"\ndeliver = {{ to = "webhook", url = "{found.url}", secret_env = "GAME_SECRET" }}\n'
        )
        config = BOARD.replace("[board.cup]\n", f'[board.cup]\nledger = "none"\nties = "shared"\n{deliver}')
        world.configure(config, cup=TABLE)
        world.redis.zadd("leaderboard:cup:s1", {bytes([255, number]): number for number in range(1, 7)})
        finale("close", "cup", "s1", "--as", "ops").ok()
        finale(*CORRECT, "--exclude", "ff06").ok()
        assert found.balances()["ff05", "title.first"] == 1 and found.balances()["ff06", "title.first"] == 0
        page = finale("why", "cup", "s1", "ff04").ok().out
        assert "ff04 in cup/s1" in page and "Just above: ff05" in page and "1 more points" in page
        finale("audit", world.store.as_uri(), "cup", "s1").ok()
        finale(*CORRECT, "--exclude", "zz").refused(4, "is not hex")
