"""Grants against a brute force in plain Python, their ids, and that batches, order and totals cannot change them."""

from collections import Counter
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rewards import compute
from rewards.compute import GRANTS_SCHEMA, grants_schema
from rewards.facts import NO_FACTS
from rewards.ids import grant_id as one_id
from rewards.ids import line_key
from rewards.plan import plan
from rewards.table import LIMIT
from rewards.totals import Totals
from tests.rewards.brute import Brute, fact_tables, grant_id, make_table, player, rule, standings


def batches(rows, cuts=(), binary=False):
    """The rows as record batches, split before each index of ``cuts``."""
    kind = pa.binary() if binary else pa.string()
    edges = [0, *sorted(cut for cut in cuts if 0 <= cut <= len(rows)), len(rows)]
    for start, end in pairwise(edges):
        part = rows[start:end]
        yield pa.record_batch(
            {
                "position": pa.array([row[0] for row in part], pa.int64()),
                "rank": pa.array([row[1] for row in part], pa.int64()),
                "player_id": pa.array([row[2] for row in part], pa.binary()).cast(kind),
                "points": pa.array([row[3] if len(row) > 3 else 0 for row in part], pa.int64()),
                "score": pa.array([0.0] * len(part)),
            }
        )


def granted(read, table, board, season, facts=NO_FACTS):
    """The grants of the batches that ``read()`` gives, which is called twice."""
    return compute.grants(read(), plan(read(), table, facts), board, season)


def rows_of(found):
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def grants(given, table, board, season):
    held = list(given)
    return granted(lambda: iter(held), table, board, season)


spans = st.one_of(
    st.integers(1, 12).map(str),
    st.integers(1, 12).map("{}-".format),
    st.tuples(st.integers(1, 12), st.integers(0, 8)).map(lambda pair: f"{pair[0]}-{pair[0] + pair[1]}"),
)
percentiles = st.one_of(
    st.sampled_from(["0.29", "7", "33.3", "1", "50", "100", "99.999999999999999", "0.000000000000001", "12.5"]),
    st.tuples(st.integers(0, 98), st.integers(1, 50)).map(lambda pair: f"{pair[0]}-{min(100, pair[0] + pair[1])}"),
)
points = st.integers(-1, 5)
LEAGUES = ["gold", "silver", "tin"]


@st.composite
def rules(draw, split=False, league=None):
    kind = draw(st.sampled_from(["rank", "percentile", "all", "points", *([] if split else ["position"])]))
    found = {}
    if kind in ("rank", "position"):
        found[kind] = draw(spans)
    elif kind == "percentile":
        found[kind] = draw(percentiles)
    elif kind == "all":
        found["all"] = True
    if kind == "points" or draw(st.integers(0, 3)) == 0:
        found[draw(st.sampled_from(["at_least", "at_most"]))] = draw(points)
    if not split and draw(st.integers(0, 3)) == 0:
        found["previous"] = draw(st.sampled_from(["1-3", "1-", "2-4"]))
    if league or (not split and league is None and draw(st.integers(0, 2)) == 0):
        found["league"] = draw(st.sampled_from(["*", *LEAGUES]))
    return found


items = st.dictionaries(st.sampled_from(["gems", "gold", "title.champion"]), st.integers(1, 50), min_size=1)


@st.composite
def tables(draw):
    ties = draw(st.sampled_from(["share", "position", "split"]))
    leagued = draw(st.booleans()) if ties == "split" else None
    found = draw(st.lists(rules(split=ties == "split", league=leagued), min_size=1, max_size=4))
    head = {
        "ties": ties,
        "match": draw(st.sampled_from(["first", "all"])),
        "at_line": draw(st.sampled_from(["in", "out"])),
        "removed": draw(st.sampled_from(["close_up", "leave_gap"])),
        "leagues": {"file": "x.csv"},
    }
    if draw(st.booleans()):
        head["exclude"] = [{"file": "x.csv"}]
    asked = {}
    if draw(st.integers(0, 2)) == 0:
        asked["min_matches"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 2)) == 0:
        asked["min_points"] = draw(points)
    if draw(st.integers(0, 2)) == 0:
        asked["sql"] = "select 1"
    if asked:
        head["eligible"] = asked
    return make_table(*[rule(f"rule {at}", None, each, **draw(items)) for at, each in enumerate(found)], **head)


scores = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=20).map(
    lambda values: sorted(values, reverse=True)
)
somebody = st.integers(0, 19).map(player)
facts = st.fixed_dictionaries(
    {
        "excluded": st.sets(somebody, max_size=6),
        "eligible": st.sets(somebody, min_size=8),
        "matches": st.dictionaries(somebody, st.integers(1, 4), min_size=10),
        "leagues": st.dictionaries(somebody, st.sampled_from(LEAGUES)),
        "previous": st.dictionaries(somebody, st.integers(1, 6)),
    }
)
NOBODY = {"excluded": set(), "eligible": None, "matches": None, "leagues": {}, "previous": {}}


