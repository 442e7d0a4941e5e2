"""Why one player was granted what they were: every rule of the table, taken or missed, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leaderboard.wording import counted
from rewards.ladder import Ladder
from rewards.marks import Interval
from rewards.plan import Plan
from rewards.ranges import Range, resolve
from rewards.table import RewardTable, Rule


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule, whether it takes the player, and why. ``short`` is how many places are missing, if that is what is.

    ``line`` is the last position that the rule takes, None if it takes nobody.
    """

    rule: str
    condition: str
    taken: bool
    why: str
    short: int | None = None
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "rule": self.rule,
            "condition": self.condition,
            "taken": self.taken,
            "why": self.why,
            "places_short": self.short,
            "line": self.line,
        }


class SparseLadder(Ladder):
    """The whole board as a ladder, of which only the rows that are asked for are looked up.

    ``rank_at`` gives the rank at a position; nobody is excluded, so places are positions.
    """

    def __init__(self, players: int, rank_at: Callable[[int], int]) -> None:
        super().__init__(np.zeros(0, bool), None)
        self._players, self._rank_at = players, rank_at

    @property
    def players(self) -> int:
        return self._players

    def through(self, position: int) -> int:
        return min(max(position, 0), self._players)

    def tie(self, place: int) -> tuple[int, int]:
        rank = self._rank_at(place)
        if rank == place and (place == self._players or self._rank_at(place + 1) != rank):
            return place, place
        return rank, last_where(place, self._players, lambda position: self._rank_at(position) == rank)


