"""What is doubtful in a reward table, without any standings: gaps, overlaps, rules that can pay nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rewards.rule import EVERY_LEAGUE, LIMIT, Rule, line_of, percent, span
from rewards.table import RewardTable

Kind = Literal["gap", "overlap", "unreachable", "pays nobody", "over budget"]
Places = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """One doubt about a table: its kind, the rule or rules it is about, and what is the matter."""

    kind: Kind
    rules: tuple[str, ...]
    what: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain JSON values."""
        return {"kind": self.kind, "rules": list(self.rules), "what": self.what}


def check(table: RewardTable, players: int | None = None) -> list[Finding]:
    """Return what is doubtful in ``table`` on a board of ``players`` without ties; None: however many there are.

    Rules on places of the board and of leagues are looked at apart. Rules that ask for points or a previous rank as
    well may or may not take a place, so they neither fill a gap nor hide another rule.
    """
    size = LIMIT if players is None else players
    found = [each for rule in table.rule if (each := _pays_nobody(rule, size, players))]
    for league in dict.fromkeys(rule.league for rule in table.rule):
        found += _of_ladder(table, league, size)
    return found + ([] if players is None else _costs(table, players))


def places_of(rule: Rule, players: int) -> Places:
    """Return the first and last place of ``rule`` among ``players`` without ties; none if the first is the greater."""
    if rule.percentile is not None:
        low, high = percent(rule.percentile)
        return line_of(low, players) + 1, line_of(high, players)
    if (places := rule.rank or rule.position) is not None:
        first, last = span(places)
        return first, players if last is None else min(last, players)
    return 1, players


def _pays_nobody(rule: Rule, size: int, players: int | None) -> Finding | None:
    first, last = places_of(rule, size)
    if first <= last:
        return None
    among = "any number of" if players is None else f"{players:,}"
    what = f"{rule.condition} is nobody among {among} players"
    if rule.percentile is not None and "-" not in rule.percentile:
        _, high = percent(rule.percentile)
        what += f"; it takes {-(-100 * high.denominator // high.numerator):,}"
    return Finding("pays nobody", (rule.name,), what)


def _is_sure(rule: Rule) -> bool:
    """Return whether whoever has the place is taken, whatever else is known of them."""
    return rule.at_least is None and rule.at_most is None and rule.previous is None


def _hides(earlier: Rule, later: Rule) -> bool:
    """Return whether an earlier rule takes places that ``later`` counts too."""
    same = earlier.league == later.league or (earlier.league == EVERY_LEAGUE and later.league is not None)
    return _is_sure(earlier) and (same or (earlier.league is None and earlier.everyone is True))


def _loses(table: RewardTable, later: Rule) -> bool:
    """Return whether ``later`` is worth a word where an earlier rule takes its places for sure.

    With ``match = "all"`` it adds to the earlier one, which is what that is for.
    """
    named = later.rank is not None or later.position is not None or later.percentile is not None
    return table.match == "first" and (_is_sure(later) or named)


def _of_ladder(table: RewardTable, league: str | None, size: int) -> list[Finding]:
    found = []
    mine = [(number, rule, places_of(rule, size)) for number, rule in enumerate(table.rule) if rule.league == league]
    mine = [each for each in mine if each[2][0] <= each[2][1]]
    for number, rule, places in mine:
        before = [one for one in table.rule[:number] if _hides(one, rule)]
        spans = [(1, size) if one.league != rule.league else places_of(one, size) for one in before]
        if table.match == "first" and not _without(places, spans):
            names = tuple(one.name for one, taken in zip(before, spans, strict=True) if _meet(taken, places))
            to = ", ".join(map(repr, names))
            what = f"{_told(places)} {_verb(places, 'go')} to {to} before, so nobody is left for {rule.name!r}"
            found.append(Finding("unreachable", (rule.name,), what))
            continue
        found += [
            _overlap(earlier, rule, shared)
            for at, earlier, others in mine
            if at < number and not rule.everyone and not earlier.everyone and _is_sure(earlier) and _loses(table, rule)
            if (shared := _meet(others, places))
        ]
    return found + _gaps([each for each in mine if _is_sure(each[1])])


def _overlap(earlier: Rule, later: Rule, shared: Places) -> Finding:
    what = f"{_told(shared)} of {later.name!r} {_verb(shared, 'go')} to {earlier.name!r}, which comes first"
    return Finding("overlap", (earlier.name, later.name), what)


def _gaps(mine: list[tuple[int, Rule, Places]]) -> list[Finding]:
    """Return the places that no rule takes although later ones are taken."""
    if not mine:
        return []
    last = max(mine, key=lambda each: each[2][1])
    open_places = _without((1, last[2][1]), [places for _, _, places in mine])
    return [
        Finding("gap", (), f"{_told(places)} {_verb(places, 'get')} nothing, though {last[1].name!r} pays below")
        for places in open_places
    ]


def _costs(table: RewardTable, players: int) -> list[Finding]:
    """Return the items that pass the budget even if ties and conditions cost nothing more."""
    if any(rule.league is not None for rule in table.rule):
        return []
    sure = [(rule, places_of(rule, players)) for rule in table.rule if _is_sure(rule)]
    sums: dict[str, int] = {}
    taken: list[Places] = []
    for rule, places in sure:
        free = _without(places, taken) if table.match == "first" else [places]
        if table.match == "first":
            taken.append(places)
        for item, amount in rule.grant.items():
            sums[item] = sums.get(item, 0) + amount * sum(max(last - first + 1, 0) for first, last in free)
    return [
        Finding("over budget", (), f"{players:,} players cost {sums[item]:,} {item}, the budget has {cap:,}")
        for item, cap in table.budget.items()
        if sums.get(item, 0) > cap
    ]


def _without(places: Places, taken: list[Places]) -> list[Places]:
    """Return what is left of ``places``, in order."""
    left = [places]
    for first, last in taken:
        left = (
            [
                piece
                for begin, end in left
                for piece in ((begin, min(end, first - 1)), (max(begin, last + 1), end))
                if piece[0] <= piece[1]
            ]
            if first <= last
            else left
        )
    return left


def _meet(one: Places, other: Places) -> Places | None:
    first, last = max(one[0], other[0]), min(one[1], other[1])
    return (first, last) if first <= last else None


def _verb(places: Places, plural: str) -> str:
    """Return the verb for one place or several."""
    if places[0] != places[1]:
        return plural
    return {"go": "goes", "get": "gets"}[plural]


def _told(places: Places) -> str:
    first, last = places
    if last == LIMIT:
        return f"places from {first:,} on"
    return f"place {first:,}" if first == last else f"places {first:,} to {last:,}"