@settings(deadline=None, max_examples=75)
@given(scores, tables(), facts, st.lists(st.integers(0, 20), max_size=4))
@example([], make_table(rule("a")), NOBODY, [])
@example([7], make_table(rule("a", "1"), rule("b", "2")), NOBODY, [0, 1])
@example([7, 7], make_table(rule("a", "1"), rule("b", "2")), NOBODY, [1])
@example([3] * 12, make_table(rule("a", "1-3"), rule("b", "4-")), NOBODY, [2, 3, 4])
@example([3] * 12, make_table(rule("a", "1-3", gems=50), rule("b", "4-"), ties="split"), NOBODY, [2])
@example([9, 5, 5, 5, 1], make_table(rule("a", "1-2"), rule("b", "3-")), NOBODY, [2])
@example([9, 8], make_table(rule("a", "1-3", gems=7), ties="split"), NOBODY, [])
def test_grants_equal_brute_force(values, table, known, cuts):
    """Every kind of rule, policy of ties, of lines and of exclusions: the grants are those of loops, in order."""
    rows = standings(values)
    if table.eligible is None or not table.eligible.given:
        known = {**known, "eligible": None}
    expected = Brute(rows, table, **known).grants("goals", "s2026")
    found = granted(lambda: batches(rows, cuts), table, "goals", "s2026", fact_tables(**known))
    assert rows_of(found) == expected


@pytest.mark.parametrize("ties", ["share", "position", "split"])
@pytest.mark.parametrize("removed", ["close_up", "leave_gap"])
def test_a_big_board_equals_brute_force_wherever_ties_and_blocks_end(monkeypatch, ties, removed):
    """Ties longer than the blocks in which places are counted: the same grants as by loops."""
    monkeypatch.setattr("rewards.ladder._BLOCK", 7)
    monkeypatch.setattr(compute, "_SLICE", 11)
    rows = standings([9, 8, *[7] * 40, *[6] * 25, 5, *[4] * 60, 3])
    table = make_table(
        rule("top", "1-20", gems=100),
        rule("share", None, {"percentile": "33.3"}, gems=7, gold=1),
        rule("rest"),
        ties=ties,
        removed=removed,
        exclude=[{"file": "x.csv"}],
    )
    excluded = {player(at) for at in (0, 3, 4, 5, 20, 41, 42, 66, 67, 129)}
    expected = Brute(rows, table, excluded).grants("goals", "s2026")
    found = rows_of(granted(lambda: batches(rows, [50]), table, "goals", "s2026", fact_tables(excluded=excluded)))
    assert found == expected


@pytest.mark.parametrize("binary", [False, True])
def test_who_is_excluded_and_not_on_the_board_is_known(binary):
    """In the order of the facts, wherever batches end; without exclusions nothing is known."""
    rows, table = standings([5, 4, 3]), make_table(rule("all", condition={"all": True}))
    facts = NO_FACTS.excluding([b"z", player(2), b" x", player(0)], "why", "file x", binary=binary)
    for cuts in ([], [1, 2]):
        marks = plan(batches(rows, cuts, binary), table, facts).marks
        assert marks.absent["player_id"].cast(pa.binary()).to_pylist() == [b"z", b" x"]
        assert marks.gone.tolist() == [True, False, True]
    assert plan(batches([], (), binary), table, facts).marks.absent.num_rows == 4
    assert plan(batches(rows), table).marks.absent is None


def test_no_players_no_grants():
    """An empty season, with or without an empty batch, grants nothing."""
    table = make_table(rule("everyone"))
    assert list(grants(iter([]), table, "goals", "s2026")) == []
    assert list(grants(batches([]), table, "goals", "s2026")) == []


@pytest.mark.parametrize(("ties", "champions"), [("share", 3), ("position", 1)])
def test_c74_everyone_tied(ties, champions):
    """C74: of players all tied, ``share`` makes each a champion and ``position`` only the first in board order."""
    table = make_table(rule("champion", "1"), rule("rest"), ties=ties)
    named = Counter(row[2] for row in rows_of(grants(batches(standings([5, 5, 5])), table, "goals", "s2026")))
    assert named["champion"] == champions
    assert named.total() == 3


@pytest.mark.parametrize(("ties", "tier"), [("share", 12), ("position", 10)])
def test_c74_tie_across_the_line_of_a_tier(ties, tier):
    """C74: ranks 1..8, then four tied at 9: "1-10" takes all four when shared, two of them by position."""
    table = make_table(rule("top ten", "1-10"), rule("rest"), ties=ties)
    rows = standings([20, 19, 18, 17, 16, 15, 14, 13, 9, 9, 9, 9, 1])
    named = Counter(row[2] for row in rows_of(grants(batches(rows), table, "goals", "s2026")))
    assert named == {"top ten": tier, "rest": 13 - tier}


def test_c75_a_score_of_zero_is_a_place():
    """C75: a player with no points is in the standings and is granted like anyone there."""
    table = make_table(rule("everyone"))
    assert len(rows_of(grants(batches(standings([3, 0, 0])), table, "goals", "s2026"))) == 3