def last_where(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """Return the last of ``first`` to ``last`` for which ``holds``, which it does at ``first`` and up to there only."""
    while first < last:
        middle = (first + last + 1) // 2
        if holds(middle):
            first = middle
        else:
            last = middle - 1
    return first


def sparse_ranges(table: RewardTable, ladder: SparseLadder, points_at: Callable[[int], float]) -> list[Range]:
    """Return what each rule takes, of a table that needs no outside facts and has no eligibility."""
    return [resolve(rule, 0, ladder, table, _having(rule, ladder.players, points_at)) for rule in table.rule]


def _having(rule: Rule, players: int, points_at: Callable[[int], float]) -> Interval | None:
    """Return the positions that have the points a rule asks for, which stand together; None if it asks for none."""
    if rule.at_least is None and rule.at_most is None:
        return None
    if not players:
        return (1, 0)

    def low(position: int) -> bool:
        return rule.at_least is not None and points_at(position) < rule.at_least

    def high(position: int) -> bool:
        return rule.at_most is not None and points_at(position) > rule.at_most

    falling = points_at(1) >= points_at(players)
    before, after = (high, low) if falling else (low, high)
    first = last_where(1, players, before) + 1 if before(1) else 1
    if first > players or after(first):
        return (1, 0)
    return first, last_where(first, players, lambda position: not after(position))


def outcomes(
    table: RewardTable, ranges: list[Range], position: int, ladders: Sequence[Ladder], plan: Plan | None = None
) -> list[Outcome]:
    """Return what each rule comes to for the player at ``position``, in the table's order.

    ``ladders`` are the whole board's and those of the leagues. ``plan`` is given where outside facts count.
    """
    if plan is not None and plan.is_gone(position):
        return [
            Outcome(one.name, one.condition, False, "excluded or not eligible, so no rule takes them")
            for one in table.rule
        ]
    league = plan.league_at(position) if plan is not None else 0
    granted = None if plan is None else {paid.rule for paid in plan.paid_at(position)}
    found: list[Outcome] = []
    before: list[Range] = []
    taken = False
    for rule in table.rule:
        mine = next((one for one in ranges if one.rule is rule and one.league in (0, league)), None)
        if mine is None:
            one = _missed(rule, f"counts in league {rule.league}, which the player is not in")
        else:
            there = _There(table, mine, ladders[mine.league], position)
            if table.ties == "split" and there.tied and not mine.empty:
                one = _of_tie(there, before if table.match == "first" else ())
            else:
                one = _outcome(there, granted, first=table.match == "first" and taken)
            before += [] if mine.empty else [mine]
        taken = taken or one.taken
        found.append(one)
    return found


@dataclass(frozen=True, slots=True)
class _There:
    """A player before a rule: where they stand, by what the rule counts."""

    table: RewardTable
    mine: Range
    ladder: Ladder
    position: int

    @property
    def place(self) -> int:
        return self.ladder.through(self.position)

    @property
    def tie(self) -> tuple[int, int]:
        """The places that the player's score fills, both with them."""
        return self.ladder.tie(self.place)

    @property
    def tied(self) -> bool:
        return self.tie[0] < self.tie[1]

    @property
    def by_rank(self) -> bool:
        """Whether equal scores share the first of their places before this rule."""
        return self.table.ties == "share" and self.mine.rule.rank is not None

    @property
    def counted(self) -> int:
        """The place that decides: of a tie that the table shares the first, or the last where all of it must be in."""
        if self.by_rank:
            return self.ladder.tie(self.place)[0]
        if self.table.ties == "share" and self.mine.rule.percentile is not None:
            return self.ladder.tie(self.place)[0 if self.table.at_line == "in" else 1]
        return self.place

    def below(self) -> tuple[int, str]:
        """Return how many places are missing to be taken, and what the last of them is called.

        That is the rule's line, or the last that has the points the rule asks for, where these end it sooner.
        """
        deciding, line = self.counted, self.mine.line
        if line is not None and deciding > line:
            by_line = self.table.ties == "share" and self.mine.rule.percentile is not None
            return (
                deciding - line,
                f"{'last rank,' if self.by_rank else 'line, place' if by_line else 'last place,'} {line:,}",
            )
        place = self.ladder.tie(self.place)[0] if self.by_rank else self.place
        return place - self.mine.last, f"last place, {self.mine.last:,}"


def _outcome(there: _There, granted: set[str] | None, *, first: bool) -> Outcome:
    rule, mine, position = there.mine.rule, there.mine, there.position
    if mine.empty:
        return _missed(rule, "takes nobody on this board")
    line = mine.positions[1]
    if position > line:
        short, last = there.below()
        return _missed(rule, f"{counted(short, 'place')} below its {last}", short, line)
    why = ""
    if position < mine.positions[0]:
        why = f"begins at place {mine.first:,}, below the player's {there.place:,}"
    elif first:
        why = "would take the player too, but only the first rule that does counts"
    elif rule.previous is not None and granted is not None and rule.name not in granted:
        why = f"asks for rank {rule.previous} in the season before, which the player had not"
    if why:
        return _missed(rule, why, None, line)
    places = f"places {mine.first:,} to {mine.last:,}" if mine.first < mine.last else f"place {mine.first:,}"
    if there.by_rank:
        within = f"the player's rank is {there.counted:,}; it takes {places}"
    else:
        within = f"place {there.place:,} is within its {places}"
    return Outcome(rule.name, rule.condition, True, within, None, line)


def _of_tie(there: _There, before: Sequence[Range]) -> Outcome:
    """Return what a rule comes to in a tie whose places are pooled: whether it gives anything to the pool.

    ``before`` are the rules that take a place from this one.
    """
    rule, mine, line = there.mine.rule, there.mine, there.mine.positions[1]
    begin, end = there.tie
    tie = f"the tie's places {begin:,} to {end:,}"
    if begin > mine.last:
        short = begin - mine.last
        return _missed(rule, f"{tie} begin {counted(short, 'place')} below its last place, {mine.last:,}", short, line)
    if end < mine.first:
        return _missed(rule, f"begins at place {mine.first:,}, below {tie}", None, line)
    left = [(max(begin, mine.first), min(end, mine.last))]
    for one in before:
        pieces = [
            piece
            for first, last in left
            for piece in ((first, min(last, one.first - 1)), (max(first, one.last + 1), last))
        ]
        left = [(first, last) for first, last in pieces if first <= last]
    if not left:
        return _missed(rule, f"would take of {tie} too, but only the first rule that does counts", None, line)
    first, last = left[0][0], left[-1][1]
    takes = f"{first:,} to {last:,}" if first < last else f"{first:,}"
    return Outcome(rule.name, rule.condition, True, f"{tie} share what they are worth; it takes {takes}", None, line)


def _missed(rule: Rule, why: str, short: int | None = None, line: int | None = None) -> Outcome:
    return Outcome(rule.name, rule.condition, False, why, short, line)
