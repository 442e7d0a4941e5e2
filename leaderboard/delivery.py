"""How a board's grants reach the game: a table that it reads, a webhook that it answers, or a Redis stream."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from leaderboard.fields import Duration, Strict

Target = Literal["table", "webhook", "stream"]
_RATE = re.compile(r"([1-9][0-9]{0,8})/(s|m|h)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OF = {
    "table": frozenset[str](),
    "webhook": frozenset(
        {"url", "url_env", "url_file", "secret_env", "secret_file", "batch", "rate", "tries", "timeout", "backoff"}
    ),
    "stream": frozenset({"key", "batch", "rate", "tries", "backoff"}),
}


class Delivery(Strict):
    """Where grants go, and at what pace. What belongs to another target than ``to`` is refused.

    ``url_env`` and ``secret_env`` name environment variables, ``url_file`` and ``secret_file`` files that hold the
    value: a secret itself never stands in the configuration. ``rate`` is grants a second, minute or hour; ``batch``
    grants a request; ``tries`` how often a grant is sent before it is a dead letter; ``backoff`` the first wait between
    tries, which doubles; ``timeout`` how long an answer may take.
    """

    to: Target = "table"
    url: str | None = None
    url_env: str | None = None
    url_file: str | None = None
    secret_env: str | None = None
    secret_file: str | None = None
    key: str | None = None
    batch: int = Field(default=500, ge=1, le=10_000)
    rate: str = "1000/s"
    tries: int = Field(default=12, ge=1, le=1_000)
    timeout: Duration = timedelta(seconds=10)
    backoff: Duration = timedelta(seconds=1)

    @field_validator("rate")
    @classmethod
    def _a_rate(cls, value: str) -> str:
        if not _RATE.fullmatch(value):
            raise ValueError("must be grants a second, minute or hour, like 1000/s or 500/m")
        return value

    @field_validator("url")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        return None if value is None else check_url(value)

    @field_validator("url_env", "secret_env")
    @classmethod
    def _a_variable(cls, value: str | None) -> str | None:
        if value is not None and not _VARIABLE.fullmatch(value):
            raise ValueError("must be the name of an environment variable, not its value")
        return value

    @field_validator("key")
    @classmethod
    def _a_key(cls, value: str | None) -> str | None:
        if value is not None:
            if not value or not value.isprintable():
                raise ValueError("must be printable text")
            if re.search(r"[<>]", value.replace("<board>", "").replace("<season>", "")):
                raise ValueError("may only have <board> and <season> filled in")
        return value

    @field_validator("timeout", "backoff")
    @classmethod
    def _a_while(cls, value: timedelta) -> timedelta:
        if not timedelta(milliseconds=1) <= value <= timedelta(minutes=10):
            raise ValueError("must be from 1ms to 10m")
        return value

    @model_validator(mode="after")
    def _holds_together(self) -> Delivery:
        if foreign := sorted(self.model_fields_set - {"to"} - _OF[self.to] - self._at_default()):
            raise ValueError(f'{foreign[0]} does not belong to a delivery with to = "{self.to}"')
        if self.to == "webhook":
            self._one_of("url", "url_env", "url_file")
            self._one_of("secret_env", "secret_file")
        if self.to == "stream" and self.key is None:
            raise ValueError('to = "stream" needs key, the name of the stream')
        return self

    def _at_default(self) -> set[str]:
        """Return what was given as it would be anyway: a definition that was stored names every field."""
        fields = type(self).model_fields
        return {name for name in self.model_fields_set if getattr(self, name) == fields[name].default}

    def _one_of(self, *names: str) -> None:
        if sum(getattr(self, name) is not None for name in names) != 1:
            raise ValueError(f'to = "webhook" needs exactly one of {", ".join(names)}')

    @property
    def per_second(self) -> float:
        """Grants a second, at most."""
        match = _RATE.fullmatch(self.rate)
        assert match is not None
        return int(match[1]) / _SECONDS[match[2]]

    def stream_key(self, board: str, season: str) -> str:
        """Return the name of the stream for a season's grants."""
        assert self.key is not None
        return self.key.replace("<board>", board).replace("<season>", season)


def check_url(url: str) -> str:
    """Return ``url`` if grants may be posted to it; raise ValueError, which never shows a secret, otherwise."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or not url.isprintable() or " " in url:
        raise ValueError("must be an http:// or https:// URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must have no user and password; requests are signed with the secret instead")
    if parts.fragment:
        raise ValueError("must have no #fragment")
    return url
