"""What a board is checked against, how, and up to which difference it is put right without a person."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator, model_validator

from leaderboard.faults import describe
from leaderboard.fields import Duration, Strict

PARAMETERS = ("starts_at", "ends_at", "season", "board")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PERCENT = re.compile(r"%(?:\(([^)]*)\)(.)|(.)|$)", re.DOTALL)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%")


class OutsideLedger(Strict):
    """A ledger that is the user's own: SQL that returns ``player_id, points, reached_at``, a row a player.

    ``sql`` may use ``%(starts_at)s``, ``%(ends_at)s``, ``%(season)s`` and ``%(board)s``, which are bound; a per cent
    sign of its own is written ``%%``. ``url_env`` names the environment variable that holds the database's URL, or,
    with ``_FILE`` behind it, the name of a file that does; ``url`` may stand here instead if it holds no password.
    Without either it is the database of Finale's own tables.
    """

    sql: str
    url_env: str | None = None
    url: str | None = None

    @field_validator("sql")
    @classmethod
    def _one_statement(cls, value: str) -> str:
        text = value.strip().rstrip(";").rstrip()
        if not text or "\x00" in text:
            raise ValueError("must be one SELECT that returns player_id, points, reached_at")
        for match in _PERCENT.finditer(text):
            name, kind, other = match.groups()
            if name is not None and (name not in PARAMETERS or kind != "s"):
                raise ValueError(
                    f"has the parameter {match.group()!r}; there are {', '.join(f'%({one})s' for one in PARAMETERS)}"
                )
            if name is None and other != "%":
                raise ValueError("has a lone %; a per cent sign is written %%, a parameter like %(season)s")
        return text

    @field_validator("url_env")
    @classmethod
    def _a_variable(cls, value: str | None) -> str | None:
        if value is not None and not _VARIABLE.fullmatch(value):
            raise ValueError("must be the name of an environment variable, such as GAME_POSTGRES")
        return value

    @field_validator("url")
    @classmethod
    def _without_a_password(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value)
            secret = parts.password is not None or "password" in dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError:  # its message holds the URL
            raise ValueError("cannot be read; write postgresql://user@host:5432/database") from None
        if parts.scheme not in ("postgresql", "postgres") or not value.isprintable():
            raise ValueError("must be a URL like postgresql://user@host:5432/database")
        if secret:
            raise ValueError("must hold no password, since seals show it; name the variable that does as url_env")
        return value

    @model_validator(mode="after")
    def _one_place(self) -> OutsideLedger:
        if self.url_env is not None and self.url is not None:
            raise ValueError("has both url and url_env; leave one out")
        return self


def read_ledger(value: Any) -> Any:
    """Return what ``ledger`` was given as, checked; raise ValueError that says what it may be."""
    if isinstance(value, dict):
        try:
            return OutsideLedger.model_validate(value)
        except ValidationError as error:
            raise ValueError("; ".join(describe(error, OutsideLedger, hidden=frozenset({"url"})))) from None
    if not isinstance(value, OutsideLedger) and value not in ("own", "none"):
        raise ValueError('must be "own", "none", or a table { sql = "select player_id, points, reached_at …" }')
    return value


Ledger = Annotated[Literal["own", "none"] | OutsideLedger, BeforeValidator(read_ledger)]


def _bound(value: Any) -> Any:
    if isinstance(value, str) and (match := _SHARE.fullmatch(value.strip())) and Fraction(match[1]) <= 100:
        return f"{match[1]}%"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError('must be a number of players, or a share of them such as "1%"')


def _some_seconds(value: timedelta) -> timedelta:
    if value < timedelta(seconds=10):
        raise ValueError("must be at least 10s")
    return value


class Checks(Strict):
    """How Redis and the ledger are compared, and what is done where they differ.

    ``repair``: up to so many drifting players, or such a share of all, a closing season is put right from Finale's own
    ledger without waking anyone; 0 never. ``tolerance``: points by which a player may differ without being drift.
    ``compare``: every row, or counts and checksums of buckets of players first, where the ledger is far away or huge.
    ``deep``: count the totals anew from the match results as well. ``live``: what is done every ``every`` while the
    season runs, over the players active since and over ``slice`` more.
    """

    repair: Annotated[int | str, BeforeValidator(_bound)] = "1%"
    tolerance: int = Field(default=0, ge=0, le=2**53)
    compare: Literal["rows", "buckets"] = "rows"
    deep: bool = False
    live: Literal["report", "repair", "off"] = "report"
    every: Annotated[Duration, AfterValidator(_some_seconds)] = timedelta(minutes=5)
    slice: int = Field(default=20_000, ge=100, le=1_000_000)

    def repairs(self, players: int) -> int:
        """Return how many drifting players of ``players`` are repaired unasked; a share is rounded down."""
        if isinstance(self.repair, int):
            return self.repair
        return int(players * Fraction(self.repair.rstrip("%")) / 100)
