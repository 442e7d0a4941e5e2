"""Clients of a real server, in every shape that redis-py answers in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from tests.live.boards import connected

SHAPES: dict[str, dict[str, Any]] = {
    f"{name}, {'text' if decoded else 'bytes'}": {**protocol, "decode_responses": decoded}
    for name, protocol in {"default": {}, "RESP2": {"protocol": 2}, "RESP3": {"protocol": 3}}.items()
    for decoded in (False, True)
}


@pytest.fixture
def client(redis_url: str) -> Iterator[Redis]:
    """A client with redis-py's defaults, but without retries."""
    with connected(redis_url) as client:
        yield client


@pytest.fixture(params=list(SHAPES.values()), ids=list(SHAPES))
def any_client(redis_url: str, request: pytest.FixtureRequest) -> Iterator[Redis]:
    """A client of each protocol (2, 3, the default), decoding its replies or not."""
    with connected(redis_url, **request.param) as client:
        yield client
