"""In the child: counts every outside call, writes it down, and carries the plan out when its call comes."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from tests.harness.plan import Call, Deed, Kind, Plan

T = TypeVar("T")
BETWEEN = "between"  #: the step of calls that no step makes: connecting, the lease, looking what is next
HEARTBEAT = "heartbeat"  #: the step of calls that the lease's own thread makes, whenever that is


@dataclass(frozen=True, slots=True)
class Fate:
    """What is to happen to one call: ``error`` says which the caller is to be given, if any; ``done``: afterwards."""

    error: Deed | None = None
    done: bool = False

    @property
    def before(self) -> Deed | None:
        """The error to raise without making the call."""
        return None if self.done else self.error

    @property
    def after(self) -> Deed | None:
        """The error to raise although the call was made."""
        return self.error if self.done else None


@dataclass
class Calls:
    """The calls of this process: a JSON line each on ``log``, which outlives it. The pipes serve ``pause``."""

    plan: Plan | None
    log: int
    arrived: int
    go_on: int
    step: str = BETWEEN
    _seen: Counter[tuple[str, Kind, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, kind: Kind, text: str) -> Fate:
        """Note a call that is about to be made, end or halt here if that is planned, and return its fate."""
        with self._lock:
            beats = threading.current_thread().name == "finale-heartbeat"
            key = (HEARTBEAT if beats else self.step, kind, text)
            self._seen[key] += 1
            call = Call(*key, self._seen[key])
            self._write({"call": asdict(call)})
        if self.plan is None or call != self.plan.call:
            return Fate()
        if self.plan.do in ("fail", "timeout"):
            self._write({"hit": True})
            return Fate(self.plan.do, self.plan.done)
        if not self.plan.done:
            self._act(self.plan.do)
            return Fate()
        return Fate(self.plan.do, True)

    def end(self, fate: Fate) -> None:
        """Note that the call was made; end or halt here if that is planned."""
        if fate.after in ("kill", "pause"):
            self._act(fate.after)

    def passed(self, kind: Kind, text: str, make: Callable[[], T], error: Callable[[Deed], Exception]) -> T:
        """Make a call that answers by returning, as its fate is; return the answer. ``error`` is the driver's own."""
        fate = self.begin(kind, text)
        if fate.before:
            raise error(fate.before)
        try:
            return make()
        finally:  # a refusal is an answer too
            self.end(fate)
            if fate.after in ("fail", "timeout"):
                raise error(fate.after)

    def _act(self, deed: Deed) -> None:
        self._write({"hit": True})
        if deed == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(self.arrived, b"here\n")
        os.read(self.go_on, 1)

    def _write(self, value: object) -> None:
        os.write(self.log, f"{json.dumps(value)}\n".encode())
