"""In the child: hangs the counter into the drivers, below everything that Finale makes of their answers and errors."""

from __future__ import annotations

from typing import Any

from jobs.seasons.runner import _Running
from tests.harness import http_hooks, redis_hooks, sql_hooks, store_hooks
from tests.harness.calls import BETWEEN, Calls


def install(calls: Calls, store: str) -> None:
    """Count every outside call of this process in ``calls``; ``store`` is the URL of the store that it uses."""
    _hook_steps(calls)
    redis_hooks.install(calls)
    sql_hooks.install(calls)
    store_hooks.install(calls, store)
    http_hooks.install(calls)


def _hook_steps(calls: Calls) -> None:
    running: Any = _Running
    take = running._take

    def taken(self: Any, season: Any, step: Any) -> Any:
        calls.step = str(step)
        try:
            return take(self, season, step)
        finally:
            calls.step = BETWEEN

    running._take = taken
