"""The life of a season with two runners, as a model: every interleaving, crash, expiry, retry and delayed write.

What is decided is Finale's own code: which step follows (``leaderboard.states``), what each step plans from its facts
(``jobs.steps``), and whether a lever may be pulled (``leaderboard.levers``). What surrounds it is modelled, small and
pure: a ledger whose transactions are atomic and check the fence, a Redis with one key and the fence beside it, a store
with conditional put. A write to Redis or the store whose answer was lost may arrive at any later time, or never.

``BUGS`` plants faults, each one that a careless change could bring; the search must find a broken promise for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from jobs.seasons.verdicts import Held, Wait
from leaderboard import levers
from leaderboard.errors import WrongStateError
from leaderboard.states import LEAVES, TAKES_RESULTS, State, Step, may_follow, reached, step_from
from tests.model.world import CORRECTED, MOST_RESULTS, NOW, STRANGER, BrokenPromiseError, Runner, World, season, verdict

BUGS = {
    "a record without its fence": "I9",
    "clean without looking at the fence": "I9",
    "clean without comparing": "I1",
    "clean without reading the parts again": "I1",
    "parts published before the seal is put": "I2",
    "a seal that overwrites": "I2",
    "grants loaded without their key": "I5",
    "appliers without a fence": "I1",
    "staging of others is swept": "I8",
    "reopened although a seal is committed": "I2",
    "snapshot again although a seal is committed": "I4",
    "snapshot again without the lease": "I4",
    "released from the freeze without the lease": "I4",
}

PROGRAMS: dict[Step, tuple[str, ...]] = {
    Step.OPEN: ("record",),
    Step.CLOSE: ("record",),
    Step.FREEZE: ("mark", "apply", "record"),
    Step.SNAPSHOT: ("read", "stage", "exec", "record"),
    Step.RECONCILE: ("compare", "record"),
    Step.SEAL: ("commit", "put", "publish", "sweep", "record"),
    Step.REWARD: ("stage grants", "commit grants", "publish grants", "load", "sweep", "record"),
    Step.DELIVER: ("deliver", "record"),
    Step.CLEAN: ("verify", "watch", "unlink", "record"),
}


class Model:
    """``successors`` of a world, with at most one planted bug; raises BrokenPromiseError where a promise breaks."""

    def __init__(self, bug: str = "", most_fences: int = 3) -> None:
        self.bug = bug
        self.most_fences = most_fences

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield whatever may happen next."""
        yield from self._outside(world)
        for number, runner in enumerate(world.runners):
            for told, after in self._runner(world, number, runner):
                yield f"{number}: {told}", after

    def _outside(self, world: World) -> Iterator[tuple[str, World]]:
        if world.alive:
            yield "the lease runs out", world._replace(alive=False)
        if world.state in TAKES_RESULTS and not world.frozen and world.results < MOST_RESULTS:
            yield "a result", world._replace(results=world.results + 1)
        if world.state in TAKES_RESULTS and not world.frozen and world.key is not None and world.key < world.results:
            yield "totals are written", world._replace(key=world.results)
            if world.late is None:
                yield "totals are on their way", world._replace(late=("totals", world.bucket, world.results))
        if world.late is not None:
            yield f"{world.late} arrives", self._deliver(world._replace(late=None), world.late)
            yield f"{world.late} is lost", world._replace(late=None)
        yield from self._release(world)
        yield from self._reopen(world)
        if not world.meddled and not world.corrected:
            yield from self._meddle(world)

    def _meddle(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield what others may do: write to the frozen key, seal the same season from elsewhere, lose a file."""
        if world.frozen and world.key is not None:
            yield "a stranger writes", world._replace(key=STRANGER, meddled="key")
        if world.snap is not None and world.seal is None:
            seal = (STRANGER, world.snap[1])
            yield "another installation seals", world._replace(seal=seal, parts=seal[1], meddled="seal")
        cleaning = {"watch", "unlink"} & {runner.at for runner in world.runners}
        if reached(world.state, State.SEALED) and not cleaning and not (world.late and world.late[0] == "unlink"):
            yield "the store loses a part", world._replace(parts=None, meddled="parts")

    def _release(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield what a person may do: hold, and release as it is or, between freeze and seal, from a new snapshot.

        While it is held the board may be put right; no ledger tells of that, so nothing is compared afterwards.
        """
        if not world.held:
            if not world.corrected and reached(world.state, State.FROZEN) and not reached(world.state, State.SEALED):
                yield "held by hand", world._replace(held=True)
            return
        if world.state is not State.FROZEN:
            yield "released", world._replace(held=False)
        if not reached(world.state, State.FROZEN) or reached(world.state, State.SEALED):
            return
        again = world.state is not State.FROZEN
        sealing = world.row is not None and self.bug != "snapshot again although a seal is committed"
        try:
            if again:
                levers.check_again(season(world.state, world.held, world.frozen), sealing=sealing)
        except WrongStateError:
            return
        after = world._replace(held=False, state=State.FROZEN, snap=None)
        bug = "snapshot again without the lease" if again else "released from the freeze without the lease"
        if self.bug != bug:
            if world.alive or world.fence == self.most_fences:
                return
            fence = world.fence + 1
            after = after._replace(fence=fence, beside=max(world.beside, fence))
        told = "released, snapshot again" if again else "released, for its snapshot"
        yield told, after
        if not world.corrected and not world.meddled and world.key is not None:
            yield f"{told}, corrected", after._replace(key=CORRECTED, results=CORRECTED, corrected=True)

    def _reopen(self, world: World) -> Iterator[tuple[str, World]]:
        if world.reopened or world.alive or world.fence == self.most_fences:
            return
        sealing = world.row is not None and self.bug != "reopened although a seal is committed"
        try:
            levers.reopen(
                season(world.state, world.held, world.frozen),
                NOW,
                until=None,
                closes_at=NOW + timedelta(hours=1),
                sealing=sealing,
            )
        except WrongStateError:
            return
        fence = world.fence + 1
        yield (
            "reopened",
            world._replace(
                state=State.OPEN, held=False, frozen=False, snap=None, reopened=True, fence=fence,
                beside=max(world.beside, fence), staged=frozenset(),
            ),
        )  # fmt: skip  # a row a line

    def _runner(self, world: World, number: int, runner: Runner) -> Iterator[tuple[str, World]]:
        if runner.at == "idle":
            if not world.alive and world.fence < self.most_fences and step_from(world.state) and not world.held:
                fence = world.fence + 1
                yield "takes the lease", _put(world._replace(fence=fence, alive=True), number, Runner("raise", fence))
            return
        yield "dies", _put(world, number, Runner())
        if runner.at == "raise":
            if world.beside > runner.fence:
                yield "is told that another came", _put(world, number, Runner())
            else:
                raised = world._replace(beside=runner.fence) if world.key is not None else world
                yield "raises its fence", _put(raised, number, runner._replace(at="look"))
        elif runner.at == "look":
            yield self._look(world, number, runner)
        else:
            yield from self._operate(world, number, runner)

    def _look(self, world: World, number: int, runner: Runner) -> tuple[str, World]:
        step = step_from(world.state)
        if step is None or world.held or world.fence != runner.fence:
            return "ends", self._give_back(world, number, runner)
        planned = verdict(world, step)
        if isinstance(planned, Wait):
            return "waits", self._give_back(world, number, runner)
        if isinstance(planned, Held):
            return "holds", self._hold(world, number, runner)
        snap = world.snap if step is Step.SEAL else None
        return f"begins {step}", _put(world, number, Runner(self._program(step)[0], runner.fence, step, snap=snap))

    def _program(self, step: Step) -> tuple[str, ...]:
        if step is Step.SEAL and self.bug == "parts published before the seal is put":
            return ("commit", "publish", "put", "sweep", "record")
        return PROGRAMS[step]

    def _operate(  # noqa: PLR0912 - a case an operation
        self, world: World, number: int, runner: Runner
    ) -> Iterator[tuple[str, World]]:
        assert runner.step is not None
        told = f"{runner.step}: {runner.at}"
        following = self._program(runner.step)
        after = runner
        if runner.at != "record":
            after = runner._replace(at=following[following.index(runner.at) + 1])
        match runner.at:
            case "read":
                yield told, _put(world, number, after._replace(saw=world.key))
            case "exec" if world.key != runner.saw:
                yield "starts over", _put(world, number, runner._replace(at="read"))
            case "exec":
                yield told, _put(world, number, after)
            case "compare" if not world.corrected and (world.snap is None or world.snap[1] != world.results):
                yield "holds", self._hold(world, number, runner)
            case "compare":
                yield told, _put(world, number, after)
            case "verify" if (
                self.bug != "clean without reading the parts again" and world.parts != (world.seal or (0, 0))[1]
            ):
                yield "holds", self._hold(world, number, runner)
            case "verify":
                yield told, _put(world, number, after)
            case "watch":
                yield self._watch(world, number, runner, after)
            case "mark" | "apply" | "commit" | "commit grants" | "load" | "deliver" | "record":
                yield self._transaction(world, number, runner, after)
            case _:
                write = self._write(world, runner)
                if write is None and world.meddled:
                    yield "holds", self._hold(world, number, runner)
                    return
                if write is None:
                    raise BrokenPromiseError(f"I8: what is to be published is not staged any more: {world}")
                yield told, _put(self._deliver(world, write), number, after)
                if world.late is None:
                    lost = world._replace(late=write)
                    yield f"{told}, unanswered", self._give_back(lost, number, runner)

    def _watch(self, world: World, number: int, runner: Runner, after: Runner) -> tuple[str, World]:
        if world.beside > runner.fence and self.bug != "clean without looking at the fence":
            return "is told that another came", self._give_back(world, number, runner)
        if world.key is None:
            return "finds nothing", _put(world, number, after._replace(at="record"))
        assert world.seal is not None
        if world.key != world.seal[1] and self.bug != "clean without comparing":
            return "holds", self._hold(world, number, runner)
        return "clean: watch", _put(world, number, after._replace(saw=world.key))

    def _transaction(self, world: World, number: int, runner: Runner, after: Runner) -> tuple[str, World]:
        """Do what one transaction of the ledger does: nothing, if the fence is an old one."""
        told = f"{runner.step}: {runner.at}"
        mine = world.fence == runner.fence or (runner.at == "record" and self.bug == "a record without its fence")
        if not mine:
            return "is told that another came", _put(world, number, Runner())
        match runner.at:
            case "mark":
                world = world._replace(frozen=True)
            case "apply":
                world = world._replace(bucket=world.bucket + 1, key=world.results)
            case "commit" if world.row is None:
                world, after = world._replace(row=runner.snap), after._replace(snap=None)
            case "commit" if world.seal is not None and world.seal[1] != (world.row or world.seal)[1]:
                return "holds", self._hold(world, number, runner)
            case "commit grants" if world.grants is None:
                assert world.seal is not None
                world = world._replace(grants=(runner.fence, world.seal[1]))
            case "load" if world.loads == 0 or self.bug == "grants loaded without their key":
                world = world._replace(loads=world.loads + 1)
            case "deliver":
                world = world._replace(delivered=1)
            case "record":
                return told, self._record(world, number, runner)
        return told, _put(world, number, after)

    def _record(self, world: World, number: int, runner: Runner) -> World:
        assert runner.step is not None
        before, after = step_before(runner.step), LEAVES[runner.step]
        if world.state is not before:  # the update matches no row
            return _put(world, number, Runner())
        assert may_follow(before, after)
        if world.fence != runner.fence:
            raise BrokenPromiseError(f"I9: fence {runner.fence} recorded {runner.step} under fence {world.fence}")
        snap = world.snap
        if runner.step is Step.SNAPSHOT:
            assert runner.saw is not None
            snap = (runner.fence, runner.saw)
        row = world.row
        if runner.step is Step.SEAL and world.seal is not None and row is not None and world.seal != row:
            if world.seal[1] != row[1]:
                return self._hold(world, number, runner)
            row = world.seal  # another sealer was first, and sealed the same
        moved = world._replace(state=after, snap=snap, row=row)
        return _put(moved, number, Runner("look", runner.fence))

    def _write(self, world: World, runner: Runner) -> tuple[Any, ...] | None:  # noqa: PLR0911 - a case a write
        """Return the write to Redis or the store that comes next; None if what it needs is not there."""
        fence = runner.fence
        match runner.at:
            case "stage":
                return ("stage", (fence, runner.saw))
            case "put":
                return ("put", world.row)
            case "publish":
                named = world.seal or world.row
                assert named is not None
                if named not in world.staged and world.parts != named[1]:
                    return None
                return ("publish", named[1])
            case "stage grants":
                return ("stage grants", fence)
            case "publish grants":
                assert world.grants is not None
                if world.grants[0] not in world.grants_staged and not world.grants_published:
                    return None
                return ("publish grants",)
            case "sweep":
                return ("sweep", self.most_fences if self.bug == "staging of others is swept" else fence)
        assert runner.at == "unlink"
        return ("unlink", fence, runner.saw)

    def _deliver(self, world: World, write: tuple[Any, ...]) -> World:  # noqa: PLR0911 - a case a write
        """Return the world after a write has arrived, perhaps long after it was sent."""
        match write:
            case ("totals", bucket, results):
                if (bucket != world.bucket and self.bug != "appliers without a fence") or world.key is None:
                    return world
                return world._replace(key=results)
            case ("stage", staged):
                return world._replace(staged=world.staged | {staged})
            case ("put", row):
                overwrites = self.bug == "a seal that overwrites"
                return world._replace(seal=row) if world.seal is None or overwrites else world
            case ("publish", content):
                return world._replace(parts=content)
            case ("sweep", fence):
                return _swept(world, fence)
            case ("stage grants", fence):
                return world._replace(grants_staged=world.grants_staged | {fence})
            case ("publish grants",):
                return world._replace(grants_published=True)
        _, fence, saw = write
        changed = world.key != saw or world.key is None
        if changed or (world.beside != fence and self.bug != "clean without looking at the fence"):
            return world
        if world.beside > fence:
            raise BrokenPromiseError(f"I9: fence {fence} removed the key under fence {world.beside}")
        if world.seal is None or not world.key == world.seal[1] == world.parts == world.results:
            raise BrokenPromiseError(f"I1: the key left Redis, and the archive is not its equal: {world}")
        return world._replace(key=None, beside=0)

    def _hold(self, world: World, number: int, runner: Runner) -> World:
        held = world._replace(held=True) if world.fence == runner.fence else world
        return self._give_back(held, number, runner)

    @staticmethod
    def _give_back(world: World, number: int, runner: Runner) -> World:
        mine = world.fence == runner.fence
        return _put(world._replace(alive=False) if mine else world, number, Runner())


def _swept(world: World, fence: int) -> World:
    staged = frozenset(one for one in world.staged if one[0] > fence)
    return world._replace(staged=staged, grants_staged=frozenset(one for one in world.grants_staged if one > fence))


def step_before(step: Step) -> State:
    """Return the state from which a step starts."""
    return next(state for state in State if step_from(state) is step)


def _put(world: World, number: int, runner: Runner) -> World:
    """Return the world with one of its runners changed. Two alike have one order, so that no world is there twice."""
    other = world.runners[1 - number]
    return world._replace(runners=(runner, other) if runner.fence <= other.fence else (other, runner))
