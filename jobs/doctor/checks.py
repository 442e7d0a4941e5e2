"""A check and its verdict, and the list that they are gathered in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Literal

from leaderboard.errors import FinaleError

Verdict = Literal["ok", "warn", "fail", "unknown"]
ORDER: tuple[Verdict, ...] = ("ok", "unknown", "warn", "fail")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: where, what was found, and what to do unless it is well."""

    area: str
    name: str
    verdict: Verdict
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Checks:
    """Gathers what is found of one area, a server or a bucket."""

    area: str
    found: list[Check] = field(default_factory=list)

    def add(self, name: str, verdict: Verdict, found: str, remedy: str = "") -> None:
        """Note a check; the remedy is told unless all is well."""
        self.found.append(Check(self.area, name, verdict, found, "" if verdict == "ok" else remedy))

    @contextmanager
    def trying(self, name: str, verdict: Verdict = "fail") -> Iterator[None]:
        """Note an error of the block as that check's ``verdict``; the checks after it go on."""
        try:
            yield
        except FinaleError as error:
            told = ": ".join(part for part in (error.message, error.detail) if part)
            self.add(name, verdict, told, error.hint)

    def clock(self, offset: timedelta, bound: timedelta, whose: str) -> None:
        """Judge how far this machine's clock is ahead of a server's."""
        away = abs(offset).total_seconds()
        side = "ahead of" if offset > timedelta(0) else "behind"
        told = (
            f"this machine is {away:,.1f} s {side} {whose}" if away else f"together with {whose}, as far as can be told"
        )
        verdict: Verdict = "fail" if abs(offset) > bound else "warn" if abs(offset) > bound / 2 else "ok"
        self.add("clock", verdict, told, "set both machines' clocks by NTP")

    def latency(self, seconds: float) -> None:
        """Judge the median time of an answer."""
        remedy = "run Finale near its servers: a season is read page by page, each a way there and back"
        self.add("latency", "warn" if seconds > 0.05 else "ok", f"{seconds * 1000:,.1f} ms for an answer", remedy)

    def room(self, name: str, free: int | None, what: str) -> None:
        """Judge the free bytes of a disk."""
        if free is None:
            self.add(name, "unknown", f"the free space of {what} cannot be told from here", "look at it where it runs")
            return
        verdict: Verdict = "fail" if free < 100 << 20 else "warn" if free < 2 << 30 else "ok"
        self.add(name, verdict, f"{free / (1 << 30):,.1f} GiB free for {what}", "make room there")
