"""docs/runbook.md has a place for every hold and every exit code that there is in the source, and for every alert."""

from __future__ import annotations

import ast
import importlib
import re

import yaml

from leaderboard.errors import FinaleError
from tests.support.holds import FOLDERS, REPOSITORY, reasons, subclasses

RUNBOOK = (REPOSITORY / "docs/runbook.md").read_text("utf-8")
HEADINGS = set(re.findall(r"^### (.+)$", RUNBOOK, re.MULTILINE))
#: Holds whose message is put together elsewhere, and what they say.
COMPOSED = {
    "archive/removal.py: error.message": [],  # that of the hold which is given a longer detail
    "jobs/seasons/renaming.py: reason": ["…/… has ended before … was frozen"],
    "jobs/seasons/runner.py: verdict.reason": [],  # any of those that a step plans
    "jobs/steps/clean.py: facts.foreign": ["the live key … is a …, not a sorted set"],
    "jobs/steps/snapshot.py: _gone(facts)": ["… shards do not exist"],
    "…: … …": [
        "…: the grants wait for an approval",
        "…: the grants pass the budget of the reward table, so nobody is paid",
        "…: the grants are not those that were approved",
    ],
}
#: Told as the detail of a hold.
DETAILS = {"the frozen key does not exist, and the old name does"}


def test_every_hold_has_its_section() -> None:
    """Each message with which a season can be held is a heading, and no heading is of a message that is gone."""
    found = reasons()
    assert len(found) > 20
    wanted = {heading for reason in found for heading in COMPOSED.get(reason, [reason])}
    assert wanted - HEADINGS == set(), {reason: found.get(reason) for reason in wanted - HEADINGS}
    assert HEADINGS - wanted - DETAILS == set()
    assert COMPOSED.keys() <= found.keys()


def codes() -> dict[int, set[str]]:
    """Return the classes of errors by exit code."""
    names = subclasses("FinaleError")
    found: dict[int, set[str]] = {}
    for folder in FOLDERS:
        for path in (REPOSITORY / folder).rglob("*.py"):
            defined = [node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]
            for name in set(defined) & names:
                module = importlib.import_module(str(path.relative_to(REPOSITORY).with_suffix("")).replace("/", "."))
                kind = getattr(module, name)
                assert issubclass(kind, FinaleError)
                found.setdefault(kind.exit_code, set()).add(name)
    return found


def test_every_exit_code_has_its_section() -> None:
    """Each code has one section, which names every class that ends with it."""
    sections = dict(re.findall(r"^## Exit code (\d+)[^\n]*\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))
    found = codes()
    assert {str(code) for code in found} | {"0", "2", "130", "141"} == sections.keys()
    told = {code: {name for name in names if f"`{name}`" in sections[str(code)]} for code, names in found.items()}
    assert told == found


def test_every_alert_has_its_row() -> None:
    """Each alert that is shipped has one row in the section about them, a description, and no row is of another."""
    (group,) = yaml.safe_load((REPOSITORY / "docs/monitoring/alerts.yml").read_text("utf-8"))["groups"]
    section = RUNBOOK.partition("\n## Alerts\n")[2]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [rule["alert"] for rule in group["rules"]]
    assert [rule["alert"] for rule in group["rules"] if "description" not in rule["annotations"]] == []