def test_c78_grant_ids_are_golden():
    """I5, C78: ids written down once; another value here means that everyone would be paid again."""
    table = make_table(rule("champion", "1", **{"title.champion": 1, "gems": 5000}))
    rows = [(1, 1, b"player_000000001")]
    assert [row[0] for row in rows_of(grants(batches(rows), table, "goals", "s2026"))] == [
        "ed7e5ec5-2166-a43e-b91e-a0623bbfec96",
        "fe12ab35-0c0f-b5cc-2cca-188fb919e05a",
    ]


def test_c78_grant_ids_do_not_depend_on_place_or_amount():
    """C78: the id names board, season, player, rule and item, so a second computation meets the first one's rows."""
    first = rows_of(
        grants(batches([(1, 1, b"a"), (2, 2, b"b")]), make_table(rule("tier", "1-9", gems=5)), "goals", "s2026")
    )
    again = rows_of(
        grants(batches([(1, 1, b"b"), (2, 1, b"a")]), make_table(rule("tier", "1-9", gems=7)), "goals", "s2026")
    )
    assert first[0][0] == again[1][0]


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(), st.text()), min_size=2, max_size=2, unique=True))
@example([("a", "bc"), ("ab", "c")])
def test_c78_fields_cannot_run_into_each_other(pairs):
    """C78: "a" with "bc" and "ab" with "c" are different grants, since each field is hashed with its length."""
    keys = {line_key(board, season, "rule", "gems") for board, season in pairs}
    assert len({one_id(key, b"x") for key in keys}) == 2


def test_grant_ids_are_unique_over_slices(monkeypatch):
    """Every grant of a season has an id of its own, and the size of the slices taken changes nothing."""
    table = make_table(rule("top", "1-50", gems=2, gold=3), rule("everyone"), match="all")
    rows = standings(list(range(1000, 0, -1)))
    whole = rows_of(grants(batches(rows), table, "goals", "s2026"))
    monkeypatch.setattr(compute, "_SLICE", 7)
    assert rows_of(grants(batches(rows), table, "goals", "s2026")) == whole
    assert len({row[0] for row in whole}) == len(whole) == 1100


def test_schema_follows_the_board():
    """Text boards have text ids; binary boards binary ones, hashed by the same formula, also where no text."""
    table = make_table(rule("everyone"))
    (text,) = grants(batches([(1, 1, b"a")]), table, "goals", "s2026")
    (raw,) = grants(batches([(1, 1, b"\xff\x00")], binary=True), table, "goals", "s2026")
    (same,) = grants(batches([(1, 1, b"a")], binary=True), table, "goals", "s2026")
    assert text.schema == GRANTS_SCHEMA == grants_schema(binary=False)
    assert raw.schema == same.schema == grants_schema(binary=True)
    assert raw.column("grant_id")[0].as_py() == grant_id("goals", "s2026", b"\xff\x00", "everyone", "gems")
    assert same.column("grant_id")[0] == text.column("grant_id")[0]
    for batch in (text, raw):
        batch.validate(full=True)


@settings(deadline=None, max_examples=30)
@given(scores, tables(), facts, st.lists(st.integers(0, 60), max_size=4))
def test_totals_equal_brute_force(values, table, known, cuts):
    """Totals count rows, players, items and tiers exactly, wherever the batches are split; the digest too stays."""
    rows = standings(values)
    if table.eligible is None or not table.eligible.given:
        known = {**known, "eligible": None}
    expected = Brute(rows, table, **known).grants("goals", "s2026")
    found = granted(lambda: batches(rows), table, "goals", "s2026", fact_tables(**known))
    written = pa.Table.from_batches(found, GRANTS_SCHEMA)
    totals, whole = Totals(), Totals()
    edges = [0, *sorted(min(cut, written.num_rows) for cut in cuts), written.num_rows]
    for start, end in pairwise(edges):
        for batch in written.slice(start, end - start).to_batches():
            totals.add(batch)
    for batch in written.combine_chunks().to_batches():
        whole.add(batch)
    items = Counter()
    for row in expected:
        items[row[3]] += row[4]
    assert (totals.rows, totals.players) == (len(expected), len({row[5] for row in expected}))
    assert totals.items == items
    assert totals.tiers == Counter((row[2], row[3]) for row in expected)
    ids = sha256("".join(row[0] for row in expected).encode()).digest()
    amounts = sha256(b"".join(row[4].to_bytes(8, "little") for row in expected)).digest()
    assert totals.digest() == whole.digest() == sha256(ids + amounts).hexdigest()


def test_totals_do_not_overflow():
    """A sum past 2^63 stays exact."""
    table = make_table(rule("everyone", gems=LIMIT))
    totals = Totals()
    for batch in grants(batches(standings([1] * 2000)), table, "goals", "s2026"):
        totals.add(batch)
    assert totals.items == {"gems": 2000 * LIMIT}
    assert totals.items["gems"] > np.iinfo(np.int64).max


def test_totals_refuse_another_order():
    """Grants out of position order would be counted as other players; they are refused."""
    table = make_table(rule("everyone"))
    (batch,) = grants(batches(standings([3, 2, 1])), table, "goals", "s2026")
    totals = Totals()
    totals.add(batch.slice(2))
    with pytest.raises(ValueError, match="position order"):
        totals.add(batch)
