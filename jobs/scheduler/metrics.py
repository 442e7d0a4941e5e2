"""Prometheus metrics of the ledger: the same from a daemon's port and from a file that cron writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jobs.scheduler.overdue import overdue
from leaderboard.errors import FinaleError
from ledger import agenda
from ledger.monitoring import Seen

SEASON = ("board", "season")
STEP = ("board", "season", "step")
#: Every metric of the ledger: what it means, and its labels. docs/monitoring/ may name no other.
METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "finale_up": ("Whether the ledger could be read", ()),
    "finale_paused": ("Whether everything is paused", ()),
    "finale_season_state": ("1 for the state in which a season is", (*SEASON, "state")),
    "finale_season_boundary_seconds": ("Seconds until the next step is due; negative once it is", STEP),
    "finale_season_overdue_seconds": ("Seconds for which a step has been due that waits for nobody", STEP),
    "finale_season_held": ("Whether the season waits for a person", SEASON),
    "finale_season_attempts": ("Tries of the present step that failed", SEASON),
    "finale_season_rows": ("Rows of the last snapshot", SEASON),
    "finale_season_drift_players": ("Players who differed between snapshot and ledger", SEASON),
    "finale_lease_age_seconds": ("How long a runner has been working on the season", SEASON),
    "finale_step_seconds": ("How long the step took last", ("board", "step")),
    "finale_last_success_timestamp_seconds": ("When the step was last taken", ("board", "step")),
    "finale_grants": ("Grants by what has become of them", ("board", "state")),
}


class LedgerCollector(Collector):
    """Looks at the ledger whenever metrics are asked for; when that fails, ``finale_up`` is 0 and there is no other."""

    def __init__(self, look: Callable[[], Seen | None]) -> None:
        self._look = look

    def describe(self) -> Iterable[Metric]:
        return []  # nothing is asked of the ledger to register

    def collect(self) -> Iterator[Metric]:
        families = {name: GaugeMetricFamily(name, told, labels=labels) for name, (told, labels) in METRICS.items()}
        seen: Seen | None = None
        with suppress(FinaleError):
            seen = self._look()
        if seen is None:
            families["finale_up"].add_metric((), 0)
            yield families["finale_up"]
            return
        families["finale_up"].add_metric((), 1)
        families["finale_paused"].add_metric((), float(seen.paused))
        for row in seen.seasons:
            _season(families, row, seen)
        for row in seen.steps:
            labels = (row["board"], row["step"])
            families["finale_last_success_timestamp_seconds"].add_metric(labels, row["at"].timestamp())
            if row["seconds"] is not None:
                families["finale_step_seconds"].add_metric(labels, row["seconds"])
        for row in seen.grants:
            families["finale_grants"].add_metric((row["board"], row["state"]), row["grants"])
        yield from families.values()


def _season(families: dict[str, Any], row: dict[str, Any], seen: Seen) -> None:
    labels = (row["board"], row["season"])
    families["finale_season_state"].add_metric((*labels, row["state"]), 1)
    families["finale_season_held"].add_metric(labels, float(row["held_at"] is not None))
    families["finale_season_attempts"].add_metric(labels, row["attempts"])
    for name, column in (("finale_season_rows", "rows"), ("finale_season_drift_players", "drift")):
        if row[column] is not None:
            families[name].add_metric(labels, row[column])
    if row["leased"]:
        families["finale_lease_age_seconds"].add_metric(labels, (seen.now - row["leased_at"]).total_seconds())
    timing = agenda.timing(row)
    if (at := timing.due_since) is None:
        return
    step = (*labels, str(timing.step))
    families["finale_season_boundary_seconds"].add_metric(step, (at - seen.now).total_seconds())
    families["finale_season_overdue_seconds"].add_metric(step, overdue(row, seen).total_seconds())


def text(seen: Seen | None) -> bytes:
    """Return the metrics in Prometheus' text format; None: the ledger could not be read."""
    registry = CollectorRegistry()
    registry.register(LedgerCollector(lambda: seen))
    return generate_latest(registry)
