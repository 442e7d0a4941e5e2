"""Which places each rule takes on a ladder, once its players and ties are known."""

from __future__ import annotations

from dataclasses import dataclass

from rewards.ladder import Ladder
from rewards.marks import Interval
from rewards.rule import Rule, line_of, percent, span
from rewards.table import RewardTable


@dataclass(frozen=True, slots=True)
class Range:
    """The places from ``first`` to ``last`` that ``rule`` takes on a ladder, none if ``first`` is the greater.

    ``league`` is the number of the ladder's league, 0 for the whole board. ``line`` is the last place that the rule
    means before ties are looked at, None where nothing ends it but the board. ``positions`` are the same places as
    positions of the standings, both inclusive; players without a place may stand between.
    """

    rule: Rule
    league: int
    first: int
    last: int
    line: int | None
    positions: Interval

    @property
    def empty(self) -> bool:
        return self.first > self.last


def resolve(rule: Rule, league: int, ladder: Ladder, table: RewardTable, points: Interval | None) -> Range:
    """Return what ``rule`` takes on ``ladder``. ``points`` are the positions that have the points it asks for."""
    first, last, line = 1, ladder.players, None
    if rule.percentile is not None:
        low, high = (line_of(bound, ladder.players) for bound in percent(rule.percentile))
        line = high
        first, last = _percentile_end(low, ladder, table) + 1, _percentile_end(high, ladder, table)
    elif (places := rule.rank or rule.position) is not None:
        begin, end = span(places)
        line = end
        shared = table.ties == "share" and rule.rank is not None
        first = _shared_begin(begin, ladder) if shared else begin
        last = ladder.players if end is None else _shared_end(end, ladder) if shared else min(end, ladder.players)
    if points is not None:
        first = max(first, ladder.through(points[0] - 1) + 1)
        last = min(last, ladder.through(points[1]))
    if first > last:
        return Range(rule, league, first, last, line, (1, 0))
    return Range(rule, league, first, last, line, (ladder.position(first), ladder.position(last)))


def _percentile_end(line: int, ladder: Ladder, table: RewardTable) -> int:
    """Return the last place that is in: a shared tie across the line is all in or all out, as the table says."""
    if table.ties != "share" or not 0 < line < ladder.players:
        return line
    begin, end = ladder.tie(line)
    if end == line:
        return line
    return end if table.at_line == "in" else begin - 1


def _shared_begin(rank: int, ladder: Ladder) -> int:
    """Return the first place with ``rank`` or a later one: equal scores share the first of their places as rank."""
    if not 1 < rank <= ladder.players:
        return rank
    begin, end = ladder.tie(rank)
    return rank if begin == rank else end + 1


def _shared_end(rank: int, ladder: Ladder) -> int:
    """Return the last place with ``rank`` or an earlier one."""
    return ladder.tie(rank)[1] if rank < ladder.players else ladder.players
