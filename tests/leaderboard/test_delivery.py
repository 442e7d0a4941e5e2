"""The configuration of a delivery: what is refused, and that no secret can stand in it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from leaderboard.delivery import Delivery

WEBHOOK = {"to": "webhook", "url": "https://game.example/grants", "secret_env": "SECRET"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"to": "mail"}, "table"),
        ({"to": "webhook", "secret_env": "SECRET"}, "exactly one of url, url_env, url_file"),
        ({**WEBHOOK, "url_env": "URL"}, "exactly one of url"),
        ({"to": "webhook", "url_env": "URL"}, "exactly one of secret_env, secret_file"),
        ({**WEBHOOK, "secret": "abc"}, "secret"),
        ({**WEBHOOK, "url": "ftp://game.example"}, "http:// or https://"),
        ({**WEBHOOK, "url": "https://user:word@game.example"}, "no user and password"),
        ({**WEBHOOK, "url": "https://"}, "http:// or https://"),
        ({**WEBHOOK, "url": "https://game.example:99999"}, "http:// or https://"),
        ({**WEBHOOK, "secret_env": "s3cr3t-value!"}, "name of an environment variable"),
        ({**WEBHOOK, "rate": "fast"}, "1000/s"),
        ({**WEBHOOK, "rate": "0/s"}, "1000/s"),
        ({**WEBHOOK, "batch": 0}, "greater than or equal to 1"),
        ({**WEBHOOK, "timeout": 10}, "no unit"),
        ({**WEBHOOK, "backoff": "1h"}, "from 1ms to 10m"),
        ({**WEBHOOK, "key": "grants"}, "key does not belong"),
        ({"url": "https://game.example"}, "url does not belong"),
        ({"to": "stream"}, "needs key"),
        ({"to": "stream", "key": "g:<player>"}, "only have <board> and <season>"),
    ],
)
def test_what_cannot_be_meant_is_refused(values: dict[str, Any], said: str) -> None:
    """A person who writes it is told what is right."""
    with pytest.raises(ValidationError, match=said):
        Delivery.model_validate(values)


@pytest.mark.parametrize("values", [{}, WEBHOOK, {"to": "stream", "key": "g:<board>", "rate": "30/m", "batch": 10}])
def test_a_stored_delivery_is_read_back(values: dict[str, Any]) -> None:
    """The definition that a season keeps, with every field named, is the same delivery again."""
    delivery = Delivery.model_validate(values)
    assert Delivery.model_validate(delivery.model_dump(mode="json")) == delivery


def test_rates_and_names_of_streams() -> None:
    """A rate counts a second, minute or hour; a stream may be a board's or a season's own."""
    stream = Delivery.model_validate({"to": "stream", "key": "g:<board>:<season>", "rate": "90/m"})
    assert stream.per_second == 1.5
    assert stream.stream_key("cup", "s1") == "g:cup:s1"
