"""The seal: what it holds, that it is read back, and that nonsense is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from archive import seal as seals
from archive.parts import Part
from archive.seal import Chain, Seal, StandingFacts, build, same_content
from archive.sealed_grants import GrantFacts
from leaderboard.errors import ArchiveMismatchError
from leaderboard.season import Bounds
from tests.archive.sealed import packed_draft


def standings_seal(**fields: Any) -> Seal:
    return packed_draft().seal(**fields)


def grants_seal(**fields: Any) -> Seal:
    parts = (Part("part-00000.parquet", 2, 900, "ab" * 32),)
    facts = GrantFacts("f2-1", 2, parts, "cd" * 32, {"version": 1, "rule": [{"name": "a"}]}, {"gems": 20})
    return standings_seal(facts=facts, reconcile=None, **fields)


@pytest.mark.parametrize("made", [standings_seal(), grants_seal(), standings_seal(chain=Chain(4, "ef" * 32))])
def test_is_read_back_as_it_was_built(made: Seal) -> None:
    """Parsing gives the seal again, and building that gives the same bytes."""
    data = build(made)
    assert Seal.parse(data) == made
    assert build(Seal.parse(data)) == data


def test_is_json_with_sorted_keys() -> None:
    """UTF-8, sorted, a line break at the end; exactly the fields of the format."""
    data = build(standings_seal(repaired={"players": ["Zoë"]}, accepted_drift={"by": "anna", "why": "known"}))
    value = json.loads(data)
    assert data.endswith(b"}\n")
    assert "Zoë".encode() in data
    assert list(value) == sorted(value)
    assert list(value) == [
        "accepted_drift",
        "attempt",
        "board",
        "chain",
        "digest",
        "first_score",
        "format",
        "keys",
        "kind",
        "last_score",
        "parts",
        "points_sum",
        "reconcile",
        "repaired",
        "rows",
        "sealed_at",
        "season",
        "software",
    ]
    assert value["season"] == {
        "id": "s20261204",
        "starts_at": "2026-12-04T00:00:00+00:00",
        "ends_at": "2026-12-05T00:00:00+00:00",
    }
    assert set(json.loads(build(grants_seal()))) == {
        *(
            "attempt",
            "board",
            "chain",
            "digest",
            "facts",
            "format",
            "kind",
            "parts",
            "reward_table",
            "rows",
            "sealed_at",
            "season",
        ),
        *("software", "standings_seal", "sums"),
    }


def test_knows_its_places() -> None:
    """Path, published place and staging follow from what is sealed."""
    made = standings_seal()
    assert made.path == "seals/daily/s20261204/standings.json"
    assert made.place == "standings/board=daily/season=s20261204"
    assert made.staging == "staging/daily/s20261204/f1-1"
    assert grants_seal().path == "seals/daily/s20261204/grants.json"
    assert grants_seal().place == "grants/board=daily/season=s20261204"


def test_scores_survive_bit_for_bit() -> None:
    """First and last score come back as the same doubles; -0 is 0."""
    facts = packed_draft().facts
    assert isinstance(facts, StandingFacts)
    for score in (3.3, 1e17, 5e-324, 2.0**53 - 1, -1.5):
        read = StandingFacts.from_json(json.loads(json.dumps(replace(facts, first_score=score).to_json())))
        assert read.first_score == score
    assert str(replace(facts, last_score=-0.0).to_json()["last_score"]) == "0.0"


def changed(**fields: Any) -> bytes:
    value = json.loads(build(standings_seal())) | fields
    return json.dumps({name: content for name, content in value.items() if content != "DROP"}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        build(standings_seal())[:-20],
        changed(kind="other"),
        changed(kind="grants"),
        changed(digest="DROP"),
        changed(extra=1),
        changed(rows=11),
        changed(rows="10"),
        changed(digest="short"),
        changed(parts=[]),
        changed(parts=json.loads(build(standings_seal()))["parts"][::-1]),
        changed(parts=[{"name": "part-00000.parquet"}]),
        changed(attempt="../.."),
        changed(board={}),
        changed(board={"name": "../x"}),
        changed(board=[]),
        changed(season={"id": "s1"}),
        changed(season={"id": "..", "starts_at": "2026-12-04T00:00:00+00:00", "ends_at": "2026-12-05T00:00:00+00:00"}),
        changed(season={"id": "s1", "starts_at": "2026-12-04T00:00:00", "ends_at": "2026-12-05T00:00:00"}),
        changed(chain={"number": 0, "previous": None}),
        changed(chain={"number": 1, "previous": "ab" * 32}),
        changed(chain={"number": 2, "previous": None}),
        changed(keys=[]),
        changed(keys=[{"key": 1, "rows": 10, "digest": "ab" * 32}]),
        changed(points_sum=1.5),
        changed(first_score=None),
        changed(last_score="7"),
        changed(first_score=float("nan")),
        changed(sealed_at="yesterday"),
    ],
)
def test_nonsense_is_refused(data: bytes) -> None:
    """Whatever is not a whole seal is an ArchiveMismatchError, never another exception."""
    with pytest.raises(ArchiveMismatchError, match=r"no seal|no part"):
        Seal.parse(data)


def test_a_later_format_is_told() -> None:
    """A seal of a format not known here says so, with the remedy."""
    with pytest.raises(ArchiveMismatchError, match="newer Finale"):
        Seal.parse(changed(format="2"))


def test_what_could_not_be_read_back_is_never_built() -> None:
    """A mistake of the caller is found before anything is committed."""
    with pytest.raises(ArchiveMismatchError):
        build(standings_seal(chain=Chain(2, None)))


def test_i2_same_content_ignores_how_it_came_about() -> None:
    """I2: time, version, attempt, chain and the settling of drift do not count."""
    one = standings_seal()
    other = standings_seal(
        facts=replace(one.facts, attempt="f9-3"),
        chain=Chain(7, "ab" * 32),
        software="9.9",
        sealed_at=datetime(2027, 1, 1, tzinfo=UTC),
        repaired=["p1"],
    )
    assert same_content(one, other) == []


def test_i2_same_content_names_what_differs() -> None:
    """I2: bounds, rows, digest and parts do count, and each difference is named."""
    one = standings_seal()
    assert isinstance(one.facts, StandingFacts)
    moved = Bounds(one.bounds.starts_at, one.bounds.ends_at + timedelta(hours=1), one.bounds.id)
    assert same_content(one, standings_seal(bounds=moved)) == [
        'ends_at: "2026-12-05T00:00:00+00:00" and "2026-12-05T01:00:00+00:00"'
    ]
    [line] = same_content(one, standings_seal(facts=replace(one.facts, digest="ab" * 32)))
    assert line.startswith("digest: ")
    other = packed_draft(rows=11).seal()
    names = [line.partition(":")[0] for line in same_content(one, other)]
    assert {"rows", "digest", "part-00002.parquet"} <= set(names)
    assert "kind" in [line.partition(":")[0] for line in same_content(one, grants_seal())]
    table = replace(grants_seal().facts, reward_table={"version": 2})
    assert [line.partition(":")[0] for line in same_content(grants_seal(), replace(grants_seal(), facts=table))] == [
        "reward_table"
    ]


def test_hash_of_a_seal() -> None:
    """The hash is the SHA-256 of the exact bytes, as sha256sum prints it."""
    assert seals.sha256(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
