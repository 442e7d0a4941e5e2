"""The webhook: a signed POST a batch, and what its answer says of each grant. docs/delivery.md is the contract."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx

from rewards.delivery import Answer, Batch

VERSION = 1
_MOST = 1_000_000  # bytes of an answer beyond what ids of the batch need
_PER_GRANT = 1_000
_DIGITS = 9  # of a Retry-After that are read: as seconds more than anybody waits


def body_of(batch: Batch) -> bytes:
    """Return the request's body: JSON, UTF-8, sorted keys; the same bytes for the same grants."""
    value = {
        "version": VERSION,
        "board": batch.board,
        "season": batch.season,
        "correction": batch.correction,
        "batch": batch.key,
        "player_ids": "hex" if batch.binary else "text",
        "grants": batch.messages(),
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def signature(secret: bytes, timestamp: int, body: bytes) -> str:
    """Return ``v1=`` and the HMAC-SHA256, in hex, of the timestamp's decimal digits, a full stop and the body."""
    return "v1=" + hmac.new(secret, b"%d.%b" % (timestamp, body), sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver of grants. ``url`` and ``secret`` are not shown: either may be a secret."""

    url: str = field(repr=False)
    secret: bytes = field(repr=False)
    timeout: timedelta
    client: httpx.Client = field(repr=False)

    @property
    def name(self) -> str:
        """How to call the receiver where anyone may read it: its host, not the path, which may hold a token."""
        parts = urlsplit(self.url)
        return f"the webhook at {parts.hostname}{f':{parts.port}' if parts.port else ''}"

    def send(self, batch: Batch) -> Answer:
        """Post the batch once and return what the answer says; nothing that a receiver does is raised."""
        body, timestamp = body_of(batch), int(time.time())
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",  # so that a small answer cannot unfold into a huge one
            "idempotency-key": batch.key,
            "finale-timestamp": str(timestamp),
            "finale-signature": signature(self.secret, timestamp, body),
        }
        deadline = time.monotonic() + self.timeout.total_seconds()
        try:
            with self.client.stream(
                "POST",
                self.url,
                content=body,
                headers=headers,
                timeout=self.timeout.total_seconds(),
                follow_redirects=False,
            ) as response:
                if response.is_success:
                    limit = _MOST + _PER_GRANT * len(batch.rows)
                    return _answered(_read(response, limit, deadline), batch)
                return _refused(response)
        except httpx.TimeoutException:
            return Answer(failure=f"no answer within {self.timeout.total_seconds():g} s")
        except httpx.ConnectError:
            return Answer(failure="no connection")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            return Answer(failure=f"the connection broke ({type(error).__name__})")


class _UnusableError(Exception):
    """An answer that says nothing; the text tells why."""


def _read(response: httpx.Response, limit: int, deadline: float) -> bytes | str:
    """Return the answer's body, or why it is not read to its end."""
    found = bytearray()
    for piece in response.iter_raw():
        found += piece
        if len(found) > limit:
            return f"the answer is longer than {limit:,} bytes"
        if time.monotonic() > deadline:
            return "the answer took too long to arrive"
    return bytes(found)


def _answered(body: bytes | str, batch: Batch) -> Answer:
    if isinstance(body, str):
        return Answer(failure=body)
    try:
        return _parsed(json.loads(body), set(batch.ids))
    except (ValueError, RecursionError):
        return Answer(failure="the answer is no JSON, so nothing is acknowledged")
    except _UnusableError as error:
        return Answer(failure=str(error))


def _parsed(value: Any, sent: set[str]) -> Answer:
    """Return what a 2xx answer says; ids that were not sent mean nothing. Raises _UnusableError for another shape."""
    if not isinstance(value, dict):
        raise _UnusableError("the answer is no JSON object with accepted and rejected")
    accepted, rejected = value.get("accepted", []), value.get("rejected", [])
    if not isinstance(accepted, list) or not isinstance(rejected, list):
        raise _UnusableError("accepted and rejected in the answer must be lists")
    if not all(isinstance(one, str) for one in accepted) or not all(map(_is_rejection, rejected)):
        raise _UnusableError("accepted must list grant ids, rejected objects with grant_id and reason")
    reasons = {one["grant_id"].lower(): f"refused: {one.get('reason') or 'no reason given'}" for one in rejected}
    return Answer(
        accepted=frozenset(one.lower() for one in accepted) & sent,
        rejected={one: reason for one, reason in reasons.items() if one in sent},
    )


def _is_rejection(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("grant_id"), str)


def _refused(response: httpx.Response) -> Answer:
    """Return what an answer other than 2xx comes to: nothing is known of any grant."""
    code = response.status_code
    if response.is_redirect or 300 <= code < 400:
        return Answer(failure=f"answered {code}: redirects are not followed")
    return Answer(failure=f"answered {code}", wait=_retry_after(response.headers, datetime.now(UTC)))


def _retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return what Retry-After asks for, in seconds or as a date (RFC 9110, 10.2.3); None if it says nothing sound."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return timedelta(seconds=min(int(text[:_DIGITS]), 86_400))
    with suppress(ValueError, TypeError, OverflowError):
        at = parsedate_to_datetime(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(at - now, timedelta(0))
    return None
