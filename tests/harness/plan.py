"""What the harness knows of an outside call, and what it is told to do at one of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["redis", "postgres", "adbc", "store", "http"]
Deed = Literal["kill", "fail", "timeout", "pause"]


@dataclass(frozen=True, slots=True)
class Call:
    """One outside call: the step it was made in, what it says, and which of those that say the same it was (from 1).

    These four find the call again in another run, also where threads make the running number differ.
    """

    step: str
    kind: Kind
    text: str
    nth: int

    def __str__(self) -> str:
        return f"{self.step}: {self.kind} {self.text} ({self.nth})"


@dataclass(frozen=True, slots=True)
class Plan:
    """At ``call``, do this.

    ``kill``: SIGKILL. ``fail``: the connection breaks (of a folder: EIO). ``timeout``: no answer in time; of a
    statement that is not done, the server's own statement timeout. ``pause``: wait for the parent. ``done`` says
    whether the call has its effect before that.
    """

    call: Call
    do: Deed
    done: bool

    def __str__(self) -> str:
        return f"{self.do} {'after' if self.done else 'before'} {self.call}"

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Plan:
        """Return the plan that ``to_json`` gave."""
        return cls(Call(**value["call"]), value["do"], value["done"])
