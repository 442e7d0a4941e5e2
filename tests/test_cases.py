"""Every case in docs/cases.md has a test that bears its number, or a line that says why it has none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CASES = TESTS.parent / "docs" / "cases.md"
PARTS = "ABCDEFGH"
#: Beside a case: ``No test: `` and why it cannot arise here.
EXCUSE = "No test:"


@cache
def cases() -> dict[str, str]:
    """Return the paragraph of each case by its number, like ``c01``."""
    found = {}
    for part in re.split(r"^## ", CASES.read_text(), flags=re.MULTILINE)[1:]:
        if part[0] in PARTS:
            for paragraph in re.split(r"^\*\*(?=C\d)", part, flags=re.MULTILINE)[1:]:
                found[paragraph.partition("**")[0].lower()] = paragraph
    return found


@cache
def numbered() -> dict[str, list[str]]:
    """Return the tests that bear each case's number in their names."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for number in re.findall(r"(?<=_)c\d\d(?=_|$)", node.name):
                    found.setdefault(number, []).append(node.name)
    return found


def test_the_parts_are_found() -> None:
    """The reading of docs/cases.md finds the first and the last case of each part."""
    ends = "c01 c08 c10 c24 c26 c40 c42 c47 c48 c61 c62 c73 c74 c83 c84 c86"
    assert set(ends.split()) <= cases().keys()


@pytest.mark.parametrize("number", cases())
def test_each_case_has_its_test(number: str) -> None:
    """A case without a test is a case that comes back."""
    assert numbered().get(number) or EXCUSE in cases()[number]
