"""Which calls are tried, and what is expected of each: whatever happened, the next run ends as an undisturbed one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from signal import SIGKILL

import psycopg

from tests.harness.endstate import EndState
from tests.harness.plan import Call, Deed, Plan
from tests.harness.run import Outcome, Running
from tests.harness.season import World

SEED = 20_261_204
CLOSE = ("close", "cup", "s1")
HELD, LOST = 20, 21  #: exit codes of who finds the season held, and of who was taken over
KILLS: tuple[tuple[Deed, bool], ...] = (("kill", False), ("kill", True))
FAULTS: tuple[tuple[Deed, bool], ...] = (("fail", False), ("fail", True), ("timeout", False), ("timeout", True))
#: A few of them, where there is little time.
SOME: tuple[tuple[Deed, bool], ...] = (("kill", True), ("fail", False), ("timeout", True))
#: What a command may end with when a call failed under it: it went on, no answer, outcome unknown, disturbed.
FAULT_CODES = frozenset({0, 10, 12, 14})

Worlds = Callable[[], AbstractContextManager[World]]


@dataclass(frozen=True)
class Whole:
    """An undisturbed run of a command: its calls, and the end state that every other must come to."""

    worlds: Worlds
    argv: tuple[str, ...]
    calls: tuple[Call, ...]
    end: EndState

    def of(self, step: str) -> list[Call]:
        """Return the calls of one step, in order."""
        return [call for call in self.calls if call.step == step]

    def unlike(self, world: World, outcome: Outcome) -> str:
        """Return why this is not how an undisturbed run ends; nothing if it is."""
        if outcome.code != 0:
            return f"the run after it: {outcome}"
        return world.end_state().differs(self.end)


def undisturbed(worlds: Worlds, *argv: str) -> Whole:
    """Run the command once, undisturbed, in one of ``worlds``."""
    with worlds() as world:
        outcome = world.run(*argv)
        assert outcome.code == 0, outcome
        return Whole(worlds, argv, outcome.calls, world.end_state())


def outside_transactions(calls: Iterable[Call]) -> list[Call]:
    """Return the calls during which the process holds no transaction open, and so no lock."""
    found, within = [], False
    for call in calls:
        if call.kind == "postgres" and call.text in ("COMMIT", "ROLLBACK"):
            within = False
            continue
        within = within or (call.kind == "postgres" and call.text.startswith("BEGIN"))
        if not within:
            found.append(call)
    return found


def sample(calls: Sequence[Call], count: int, label: str) -> list[Call]:
    """Choose ``count`` calls, the same every time, that say different things where there are enough of these."""
    chance = random.Random(f"{SEED} {label}")
    by_text: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        by_text.setdefault((call.kind, call.text), []).append(call)
    alike = list(by_text.values())
    chance.shuffle(alike)
    chosen = [chance.choice(same) for same in alike[:count]]
    return sorted(chosen, key=calls.index)


def sampled(calls: Sequence[Call], deeds: Iterable[tuple[Deed, bool]], count: int, label: str) -> Iterator[Plan]:
    """Yield ``count`` plans for each deed, over different calls."""
    for do, done in deeds:
        for call in sample(calls, count, f"{label} {do} {done}"):
            yield Plan(call, do, done)


def every(calls: Sequence[Call], do: Deed, done: bool) -> Iterator[Plan]:
    """Yield this deed's share of the plans for these calls: over all deeds each call is killed, and fails, once.

    Killed after a call, the process leaves what it would when killed before the next: so a kill after is tried at every
    call, a kill before at every fourth. Of the four ways to fail, each is tried at every fourth call, of its own.
    """
    first, apart = (FAULTS.index((do, done)), len(FAULTS)) if (do, done) in FAULTS else (0, 1 if done else 4)
    return (Plan(call, do, done) for call in calls[first::apart])


def run_again(whole: Whole, plans: Iterable[Plan]) -> None:
    """Do to the command what each plan says, and run it again: all must end as the undisturbed run did.

    A call that fails must be told in an operator's words, with an exit code that says to run again.
    """
    found = []
    tried = 0
    for tried, plan in enumerate(plans, 1):  # noqa: B007 - counted
        with whole.worlds() as world:
            if told := _again(whole, world, plan):
                found.append(f"{plan}\n{told}")
    assert tried
    assert not found, f"{len(found)} of {tried} cases:\n\n" + "\n\n".join(found)


def _again(whole: Whole, world: World, plan: Plan) -> str:
    outcome = world.run(*whole.argv, plan=plan)
    codes = {-SIGKILL} if plan.do == "kill" else FAULT_CODES
    if not outcome.hit:
        return f"the call did not come: {outcome}"
    if outcome.code not in codes:
        return f"it should have ended with one of {sorted(codes)}: {outcome}"
    return whole.unlike(world, world.run(*whole.argv))


def expire(world: World) -> None:
    """Let the lease run out, as it does for a runner that hangs longer than its lease."""
    with psycopg.connect(world.ledger_url, autocommit=True) as connection:
        connection.execute("update finale.lease set expires_at = clock_timestamp() - interval '1 second'")


def taken_over_at(whole: Whole, calls: Sequence[Call], fence: int = 1) -> None:
    """Let a runner hang before each call past its lease and another do it all; the first then changes nothing.

    ``fence`` is the first runner's, under which it may have staged.
    """
    found = []
    for call in calls:
        with whole.worlds() as world, world.running(*whole.argv, plan=Plan(call, "pause", done=False)) as first:
            first.wait_until_paused()
            expire(world)
            if told := whole.unlike(world, world.run(*whole.argv)):
                found.append(f"taken over at {call}: {told}")
                continue
            if told := changed_nothing(world, whole.end, first, fence):
                found.append(f"resumed at {call}: {told}")
    assert calls
    assert not found, f"{len(found)} of {len(calls)} cases:\n\n" + "\n\n".join(found)


def changed_nothing(world: World, before: EndState, first: Running, fence: int) -> str:
    """Let the first runner go on; return what it did that it must not."""
    outcome = first.go_on().finish()
    after = world.end_state()
    if outcome.code != LOST:
        return f"it should have lost its lease: {outcome}"
    if foreign := [path for path in after.staged() if f"-f{fence}-" not in path]:
        return f"it staged what is not its own: {foreign}"
    return after.without_staging().differs(before)
