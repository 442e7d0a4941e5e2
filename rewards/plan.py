"""The plan of a season's grants: which stretch of the board is granted what, resolved from the whole standings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from rewards.facts import NO_FACTS, Facts
from rewards.ladder import Ladder
from rewards.marks import Marks, mark, previous_ranges
from rewards.ranges import Range, resolve
from rewards.rule import EVERY_LEAGUE, Rule
from rewards.split import Paid, pooled
from rewards.table import RewardTable

#: The columns of standings that planning and granting read, whatever the table asks for.
COLUMNS = ("position", "rank", "player_id", "points")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Positions from ``first`` on, up to the next stretch: whoever is there gets ``paid``, in the table's order.

    ``paid`` is by the bits of ``Marks.previous``; without such rules the only key is 0.
    """

    first: int
    paid: Mapping[int, tuple[Paid, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides grants. ``ladders`` and ``stretches`` are by league, 0 being the whole board.

    Players of no league are granted what ``stretches[0]`` says, those of a league what theirs says, whole-board rules
    included.
    """

    table: RewardTable
    facts: Facts
    marks: Marks
    ladders: tuple[Ladder, ...]
    ranges: tuple[Range, ...]
    stretches: tuple[tuple[Stretch, ...], ...]

    def is_gone(self, position: int) -> bool:
        """Return whether the player at ``position`` is excluded or not eligible."""
        return self.marks.gone is not None and bool(self.marks.gone[position - 1])

    def league_at(self, position: int) -> int:
        """Return the number of the league of the player at ``position``, 0 for none."""
        return 0 if self.marks.league is None else int(self.marks.league[position - 1])

    def league_name(self, league: int) -> str | None:
        """Return the name of a league by its number; None for 0, the whole board."""
        return self.marks.leagues[league - 1] if league else None

    def paid_at(self, position: int) -> tuple[Paid, ...]:
        """Return what the player at ``position`` is granted."""
        if self.is_gone(position):
            return ()
        stretches = self.stretches[self.league_at(position)]
        stretch = stretches[bisect_right(stretches, position, key=lambda each: each.first) - 1]
        return stretch.paid[0 if self.marks.previous is None else int(self.marks.previous[position - 1])]


def plan(batches: Iterable[pa.RecordBatch], table: RewardTable, facts: Facts = NO_FACTS) -> Plan:
    """Return the plan for standings that come in board order, read once; errors as ``rewards.marks.mark``.

    ``batches`` have ``position``, ``rank``, ``player_id`` and ``points``, and any others.
    """
    marks = mark(batches, table, facts)
    placed = None if marks.gone is None or table.removed == "leave_gap" else ~marks.gone
    ladders = [Ladder(marks.starts, placed)]
    for number in range(1, len(marks.leagues) + 1):
        assert marks.league is not None
        member = marks.league == number
        ladders.append(Ladder(marks.starts, member if placed is None else member & placed))
    ranges = [
        resolve(rule, league, ladders[league], table, marks.points.get(rule.name))
        for rule in table.rule
        for league in _leagues_of(rule, marks.leagues)
    ]
    stretches = tuple(_stretches(table, ranges, league, ladders) for league in range(len(ladders)))
    return Plan(table, facts, marks, tuple(ladders), tuple(ranges), stretches)


def _leagues_of(rule: Rule, leagues: tuple[str, ...]) -> Iterable[int]:
    """Return the numbers of the ladders on which ``rule`` counts places."""
    if rule.league is None:
        return (0,)
    return (number for number, name in enumerate(leagues, 1) if rule.league in (EVERY_LEAGUE, name))


def _stretches(table: RewardTable, ranges: list[Range], league: int, ladders: list[Ladder]) -> tuple[Stretch, ...]:
    mine = [each for each in ranges if each.league in (0, league) and not each.empty]
    if table.ties == "split":
        counted = league if table.rule[0].league is not None else 0
        own = [each for each in mine if each.league == counted]
        return tuple(Stretch(first, {0: paid}) for first, paid in pooled(table, own, ladders[counted]))
    cuts = sorted({1, *(each.positions[0] for each in mine), *(each.positions[1] + 1 for each in mine)})
    wanted = {places: 1 << bit for bit, places in enumerate(previous_ranges(table))}
    found = []
    for first in cuts:
        here = [each for each in mine if each.positions[0] <= first <= each.positions[1]]
        paid = {}
        for bits in range(1 << len(wanted)):
            taking = [each.rule for each in here if each.rule.previous is None or bits & wanted[each.rule.previous]]
            taking = taking[:1] if table.match == "first" else taking
            paid[bits] = tuple(Paid(rule.name, item, amount) for rule in taking for item, amount in rule.grant.items())
        found.append(Stretch(first, paid))
    return tuple(found)
