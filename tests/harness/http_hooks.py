"""Requests through httpx, each with the head of its answer."""

from __future__ import annotations

from typing import Any

import httpx

from tests.harness.calls import Calls
from tests.harness.plan import Deed


def install(calls: Calls) -> None:
    """Count every request."""
    transport: Any = httpx.HTTPTransport
    handle = transport.handle_request

    def error(lost: Deed) -> Exception:
        return (httpx.ReadTimeout if lost == "timeout" else httpx.ReadError)(f"planned {lost}")

    def hooked(self: Any, request: Any) -> Any:
        return calls.passed("http", request.method, lambda: handle(self, request), error)

    transport.handle_request = hooked
