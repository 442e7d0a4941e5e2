"""I5, I8: a delivery killed or failing at any outside call: each grant once at the receiver by its id, none missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import psycopg
import pytest

from leaderboard.states import Step
from tests.harness.endstate import EndState
from tests.harness.plan import Call, Deed, Plan
from tests.harness.season import CONFIG, Prepared, World
from tests.jobs.kill.cases import (
    CLOSE,
    FAULTS,
    KILLS,
    Whole,
    every,
    outside_transactions,
    run_again,
    sample,
    sampled,
    undisturbed,
)
from tests.support.receivers import SECRET, Receiver, receiver

LOST = 21
GRANTS = 2_601
STREAM = "grants:cup"


def config(deliver: str) -> str:
    """Return the configuration with a delivery in batches of 600, quick to try again."""
    pace = 'batch = 600, rate = "1000000/s", backoff = "1ms"'
    return CONFIG.replace("[board.cup]", f"[board.cup]\ndeliver = {{ {deliver}, {pace} }}")


@dataclass(frozen=True, kw_only=True)
class Paying(World):
    """A world whose end state has what arrived at its receiver: by that, every run is compared with the first."""

    receiver: Receiver

    def end_state(self) -> EndState:
        end = super().end_state()
        end.ledger["arrived"] = (self.receiver.ids, self.receiver.balances())
        return end


def _reward(world: World) -> None:
    rewarded = world.run(*CLOSE, "--until", "reward")
    assert rewarded.code == 0, rewarded


@pytest.fixture(scope="module")
def by_webhook(season: Prepared) -> Iterator[Whole]:
    """The season closed, its grants taken by a receiver, which each world finds with an empty wallet."""
    # A worker that takes tests of another module in between makes this fixture twice.
    folder = Path(mkdtemp(prefix="receiver-", dir=season.root))
    (folder / "secret").write_text(SECRET)
    with receiver(folder) as found:
        deliver = f'to = "webhook", url = "{found.url}", secret_file = "{folder}/secret"'

        with season.after(_reward, config=config(deliver)) as rewarded:

            @contextmanager
            def worlds() -> Iterator[World]:
                found.forget(folder)
                with rewarded.world() as world:
                    of = (world.harness, world.folder, world.redis_url, world.ledger_url, world.store)
                    yield Paying(*of, receiver=found)

            yield undisturbed(worlds, *CLOSE)


@pytest.fixture(scope="module")
def by_stream(season: Prepared) -> Iterator[Whole]:
    """The season closed, its grants appended to a stream."""
    with season.after(_reward, config=config(f'to = "stream", key = "{STREAM}"')) as rewarded:
        yield undisturbed(rewarded.world, *CLOSE)


def test_all_grants_arrive(by_webhook: Whole, by_stream: Whole) -> None:
    """What the other runs are compared with: every grant acknowledged, the receiver and the stream have each once."""
    granted = sorted(str(row["grant_id"]) for row in by_webhook.end.ledger["grants"])
    arrived, balances = by_webhook.end.ledger["arrived"]
    assert arrived == granted and len(granted) == GRANTS and sum(balances.values()) == 5_001 + 9 * 1_000 + 2_590 * 10
    assert sorted(dict(entry)[b"grant_id"].decode() for entry in by_stream.end.keys[STREAM.encode()]) == granted
    assert [call.text for call in by_webhook.of(Step.DELIVER) if call.kind == "http"] == ["POST"] * 5
    assert by_webhook.end.ledger["outbox"] == [{"state": "acknowledged", "grants": GRANTS}]


def test_i5_i8_killed_anywhere_each_grant_is_paid_once(by_webhook: Whole) -> None:
    """I5, I8, C78: killed before or after a call, run again: what was sent and not settled is sent again, paid once."""
    run_again(by_webhook, sampled(by_webhook.of(Step.DELIVER), KILLS, 2, "webhook"))
    posts = [call for call in by_webhook.of(Step.DELIVER) if call.kind == "http"]
    run_again(by_webhook, [Plan(posts[1], "kill", done=True), Plan(posts[-1], "timeout", done=True)])


@pytest.mark.slow
def test_i5_i8_failing_anywhere_each_grant_is_paid_once(by_webhook: Whole) -> None:
    """I5, I8: a call fails or times out, done or not."""
    run_again(by_webhook, sampled(by_webhook.of(Step.DELIVER), FAULTS[:1] + FAULTS[3:], 1, "webhook"))


@pytest.mark.slow
def test_i5_i8_each_grant_is_in_the_stream_once(by_stream: Whole) -> None:
    """I5, I8: killed or failing, an append that was done or not: what is there is found, what is not is added."""
    run_again(by_stream, sampled(by_stream.of(Step.DELIVER), [*KILLS, ("timeout", True)], 2, "stream"))
    appends = [call for call in by_stream.of(Step.DELIVER) if call.text.startswith("EVALSHA stream")]
    run_again(by_stream, [Plan(appends[1], "kill", done=True), Plan(appends[1], "fail", done=True)])


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i5_i8_every_call_of_a_delivery(by_webhook: Whole, by_stream: Whole, do: Deed, done: bool) -> None:
    """I5, I8: the same, shared out, at every outside call of a delivery, by webhook and by stream."""
    for whole in (by_webhook, by_stream):
        run_again(whole, every(whole.of(Step.DELIVER), do, done))


def _expire(world: World) -> None:
    """Let leases and claims run out, as they do for a runner that hangs for longer."""
    with psycopg.connect(world.ledger_url, autocommit=True) as connection:
        past = "clock_timestamp() - interval '1 second'"
        connection.execute(f"update finale.lease set expires_at = {past}")
        connection.execute(f"update finale.outbox set claimed_until = {past} where claimed_until is not null")


def _taken_over(whole: Whole, calls: list[Call]) -> None:
    found = []
    for call in calls:
        with whole.worlds() as world, world.running(*CLOSE, plan=Plan(call, "pause", done=False)) as first:
            first.wait_until_paused()
            _expire(world)
            if told := whole.unlike(world, world.run(*CLOSE)):
                found.append(f"taken over at {call}: {told}")
                continue
            outcome = first.go_on().finish()
            if outcome.code != LOST:
                found.append(f"resumed at {call}: it should have lost its lease: {outcome}")
            elif told := world.end_state().differs(whole.end):
                found.append(f"resumed at {call}: {told}")
    assert calls
    assert not found, "\n\n".join(found)


def test_i9_taken_over_while_delivering(by_webhook: Whole, by_stream: Whole) -> None:
    """I5, I9: a deliverer sleeps past its claim, another delivers it all; the first then changes nothing anywhere."""
    posts = [call for call in by_webhook.of(Step.DELIVER) if call.kind == "http"]
    _taken_over(by_webhook, [posts[2]])
    appends = [call for call in by_stream.of(Step.DELIVER) if call.text.startswith("EVALSHA stream")]
    _taken_over(by_stream, [appends[2]])


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_i9_taken_over_at_any_call_of_a_delivery(by_webhook: Whole, by_stream: Whole) -> None:
    """I5, I9: the same at every call that is not within a transaction."""
    for whole in (by_webhook, by_stream):
        _taken_over(whole, outside_transactions(whole.of(Step.DELIVER)))


def test_i5_two_deliverers_at_once(by_webhook: Whole) -> None:
    """I5, C56: one stands in the middle while another sends what it has not claimed: each grant is paid once."""
    posts = [call for call in by_webhook.of(Step.DELIVER) if call.kind == "http"]
    for call in sample(posts, 2, "two deliverers"):
        with by_webhook.worlds() as world, world.running(*CLOSE, plan=Plan(call, "pause", done=False)) as first:
            first.wait_until_paused()
            second = world.run("rewards", "retry", "cup", "s1")
            assert second.code == 0, second
            assert "600 grants wait" in second.out or "201 grants wait" in second.out
            assert not by_webhook.unlike(world, first.go_on().finish())
