"""A board as its owner defines it, validated and frozen."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from leaderboard import keys
from leaderboard.bands import Bands, Scale, bands_fault, bands_of, scale_of
from leaderboard.calendar_rule import Calendar
from leaderboard.delivery import Delivery
from leaderboard.errors import ConfigError
from leaderboard.fields import Attribute, Duration, Strict, named
from leaderboard.shards import Layout, Shards, cut_fault, layout_of, shards_of
from leaderboard.ties import Ties
from leaderboard.truth import Checks, Ledger, OutsideLedger


def _ties(value: Any) -> Any:
    return {"by": value} if isinstance(value, str) else value


class Board(Strict):
    """A leaderboard: which results it counts, how it orders them, when its seasons end, what happens then."""

    name: str
    source: str = ""
    where: dict[str, Attribute] = Field(default_factory=dict)
    key: str = "leaderboard:<board>:<season>"
    current_key: str | None = None
    order: Literal["high", "low"] = "high"
    aggregate: Literal["sum", "best", "last"] = "sum"
    ties: Annotated[Ties, BeforeValidator(_ties, json_schema_input_type=str | Ties)] = Ties()
    shards: Annotated[Shards, BeforeValidator(shards_of, json_schema_input_type=Literal["none"] | Shards)] = Shards()
    bands: Annotated[Bands | None, BeforeValidator(bands_of)] = None
    member: Literal["text", "binary"] = "text"
    points: Literal["integer", "fraction"] = "integer"
    ledger: Ledger = "own"
    reconcile: Checks = Checks()
    freeze: Literal["watch", "rename"] = "watch"
    calendar: Calendar
    grace: Duration = timedelta(minutes=15)
    keep_live: Duration = timedelta(days=7)
    cleanup: Literal["unlink", "expire"] = "unlink"
    rewards: str | None = None
    deliver: Delivery = Delivery()
    ahead: int = Field(default=2, ge=0, le=100)

    @model_validator(mode="before")
    @classmethod
    def _source_defaults_to_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("source"):
            return {**data, "source": data.get("name", "")}
        return data

    @model_validator(mode="before")
    @classmethod
    def _a_shared_key_has_no_grace(cls, data: Any) -> Any:
        """Without a word about grace: whoever shares one key among seasons freezes it at the cutoff."""
        if isinstance(data, dict) and "grace" not in data and data.get("freeze") == "rename":
            key = data.get("key", cls.model_fields["key"].default)
            if isinstance(key, str) and keys.is_shared(key):
                return {**data, "grace": timedelta(0)}
        return data

    @model_validator(mode="after")
    def _holds_together(self) -> Board:
        named(self.name, "board")
        named(self.source, "source")
        try:
            keys.check_template(self.key, shared=self.freeze == "rename")
            if self.current_key is not None:
                keys.check_current_key(self.current_key, self.key)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        self._check_shared_key()
        self._check_shards()
        if self.points == "fraction" and self.ties.by == "first_to_reach":
            raise ValueError(
                'points = "fraction" leaves no room for a time in the score; use ties = "shared" or "member"'
            )
        if self.points == "fraction" and self.ledger != "none":
            raise ValueError('a ledger counts whole points; points = "fraction" needs ledger = "none"')
        return self

    def _check_shared_key(self) -> None:
        if not self.shares_key:
            return
        if self.ledger == "own":
            raise ValueError(
                f"key = {self.key!r} is the same for every season, so totals of two seasons would meet in it; it needs "
                'ledger = "none", or <season> in the key'
            )
        if self.grace:
            raise ValueError(
                f"key = {self.key!r} is the same for every season, so it is frozen at the cutoff: grace must be 0s"
            )

    def _check_shards(self) -> None:
        if keys.SHARD in self.key and self.shards.by == "none":
            raise ValueError(f"key = {self.key!r} has {keys.SHARD}, but the board has no shards")
        if fault := cut_fault(self.shards, fraction=self.points == "fraction", multiplier=self._multiplier):
            raise ValueError(fault)
        if self.bands is None:
            return
        if self.ledger != "own":
            raise ValueError("bands are counted by whoever writes the board; they need Finale's own ledger")
        if fault := bands_fault(self.bands, fraction=self.points == "fraction", multiplier=self._multiplier):
            raise ValueError(fault)

    @property
    def _multiplier(self) -> int | None:
        return self.ties.multiplier if self.packed else None

    @property
    def layout(self) -> Layout:
        """Which shard has whom."""
        return layout_of(self.shards, multiplier=self._multiplier, descending=self.descending)

    @property
    def scale(self) -> Scale | None:
        """The score bands by which ranks are estimated; None for a board without."""
        fraction = self.points == "fraction"
        return None if self.bands is None else scale_of(self.bands, multiplier=self._multiplier, fraction=fraction)

    @property
    def shares_key(self) -> bool:
        """Whether all seasons are played under one key."""
        return keys.is_shared(self.key)

    @property
    def ledger_kind(self) -> str:
        """``own``, ``none``, or ``outside`` for a ledger that is the user's."""
        return self.ledger if isinstance(self.ledger, str) else "outside"

    @property
    def packed(self) -> bool:
        """Whether the time of reaching is packed into the score."""
        return self.ties.by == "first_to_reach"

    @property
    def descending(self) -> bool:
        """Whether the first position has the highest score."""
        return self.order == "high"

    def definition(self) -> dict[str, Any]:
        """Return the board as plain JSON values, as a season stores it and a seal shows it."""
        return self.model_dump(mode="json", exclude_defaults=False)

    def with_fixed_of(self, opened: Board) -> Board:
        """Return this board, but with everything that ``opened`` fixed when its season opened.

        Codec, ties, order, aggregate, key, shards, bands, freeze, member, points, source, filter and the kind of ledger
        stay, as do the stored bounds with their grace; the rest (keep_live, cleanup, rewards, current_key) follows the
        configuration until it closes.
        """
        fixed = self.model_copy(update={name: getattr(opened, name) for name in FIXED_AT_OPEN})
        return fixed.with_ledger_of(self)

    def with_ledger_of(self, configured: Board) -> Board:
        """Return this board, but asking a ledger of the user's as ``configured`` does: its SQL, and where it is.

        A board that counts by Finale's ledger or by none stays so. Until a season has been compared, SQL that turned
        out wrong can be corrected; what it was compared by is stored then.
        """
        if isinstance(self.ledger, OutsideLedger) and isinstance(configured.ledger, OutsideLedger):
            return self.model_copy(update={"ledger": configured.ledger})
        return self


FIXED_AT_OPEN = (
    *("source", "where", "key", "order", "aggregate", "ties"),
    *("shards", "bands", "member", "points", "ledger", "freeze"),
)
