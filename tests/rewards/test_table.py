"""Reward tables: what is read, what is refused and with which words, and that a table survives its seal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.errors import ConfigError
from rewards.rule import span
from rewards.table import LIMIT, RewardTable, parse_table

GOALS = """\
version = 1
ties    = "share"
match   = "first"

[[rule]]
name  = "champion"
rank  = "1"
grant = { "title.champion" = 1, gems = 5000 }

[[rule]]
name  = "top ten"
rank  = "2-10"
grant = { gems = 1000 }

[[rule]]
name  = "took part"
all   = true
grant = { gems = 10 }
"""


def table(rule: str = 'name = "a"\nrank = "1"\ngrant = { gems = 1 }', head: str = "version = 1") -> str:
    return f"{head}\n[[rule]]\n{rule}\n"


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_table(text, "rewards/goals.toml")
    assert "rewards/goals.toml" in str(caught.value)
    return str(caught.value)


def test_reads_the_table_of_the_design():
    """The table a person writes is read with its rules, their ranges and their items in order."""
    read = parse_table(GOALS, "goals.toml")
    assert [(rule.name, rule.rank, rule.everyone) for rule in read.rule] == [
        ("champion", "1", None),
        ("top ten", "2-10", None),
        ("took part", None, True),
    ]
    assert list(read.rule[0].grant.items()) == [("title.champion", 1), ("gems", 5000)]


def test_open_range_has_no_end():
    """``11-`` takes everyone from rank 11 on."""
    rule = parse_table(table('name = "rest"\nrank = "11-"\ngrant = { gems = 1 }'), "x").rule[0]
    assert span(rule.rank) == (11, None)


def test_c74_definition_carries_the_rank_convention_and_survives_sorted_json():
    """C74: the sealed definition states ties and match, and sorting its keys does not change the order of items."""
    read = parse_table(GOALS, "goals.toml")
    sealed = json.dumps(read.definition(), sort_keys=True)
    back = RewardTable.from_definition(json.loads(sealed))
    assert back == read
    assert [list(rule.grant) for rule in back.rule] == [list(rule.grant) for rule in read.rule]
    assert json.loads(sealed)["ties"] == "share"


@pytest.mark.parametrize("definition", [{}, {"rule": [{"name": "a"}]}, {"rule": [{"grant": [{"item": "gems"}]}]}])
def test_from_definition_refuses_what_is_none(definition):
    """A seal that holds no reward table gives a ConfigError, no traceback."""
    with pytest.raises(ConfigError, match="no definition"):
        RewardTable.from_definition(definition)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (table(head="version = 2"), ["version = 2", "version 1"]),
        (table(head="version = true"), ["version = true", "version 1"]),
        (table(head=""), ["version is missing"]),
        (table(head='version = 1\nties = "shared"'), ["ties", '"shared"', "did you mean share?"]),
        (table(head='version = 1\nmatch = "any"'), ['match = "any"', "'first' or 'all'"]),
        (table(head="version = 1\nmacth = 1"), ["macth", "unknown key", "did you mean match?"]),
        ("version = 1", ["rule is missing"]),
        ("version = 1\nrule = []", ["needs at least one [[rule]]"]),
        (table('name = ""\nrank = "1"\ngrant = {gems = 1}'), ["rule 1", "name", "not empty"]),
        (table('name = "a"\nranks = "1"\nall = true\ngrant = {gems = 1}'), ["ranks", "did you mean rank?"]),
        (table('name = "a"\nrank = "1"\nall = true\ngrant = {gems = 1}'), ["exactly one of rank"]),
        (table('name = "a"\ngrant = {gems = 1}'), ["exactly one of rank"]),
        (table('name = "a"\nall = false\ngrant = {gems = 1}'), ["all = false", "True"]),
        (table('name = "a"\npercentile = "101"\ngrant = {gems = 1}'), ["at most"]),
        (table('name = "a"\nrank = "1"'), ["grant is missing"]),
        (table('name = "a"\nrank = "1"\ngrant = {}'), ["grant: must not be empty"]),
        (table('name = "a"\nrank = "1"\ngrant = 5'), ["grant = 5", "table of items"]),
        (table('name = "a"\nrank = "1"\ngrant = { Gems = 1 }'), ["'Gems' cannot name an item"]),
        (table('name = "a"\nrank = "1"\ngrant = { title.champion = 1 }'), ['"title.champion"', "quotes"]),
        (table('name = "a"\nrank = "1"\ngrant = { gems = 0, gold = 1.5 }'), ["gems = 0", "gold = 1.5", "whole number"]),
        (table('name = "a"\nrank = "1"\ngrant = { gems = true }'), ["gems = True", "whole number"]),
        (table(f'name = "a"\nrank = "1"\ngrant = {{ gems = {LIMIT + 1} }}'), [str(LIMIT + 1), "2^53 - 1"]),
    ],
)
def test_refuses_with_place_value_and_reason(text, words):
    """Every fault names the file, the place, the value and what is right."""
    message = refused(text)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("rank", ["", "0", "01", "-3", "3-2", "1-0", "1 - 2", "1,2", "a", "top", "1--2", "9" * 17, "²"])
def test_refuses_ranks_that_are_none(rank):
    """A rank is one number or a range that does not end before it starts, in plain digits."""
    assert "rank" in refused(table(f'name = "a"\nrank = "{rank}"\ngrant = {{ gems = 1 }}'))


def test_refuses_a_rank_without_quotes():
    """A bare number is answered with how to write it."""
    assert '"2-10"' in refused(table('name = "a"\nrank = 1\ngrant = { gems = 1 }'))


def test_tells_every_fault_with_the_line_of_its_rule():
    """All faults come at once, each with the rule's number, name and line."""
    message = refused(GOALS.replace('"2-10"', '"10-2"').replace("gems = 10 }", "gems = -1 }"))
    assert "2 faults" in message
    assert "rule 2 ('top ten'), line 12, rank = \"10-2\"" in message
    assert "rule 3 ('took part'), line 18, grant: gems = -1" in message


