"""docs/monitoring: the rules and the dashboard ask only for what is exported, and have what their readers need.

Neither Prometheus' own checker nor Grafana is here to load them: what each requires is compared by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from jobs.scheduler.health import Health, served
from jobs.scheduler.metrics import METRICS
from ledger import monitoring
from tests.support.cli import World, finale
from tests.support.watching import get

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
#: What a daemon tells of itself, beside what the ledger tells.
OWN = {"finale_rounds_total", "finale_boards_in_flight", "finale_server_up"}
#: Of PromQL, what the files use.
FUNCTIONS = {"max", "min", "sum", "time", "rate", "absent", "label_values"}
CLOSES = {"(": ")", "{": "}", "[": "]"}
NOW = datetime.now(UTC).replace(microsecond=0)
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    assert group["name"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return found


def targets() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Return every panel's targets, each with its panel."""
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel, target


def expressions() -> list[str]:
    queries = [variable["query"] for variable in dashboard()["templating"]["list"] if variable["type"] == "query"]
    return [*(rule["expr"] for rule in rules()), *(target["expr"] for _, target in targets()), *queries]


@pytest.fixture
def exported(world: World) -> dict[str, set[str]]:
    """Every metric that a daemon's port exports once, with the labels of its samples."""
    season = f"starts_at = {(NOW - timedelta(hours=3)).isoformat()}, ends_at = {(NOW - timedelta(hours=1)).isoformat()}"
    world.configure(
        '[board.cup]\nties = "shared"\ngrace = "0s"\nkeep_live = "7d"\nrewards = "cup.toml"\n'
        f'calendar = {{ seasons = [{{ id = "one", {season} }}] }}',
        cup=TABLE,
    )
    world.seen("cup", NOW - timedelta(hours=2))
    world.played("cup", f"m1,ann,5,{(NOW - timedelta(hours=2)).isoformat()}")
    finale("tick").ok()
    world.sql("update finale.lease set expires_at = clock_timestamp() + interval '1h'")  # as if somebody worked on it
    health = Health(patience=60)
    health.round(ready=True, in_flight=0)
    with (
        world.outside() as outside,
        served(health, lambda: monitoring.look(outside.database, outside.boards), "127.0.0.1", 0) as port,
    ):
        text = get(port, "/metrics")[1]
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def selectors(text: str) -> list[tuple[str, set[str]]]:
    """Return each metric that an expression names, with the labels that it matches."""
    found = re.findall(r"(finale_\w+)(?:\{([^}]*)\})?", text)
    return [(name, set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"', matchers))) for name, matchers in found]


def grouped(text: str) -> set[str]:
    """Return the labels that an expression's result has, of those that it groups by."""
    return {label.strip() for labels in re.findall(r"by \(([^)]*)\)", text) for label in labels.split(",")}


def test_what_is_asked_for_is_exported(exported: dict[str, set[str]]) -> None:
    """Every metric and label of an expression is in what one daemon exports, and every metric is asked for."""
    named = set[str]()
    for text in expressions():
        for metric, labels in selectors(text):
            assert labels <= exported[metric], text
            assert grouped(text) <= exported[metric], text
            named.add(metric)
    assert named == METRICS.keys() | OWN
    assert named <= exported.keys()
    assert all(set(labels) == exported[name] for name, (_, labels) in METRICS.items())


def test_the_expressions_are_whole() -> None:
    """Brackets close in order, a matcher is a label, an operator and a string, and functions are PromQL's."""
    for text in expressions():
        opened = list[str]()
        for sign in re.sub(r'"[^"]*"', "", text):
            if sign in CLOSES:
                opened.append(CLOSES[sign])
            elif sign in CLOSES.values():
                assert opened and opened.pop() == sign, text
        assert opened == [], text
        for matchers in re.findall(r"\{([^}]*)\}", text):
            assert re.fullmatch(r'\w+(=~|!~|!=|=)"[^"]+"(,\w+(=~|!~|!=|=)"[^"]+")*', matchers), text
        called = set(re.findall(r"(\w+)\s*(?:by \([^)]*\)\s*)?\(", text)) - {"by"}
        assert called <= FUNCTIONS, text
        assert not re.search(r"rate\(\w+[^[\]]*\)", text), "a rate is over a range"


def test_a_rule_has_what_prometheus_requires() -> None:
    """A name of its own, a duration it can read, labels and annotations of text, templates of labels that are there."""
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[A-Z]\w+", rule["alert"]) and re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))
        assert rule["labels"].keys() == {"severity"} and rule["labels"]["severity"] in ("page", "ticket")
        assert "summary" in rule["annotations"]
        for text in rule["annotations"].values():
            assert text.count("{{") == text.count("}}")
            for template in re.findall(r"\{\{(.*?)\}\}", text):
                parts = re.fullmatch(r" \$(?:value|labels\.(\w+))(?: \| humanizeDuration)? ", template)
                assert parts, template
                assert parts[1] is None or parts[1] in grouped(rule["expr"]), text


def test_the_dashboard_has_what_grafana_requires() -> None:
    """Schema, title, a choice of data source that every query uses, ids of their own, places that do not overlap."""
    found = dashboard()
    assert found["schemaVersion"] >= 36 and found["title"] and re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", found["uid"])
    variables = {one["name"]: one for one in found["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert all(one["datasource"] == source for one in variables.values() if one["type"] == "query")
    ids = [panel["id"] for panel in found["panels"]]
    assert len(set(ids)) == len(ids) and all(isinstance(one, int) for one in ids)
    taken = set[tuple[int, int]]()
    for panel in found["panels"]:
        assert panel["title"] and panel["type"] in ("stat", "table", "timeseries") and panel["datasource"] == source
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel, target in targets():
        assert target["datasource"] == source and target["refId"], panel["title"]
        assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables.keys()
        assert set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))) <= grouped(target["expr"])
    for panel in found["panels"]:
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
