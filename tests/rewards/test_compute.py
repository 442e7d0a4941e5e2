"""Grants against a brute force in plain Python, their ids, and that batches, order and totals cannot change them."""

import uuid
from collections import Counter
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewards import compute
from rewards.compute import GRANTS_SCHEMA, Totals, grants, grants_schema
from rewards.table import LIMIT, RewardTable


def make_table(*rules, ties="share", match="first"):
    return RewardTable.model_validate({"version": 1, "ties": ties, "match": match, "rule": list(rules)})


def rule(name, rank=None, **grant):
    condition = {"all": True} if rank is None else {"rank": rank}
    return {"name": name, **condition, "grant": grant or {"gems": 1}}


def standings(scores):
    """Standings of players in the order given, equal scores sharing a rank (1, 1, 3)."""
    rows, rank = [], 0
    for at, score in enumerate(scores):
        rank = rank if at and score == scores[at - 1] else at + 1
        rows.append((at + 1, rank, f"p{at}é".encode()))
    return rows


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
                "score": pa.array([0.0] * len(part)),
            }
        )


def rows_of(granted):
    return [tuple(row.values()) for batch in granted for row in batch.to_pylist()]


def grant_id(board, season, player, rule_name, item):
    """The formula of the docstring, written out independently."""
    fields = [board.encode(), season.encode(), player, rule_name.encode(), item.encode()]
    digest = sha256(b"".join(len(part).to_bytes(4, "big") + part for part in fields)).digest()
    return str(uuid.UUID(bytes=digest[:16]))


def brute_force(rows, table, board, season):
    expected = []
    for position, rank, player in rows:
        place = rank if table.ties == "share" else position
        for each in table.rule:
            if each.rank is None:
                takes = True
            elif "-" not in each.rank:
                takes = place == int(each.rank)
            else:
                low, high = each.rank.split("-")
                takes = int(low) <= place and (high == "" or place <= int(high))
            if not takes:
                continue
            for item, amount in each.grant.items():
                uid = grant_id(board, season, player, each.name, item)
                expected.append((uid, player.decode(), each.name, item, amount, position, rank))
            if table.match == "first":
                break
    return expected


ranks = st.one_of(
    st.none(),
    st.integers(1, 12).map(str),
    st.integers(1, 12).map("{}-".format),
    st.tuples(st.integers(1, 12), st.integers(0, 8)).map(lambda pair: f"{pair[0]}-{pair[0] + pair[1]}"),
)
grant_items = st.dictionaries(st.sampled_from(["gems", "gold", "title.champion"]), st.integers(1, LIMIT), min_size=1)
tables = st.builds(
    lambda parts, ties, match: make_table(
        *[rule(f"rule {at}", rank, **grant) for at, (rank, grant) in enumerate(parts)], ties=ties, match=match
    ),
    st.lists(st.tuples(ranks, grant_items), min_size=1, max_size=4),
    st.sampled_from(["share", "position"]),
    st.sampled_from(["first", "all"]),
)
scores = st.lists(st.integers(0, 4), max_size=20).map(lambda values: sorted(values, reverse=True))


@given(scores, tables, st.lists(st.integers(0, 20), max_size=4))
@example([], make_table(rule("a")), [])
@example([7], make_table(rule("a", "1"), rule("b", "2")), [0, 1])
@example([7, 7], make_table(rule("a", "1"), rule("b", "2")), [1])
@example([3] * 12, make_table(rule("a", "1-3"), rule("b", "4-")), [2, 3, 4])
@example([9, 5, 5, 5, 1], make_table(rule("a", "1-2"), rule("b", "3-")), [2])
def test_grants_equal_brute_force(values, table, cuts):
    """Grants, in order, are those of a loop over players and rules, wherever the batches are split."""
    rows = standings(values)
    assert rows_of(grants(batches(rows, cuts), table, "goals", "s2026")) == brute_force(rows, table, "goals", "s2026")


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
        "4700dadd-65d8-f980-0ea0-8b781924f10b",
        "e415851b-5568-ebf6-a8b2-3a6eb75dc070",
    ]


def test_c78_grant_ids_do_not_depend_on_place_or_amount():
    """C78: the id names board, season, player, rule and item, so a second computation meets the first one's rows."""
    first = rows_of(grants(batches([(1, 1, b"a")]), make_table(rule("tier", "1-9", gems=5)), "goals", "s2026"))
    again = rows_of(grants(batches([(4, 3, b"a")]), make_table(rule("tier", "1-9", gems=7)), "goals", "s2026"))
    assert first[0][0] == again[0][0]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=2, max_size=2, unique=True))
@example([("a", "bc"), ("ab", "c")])
def test_c78_fields_cannot_run_into_each_other(pairs):
    """C78: "a" with "bc" and "ab" with "c" are different grants, since each field is hashed with its length."""
    table = make_table(rule("everyone"))
    ids = {rows_of(grants(batches([(1, 1, b"x")]), table, board, season))[0][0] for board, season in pairs}
    assert len(ids) == 2


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


@given(scores, tables, st.lists(st.integers(0, 60), max_size=4))
def test_totals_equal_brute_force(values, table, cuts):
    """Totals count rows, players, items and tiers exactly, past 64 bits too, wherever the batches are split."""
    rows = standings(values)
    expected = brute_force(rows, table, "goals", "s2026")
    written = pa.Table.from_batches(grants(batches(rows), table, "goals", "s2026"), GRANTS_SCHEMA)
    totals = Totals()
    edges = [0, *sorted(min(cut, written.num_rows) for cut in cuts), written.num_rows]
    for start, end in pairwise(edges):
        for batch in written.slice(start, end - start).to_batches():
            totals.add(batch)
    items = Counter()
    for row in expected:
        items[row[3]] += row[4]
    assert (totals.rows, totals.players) == (len(expected), len({row[5] for row in expected}))
    assert totals.items == items
    assert totals.tiers == Counter((row[2], row[3]) for row in expected)


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
