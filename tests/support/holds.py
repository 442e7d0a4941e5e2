"""Every reason for which a season is held, and every class of error, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("archive", "config", "jobs", "leaderboard", "ledger", "live", "reconcile", "rewards")


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            yield str(path.relative_to(REPOSITORY)), ast.parse(path.read_text("utf-8"))


def subclasses(*roots: str) -> set[str]:
    """Return the names of the classes that derive from one of these, and these."""
    found = set(roots)
    classes = [node for _, tree in _trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while True:
        more = {node.name for node in classes if {ast.unparse(base) for base in node.bases} & found} - found
        if not more:
            return found
        found |= more


def reasons() -> dict[str, str]:
    """Return what each hold's message says, with … for what is filled in, and the place in the source.

    A message that is no literal stands as its expression, under ``path: expression``.
    """
    raised = subclasses("SeasonHeldError") | {"Held"}
    found: dict[str, str] = {}
    for path, tree in _trees():
        foreign = path == "ledger/live_checks.py"  # its Held is what a player has
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node) in raised and node.args and not foreign:
                text = _text(node.args[0])
                found[text or f"{path}: {ast.unparse(node.args[0])}"] = f"{path}:{node.lineno}"
    return found


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""
