"""Delivery as an operator and a game see it: each grant once at the receiver, none missing, whatever that does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import World, finale
from tests.support.receivers import SECRET, Receiver, receiver

PLAYERS = 40
TABLE = """
version = 1
[[rule]]
name = "first"
rank = "1"
grant = { "title.first" = 1, gems = 500 }
[[rule]]
name = "all"
all = true
grant = { gems = 10 }
"""
BOARD = """
[board.cup]
rewards = "cup.toml"
keep_live = "0s"
calendar = {{ seasons = [{{ id = "s1", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }}] }}
deliver = {{ {deliver} }}
"""
CLOSE = ("close", "cup", "s1", "--as", "ops")
STATUS = ("rewards", "status", "cup", "s1")
QUICK = 'batch = 10, rate = "1000000/s", backoff = "1ms"'


def played(world: World, deliver: str, board: str = BOARD) -> None:
    """Configure the board with a delivery, and let its season be played."""
    world.configure(board.format(deliver=deliver), cup=TABLE)
    world.played("cup", *(f"m{n},player {n:02},{n},2026-01-05T10:00:00Z" for n in range(PLAYERS)))


def webhook(found: Receiver, more: str = QUICK) -> str:
    return f'to = "webhook", url = "{found.url}", secret_env = "GAME_SECRET", {more}'


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAME_SECRET", SECRET)


@pytest.fixture
def paid(world: World, tmp_path: Path) -> Iterator[Receiver]:
    """A receiver that does as it should, unless its script is given words."""
    with receiver(tmp_path) as found:
        yield found


def granted(world: World) -> list[str]:
    return [str(row[0]) for row in world.sql("select grant_id::text from finale.grants order by 1")]


def all_arrived(world: World, found: Receiver) -> None:
    """Every grant is at the receiver once, with its amount, and Finale knows."""
    assert found.ids == granted(world)
    assert len(found.ids) == PLAYERS + 1
    balances = found.balances()
    assert balances["player 39", "gems"] == 500 and balances["player 39", "title.first"] == 1
    assert sum(amount for (_, item), amount in balances.items() if item == "gems") == 500 + 10 * (PLAYERS - 1)
    [told] = finale(*STATUS, "--json").ok().json["deliveries"]
    assert (told["acknowledged"], told["waiting"], told["sending"], told["dead"]) == (PLAYERS + 1, 0, 0, 0)
    assert told["delivered_at"] is not None


def test_i5_a_webhook_gets_every_grant_once(world: World, paid: Receiver) -> None:
    """I5: in batches, signed, each with a key; the season goes on to cleaned, and nothing is in the table."""
    played(world, webhook(paid))
    run = finale(*CLOSE).ok()
    assert "41 grants acknowledged by webhook, 0 dead letters" in run.out
    all_arrived(world, paid)
    assert [len(json.loads(one["body"])["grants"]) for one in paid.requests] == [10, 10, 10, 10, 1]
    assert len({one["headers"]["idempotency-key"] for one in paid.requests}) == 5
    assert world.state("cup", "s1") == "cleaned"
    assert world.sql("select * from finale.payable") == []


@pytest.mark.parametrize(
    "script",
    [
        ["lost", "lost"],
        ["half", "half", "half"],
        ["500", "503", "404"],
        ["429 0", "429 Tue, 01 Dec 2020 00:01:00 GMT"],
        ["redirect"],
        ["garbage", "nothing", "list"],
        ["huge", "twice", "twice"],
    ],
    ids=lambda script: " ".join(script)[:20],
)
def test_i5_c78_bad_receivers_get_each_grant_once(world: World, paid: Receiver, script: list[str]) -> None:
    """I5, C78: it stores and then fails, or fails before: sent again under the same ids, paid once, none missing."""
    played(world, webhook(paid))
    paid.script.extend(script)
    finale(*CLOSE).ok()
    all_arrived(world, paid)
    assert len(paid.requests) > 5 + (script != ["huge", "twice", "twice"]) - 1


def test_i5_a_receiver_that_answers_after_the_timeout(world: World, paid: Receiver) -> None:
    """I5: it has paid the batch; the answer comes too late; the same batch comes again and pays nothing."""
    played(world, webhook(paid, f'{QUICK}, timeout = "250ms"'))
    paid.script.append("late")
    finale(*CLOSE).ok()
    all_arrived(world, paid)
    keys = [one["headers"]["idempotency-key"] for one in paid.requests]
    assert len(keys) == 6 and len(set(keys)) == 5


def test_dead_letters_do_not_block_cleaning_and_are_retried(world: World, tmp_path: Path) -> None:
    """An item that the game does not know: dead at once, told with its reason; sent again when somebody says so."""
    with receiver(tmp_path, items=frozenset({"gems"})) as found:
        played(world, webhook(found))
        run = finale(*CLOSE)
        assert run.ok() and "1 grant was not taken" in run.err
        assert world.state("cup", "s1") == "cleaned"
        told = finale(*STATUS, "--json").ok().json
        [letter] = told["dead_letters"]
        assert letter["reason"] == "refused: no item title.first here" and letter["player_id"] == "player 39"
        assert "title.first" in finale(*STATUS).ok().out
        finale("rewards", "retry", "cup", "s1").refused(4, "--as NAME")
        again = finale("rewards", "retry", "cup", "s1", "--as", "ana", "--json").ok().json
        assert again["revived"] == 1 and again["deliveries"][0]["dead"] == 1
        found.wallet._items = None
        assert "grants: 41 acknowledged" in finale("rewards", "retry", "cup", "s1", "--as", "ana").ok().out
        all_arrived(world, found)
    assert [who for event, who, _ in world.journal("cup", "s1") if event == "delivery retried"] == ["ana", "ana"]


def test_a_receiver_that_is_down_is_waited_for_by_later_runs(world: World, paid: Receiver) -> None:
    """C81: the season stays rewarded, says when the next try is, and is not cleaned; a tick after that goes on."""
    played(world, webhook(paid, 'batch = 10, rate = "1000000/s", backoff = "10m"'))
    paid.script.append("503")
    finale(*CLOSE).refused(6, "41 grants wait", "the next try is due at 20", "finale rewards retry cup s1")
    assert world.state("cup", "s1") == "rewarded"
    assert world.redis.exists("leaderboard:cup:s1")
    told = finale(*STATUS).ok()
    assert "left alone until" in told.out and "after 1 failures in a row" in told.out
    finale("tick", "--as", "cron").ok()
    [planned] = finale(*CLOSE, "--dry-run", "--json").ok().json
    assert planned["verdict"] == "wait" and planned["step"] == "deliver"
    assert len(paid.requests) == 1
    assert "back-off until" in finale("rewards", "retry", "cup", "s1", "--as", "ana").ok().out
    finale("tick", "--as", "cron").ok()
    all_arrived(world, paid)
    assert world.state("cup", "s1") == "cleaned"


def test_after_the_last_try_it_is_a_dead_letter(world: World, paid: Receiver) -> None:
    """A batch that a receiver can never take ends as dead letters, in ever smaller batches; the rest arrives."""
    played(world, webhook(paid, f"{QUICK}, tries = 2"))
    paid.script.extend(["500"] * 10)
    finale(*CLOSE).ok()
    told = finale(*STATUS, "--json").ok().json
    assert told["deliveries"][0]["dead"] == 41 and told["failures"] == 0
    assert {one["reason"] for one in told["dead_letters"]} == {"tried 2 times: answered 500"}
    finale("rewards", "retry", "cup", "s1", "--as", "ana").ok()
    all_arrived(world, paid)


def test_a_stream_gets_every_grant_once(world: World) -> None:
    """I5: one entry a grant, in the configured Redis, with all that a consumer needs."""
    played(world, f'to = "stream", key = "grants:<board>", {QUICK}')
    run = finale(*CLOSE).ok()
    assert "41 grants acknowledged by stream" in run.out
    entries = [entry for _, entry in world.redis.xrange("grants:cup")]
    assert sorted(entry[b"grant_id"].decode() for entry in entries) == granted(world)
    [first] = [entry for entry in entries if entry[b"item"] == b"title.first"]
    assert {name.decode(): value.decode() for name, value in first.items() if name != b"grant_id"} == {
        "board": "cup", "season": "s1", "correction": "0", "corrects": "", "player_id": "player 39", "rule": "first",
        "item": "title.first", "amount": "1", "position": "1", "rank": "1",
    }  # fmt: skip  # a row a line
    assert world.state("cup", "s1") == "cleaned"


def test_the_table_is_the_default_and_is_told_the_same_way(world: World) -> None:
    """Readable from one commit on; status counts them as acknowledged."""
    played(world, 'to = "table"')
    finale(*CLOSE).ok()
    assert world.sql("select count(*), sum(correction) from finale.payable") == [(41, 0)]
    [told] = finale(*STATUS, "--json").ok().json["deliveries"]
    assert (told["mode"], told["acknowledged"], told["grants"]) == ("table", 41, 41)
    assert world.sql("select count(*) from finale.outbox") == [(0,)]


def test_secrets_appear_nowhere(world: World, paid: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the secret nor a URL from the environment is in output, log, journal, seal or ledger."""
    token = "s3cr3t-token-in-the-path"
    monkeypatch.setenv("GAME_URL", f"{paid.url}{token}")
    played(world, f'to = "webhook", url_env = "GAME_URL", secret_env = "GAME_SECRET", {QUICK}')
    paid.script.extend(["500", "lost"])
    answers = [
        finale(*CLOSE),
        finale(*STATUS),
        finale("config", "show"),
        finale("season", "show", "cup", "s1", "--json"),
    ]
    assert all(one.code == 0 for one in answers)
    everything = "".join(one.out + one.err for one in answers) + repr(world.picture())
    everything += "".join(path.read_text(errors="replace") for path in world.store.rglob("*") if path.is_file())
    assert SECRET not in everything and token not in everything
    assert "delivery.again" in answers[0].err
    all_arrived(world, paid)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("GAME_SECRET", "", "GAME_SECRET"),
        ("GAME_SECRET", "short", "too short to sign with"),
        ("GAME_URL", "ftp://nowhere", "must be an http:// or https:// URL"),
        ("GAME_URL", "", "GAME_URL"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    """Exit code 3, the season stays where it was, and the value is not shown."""
    monkeypatch.setenv("GAME_URL", "http://127.0.0.1:1/")
    monkeypatch.setenv(variable, value)
    played(world, 'to = "webhook", url_env = "GAME_URL", secret_env = "GAME_SECRET"')
    answer = finale(*CLOSE).refused(3, said)
    assert "ftp://" not in answer.err and world.state("cup", "s1") == "rewarded"


def test_another_target_halfway_is_refused(world: World, paid: Receiver) -> None:
    """What is on its way to a webhook is not also put into the table: some may have arrived."""
    played(world, webhook(paid, 'backoff = "10m", batch = 10'))
    paid.script.extend(["ok", "503"])
    finale(*CLOSE).refused(6)
    world.configure(BOARD.format(deliver='to = "table"'), cup=TABLE)
    finale("rewards", "retry", "cup", "s1", "--as", "ana").refused(3, "on their way by webhook", "deliver.to")
    finale(*CLOSE).refused(3, "on their way by webhook", "deliver.to")
    assert world.sql("select count(*) from finale.payable") == [(0,)]
