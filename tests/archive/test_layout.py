"""Paths of the store: made from checked names, and read back."""

from __future__ import annotations

import pytest

from archive import layout
from leaderboard.errors import ConfigError, InputError


def test_paths_are_those_of_the_format() -> None:
    """The paths that docs and readers rely on."""
    assert layout.published_dir("goals", "s2021", "standings") == "standings/board=goals/season=s2021"
    assert layout.published_dir("goals", "s2021", "grants") == "grants/board=goals/season=s2021"
    assert layout.seal_path("goals", "s2021", "standings") == "seals/goals/s2021/standings.json"
    assert layout.seal_path("goals", "s2021", "grants") == "seals/goals/s2021/grants.json"
    assert layout.staging_dir("goals", "s2021", "f7-1") == "staging/goals/s2021/f7-1"
    assert layout.report_path("goals", "s2021", "drift-f7.json") == "reports/goals/s2021/drift-f7.json"
    assert layout.part_name(0) == "part-00000.parquet"
    assert layout.part_number("part-00012.parquet") == 12


def test_paths_are_read_back() -> None:
    """What names a part or a seal is told apart from everything else."""
    part = "part-00002.parquet"
    assert layout.parse_part(f"standings/board=b/season=s/{part}") == layout.PartPlace("b", "s", 2, kind="standings")
    assert layout.parse_part(f"grants/board=b/season=s/{part}") == layout.PartPlace("b", "s", 2, kind="grants")
    assert layout.parse_part(f"staging/b/s/a-1/{part}") == layout.PartPlace("b", "s", 2, attempt="a-1")
    assert layout.parse_seal("seals/b/s/grants.json") == layout.SealPlace("b", "s", "grants")


@pytest.mark.parametrize(
    "path",
    [
        "staging/b/s/a-1/notes.txt",
        "staging/b/s/A_1/part-00000.parquet",
        "staging/b/s/a-1/deeper/part-00000.parquet",
        "staging/B/s/a-1/part-00000.parquet",
        "staging/b/nan/a-1/part-00000.parquet",
        "staging/b/s/a-1/part-0.parquet",
        "staging/b/s/a-1/part-00000.parquet.tmp",
        "standings/board=b/part-00000.parquet",
        "elsewhere/b/s/a-1/part-00000.parquet",
        "seals/b/s/other.json",
        "seals/b/s/standings.json.bak",
        "",
    ],
)
def test_what_cannot_be_parsed_is_nothing(path: str) -> None:
    """Such a path is neither part nor seal, so nothing ever sweeps it."""
    assert layout.parse_part(path) is None
    assert layout.parse_seal(path) is None


@pytest.mark.parametrize("name", ["a/b", "a b", "s=1", "ü", "..", "", "2026", "nan", "A", "a.b"])
def test_c30_partition_values_have_a_strict_alphabet(name: str) -> None:
    """C30: what would be escaped, or guessed to be a number or a null, never becomes a path."""
    for make in (
        lambda: layout.published_dir(name, "s", "standings"),
        lambda: layout.published_dir("b", name, "grants"),
        lambda: layout.seal_path("b", name, "standings"),
        lambda: layout.staging_dir(name, "s", "a"),
        lambda: layout.report_path(name, "s", "x.json"),
    ):
        with pytest.raises(ConfigError):
            make()


def test_attempts_parts_and_reports_are_checked() -> None:
    """An attempt, a part's number and a report's name are checked as well."""
    for attempt in ("", "-a", "a/b", "a.b", "..", "A"):
        with pytest.raises(InputError):
            layout.staging_dir("b", "s", attempt)
    for number in (-1, 100_000):
        with pytest.raises(InputError):
            layout.part_name(number)
    for name in ("", "../x.json", "x", ".json"):
        with pytest.raises(InputError):
            layout.report_path("b", "s", name)
