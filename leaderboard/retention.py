"""Whether a season's live key may be forgotten, and why: one verdict for the report, the dry run and the real run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from leaderboard.season import Season
from leaderboard.states import State, reached

Action = Literal["clean", "absent", "foreign", "keep", "done", "returned"]
NOT_OURS = "somebody wrote it there after the seal; nothing of it is touched"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the verdict follows from: the season, the time, and what only some callers have looked up."""

    season: Season
    now: datetime
    live: bool | None = None  #: whether the live key exists; None: nobody has looked
    foreign: str = ""  #: what :func:`foreign` says of the live keys
    cleaned_at: datetime | None = None  #: of a cleaned season; None: not known
    configured: bool = True  #: whether the board still is


@dataclass(frozen=True, slots=True)
class Retention:
    """The verdict. ``at`` is when it turns or turned: the end of the retention, or when the season was cleaned.

    ``clean``: due, the key goes once it is proved equal. ``absent``: due, but there is nothing to remove, which is
    recorded. ``foreign``: due, but something else than a board stands there, which holds the season. ``keep``: not yet,
    or not without a person. ``done``: cleaned before. ``returned``: cleaned, but the live key exists again, which
    nobody touches unasked.
    """

    action: Action
    reason: str
    at: datetime | None = None

    @property
    def acts(self) -> bool:
        """Whether the season is cleaned now."""
        return self.action in ("clean", "absent", "foreign")

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"verdict": self.action, "reason": self.reason, "at": self.at}


def decide(facts: Facts) -> Retention:
    """Return the verdict on one season."""
    if facts.season.state in (State.CLEANED, State.CANCELLED):
        return _ended(facts)
    return _kept(facts) or _due(facts)


def foreign(kinds: Mapping[str, str]) -> str:
    """Return what is wrong with the first key that is there and no sorted set; nothing if all are right."""
    wrong = next((key for key, kind in kinds.items() if kind not in ("zset", "none")), None)
    return "" if wrong is None else f"the live key {wrong} is a {kinds[wrong]}, not a sorted set"


def away(wrong: str) -> str:
    """Return the remedy for what :func:`foreign` told."""
    key = wrong.removeprefix("the live key ").partition(" is a ")[0]
    return f"move it away, as with RENAMENX {key} {key}:moved, and clean again"


def _ended(facts: Facts) -> Retention:
    if facts.season.state is State.CANCELLED:
        return Retention("done", "cancelled: it never had a live key")
    cleaned = f"cleaned at {_text(facts.cleaned_at)}" if facts.cleaned_at else "cleaned"
    if facts.live:
        return Retention("returned", f"{cleaned}, but the live key exists again", facts.cleaned_at)
    return Retention("done", cleaned, facts.cleaned_at)


def _kept(facts: Facts) -> Retention | None:
    season = facts.season
    if season.hold is not None:
        return Retention("keep", f"on hold: {season.hold.reason}")
    if not reached(season.state, State.DELIVERED):
        return Retention("keep", f"{season.state}: only what was sealed, rewarded and delivered is cleaned")
    if season.keep_until is None:
        by_hand = f"finale clean {season.board.name} {season.id} --now"
        return Retention("keep", f"the key was adopted, and is kept until somebody says: {by_hand}")
    if facts.now < season.keep_until:
        return Retention("keep", f"the live key is kept until {_text(season.keep_until)}", season.keep_until)
    if not facts.configured:
        by_hand = f"finale clean {season.board.name} {season.id}"
        return Retention("keep", f"its board is not configured any more; by hand: {by_hand}", season.keep_until)
    return None


def _due(facts: Facts) -> Retention:
    due = f"due since {_text(facts.season.keep_until)}"
    if facts.live is False:
        return Retention("absent", f"{due}; there is no live key, which is recorded", facts.season.keep_until)
    if facts.foreign:
        return Retention("foreign", f"{due}, but {facts.foreign}: {away(facts.foreign)}", facts.season.keep_until)
    return Retention("clean", due, facts.season.keep_until)


def _text(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC" if instant else "now"