def test_rule_names_differ():
    """Two rules of one name would give one grant id to two grants."""
    message = refused(GOALS.replace("took part", "top ten"))
    assert "rule 3 ('top ten'), line 16, name: " in message
    assert "used more than once: 'top ten'" in message


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('previous = "1-100"', ["rule 2 ('kept'), line 10, previous: ", "has no previous", "take it out", '"share"']),
        ('position = "1-100"', ["rule 2 ('kept'), line 10, position: ", "has no position", "name it as rank"]),
        ('league = "gold"', ["rule 1 ('top'), line 4: ", "all rules name a league or none", "give this rule a league"]),
    ],
)
def test_what_cannot_be_split_is_refused_with_line_reason_and_remedy(more, words):
    """``ties = "split"`` pools places, so a rule that asks for more than a place on its ladder has no share."""
    place = "" if more.startswith("position") else 'rank = "1-100"\n'
    head = 'version = 1\nties = "split"\nleagues = { file = "leagues.csv" }'
    first = 'name = "top"\nrank = "1"\ngrant = { gems = 5 }'
    rules = f'{first}\n[[rule]]\nname = "kept"\n{more}\n{place}grant = {{ gems = 1 }}'
    message = refused(table(rules, head))
    assert all(word in message for word in words), message
    assert "Value error" not in message


def test_a_league_that_nobody_is_known_to_be_in_is_refused():
    """A rule for a league needs ``[leagues]``; the line is the rule's."""
    message = refused(table('name = "a"\nrank = "1"\nleague = "gold"\ngrant = { gems = 1 }'))
    assert "rule 1 ('a'), line 5, league: " in message
    assert "add it" in message


def test_broken_toml_names_line_and_column():
    """A text that is no TOML is answered with file, line and column."""
    assert "rewards/goals.toml, line 2, column" in refused("version = 1\nties = \n")
    assert "line 1, column 9" in refused('ties = "')


@given(st.integers(1, LIMIT), st.integers(0, 10**6))
def test_ranges_are_read_as_written(first, more):
    """Any closed range, open range or single rank is read with the ends as written."""
    last = min(first + more, LIMIT)
    for rank, ends in ((f"{first}-{last}", (first, last)), (f"{first}-", (first, None)), (f"{first}", (first, first))):
        rule = parse_table(table(f'name = "a"\nrank = "{rank}"\ngrant = {{ gems = 1 }}'), "x").rule[0]
        assert span(rule.rank) == ends
