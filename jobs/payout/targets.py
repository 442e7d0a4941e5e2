"""Where grants are sent: built from a board's delivery and the environment, which alone holds secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import httpx

from config.texts import read_secret
from jobs.version import VERSION
from jobs.wiring import Outside
from leaderboard.delivery import Delivery, check_url
from leaderboard.errors import ConfigError, FinaleError
from leaderboard.season import Season
from live.stream import START, Stream
from rewards.delivery import Answer, Batch
from rewards.webhook import Webhook

_SHORTEST_SECRET = 16


class Target(Protocol):
    """Something that grants are sent to. ``mark`` is called before grants are claimed, and kept with them."""

    @property
    def name(self) -> str: ...
    def mark(self) -> str | None: ...
    def send(self, batch: Batch, marks: Sequence[str]) -> Answer: ...


@contextmanager
def target(outside: Outside, delivery: Delivery, season: Season, environ: Mapping[str, str]) -> Iterator[Target]:
    """Yield what a season's grants are sent to. Raises ConfigError that names the variable or file at fault."""
    if delivery.to == "stream":
        yield StreamTarget(Stream(outside.redis, delivery.stream_key(season.board.name, season.id)))
        return
    url = delivery.url or _url(delivery, environ)
    secret = _value("deliver.secret", delivery.secret_env, delivery.secret_file, environ)
    if len(secret) < _SHORTEST_SECRET:
        raise ConfigError(
            f"the secret in {delivery.secret_env or delivery.secret_file} is too short to sign with",
            hint=f"use at least {_SHORTEST_SECRET} characters, such as those of: openssl rand -hex 32",
        )
    with httpx.Client(headers={"user-agent": f"finale/{VERSION}"}) as http:
        yield WebhookTarget(Webhook(url, secret.encode(), delivery.timeout, http))


def _url(delivery: Delivery, environ: Mapping[str, str]) -> str:
    url = _value("deliver.url", delivery.url_env, delivery.url_file, environ)
    try:
        return check_url(url)
    except ValueError as error:
        raise ConfigError(f"the URL in {delivery.url_env or delivery.url_file} {error}") from None


def _value(what: str, variable: str | None, file: str | None, environ: Mapping[str, str]) -> str:
    if variable is not None:
        value = environ.get(variable, "").strip()
        if not value:
            raise ConfigError(f"{what}_env = {variable!r}: this environment variable is not set", hint="set it")
        return value
    assert file is not None
    return read_secret(f"{what}_file", file)


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """A webhook, which knows nothing of marks: its receiver tells grants apart by their ids."""

    webhook: Webhook

    @property
    def name(self) -> str:
        return self.webhook.name

    def mark(self) -> str | None:
        return None

    def send(self, batch: Batch, marks: Sequence[str]) -> Answer:
        return self.webhook.send(batch)


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """A stream in the configured Redis: a grant is acknowledged once its entry is known to be there."""

    stream: Stream

    @property
    def name(self) -> str:
        return f"the stream {self.stream.key}"

    def mark(self) -> str | None:
        """Return where the stream ends now. Raises what ``Stream.end`` raises."""
        return self.stream.end()

    def send(self, batch: Batch, marks: Sequence[str]) -> Answer:
        """Append what is not there yet since the earliest mark; nothing that Redis does is raised."""
        entries = [_entry(batch, row) for row in batch.rows]
        since = min(marks, key=_order, default=START)
        try:
            self.stream.append(entries, since)
        except FinaleError as error:
            return Answer(failure=error.message)
        return Answer(accepted=frozenset(batch.ids))


def _order(entry: str) -> tuple[int, int]:
    milliseconds, _, number = entry.partition("-")
    return int(milliseconds), int(number)


def _entry(batch: Batch, row: Mapping[str, object]) -> dict[str, bytes | str]:
    player_id = row["player_id"]
    assert isinstance(player_id, bytes)
    names = ("rule", "item", "amount", "position", "rank")
    return {
        "grant_id": str(row["grant_id"]),
        "board": batch.board,
        "season": batch.season,
        "correction": str(batch.correction),
        "corrects": str(row.get("corrects") or ""),
        "player_id": player_id,
        **{name: str(row[name]) for name in names},
    }
