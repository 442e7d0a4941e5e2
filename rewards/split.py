"""``ties = "split"``: what the places of a tie are worth is pooled and shared out among those who hold them."""

from __future__ import annotations

from dataclasses import dataclass

from rewards.ladder import Ladder
from rewards.ranges import Range
from rewards.table import RewardTable


@dataclass(frozen=True, slots=True)
class Paid:
    """An item and its amount, by the name of the rule that gives it."""

    rule: str
    item: str
    amount: int


def pooled(table: RewardTable, ranges: list[Range], ladder: Ladder) -> list[tuple[int, tuple[Paid, ...]]]:
    """Return from which position on which amounts are paid, up to the next, on the places of one ladder.

    Each place is worth what it would be granted by position. Of a tie, the worth of all its places is added up and
    divided by their number; the remainder goes to the earliest places, one each. With ``match = "first"`` an item is
    pooled whichever rule gives it, and named after the first of these in the table; with ``"all"`` each rule's amounts
    are pooled alone. A share of nothing is no grant.
    """
    if not ladder.players or not ranges:
        return [(1, ())]
    cuts = sorted({1, *(each.first for each in ranges), *(each.last + 1 for each in ranges)})
    cuts = [cut for cut in cuts if cut <= ladder.players]
    ends = [*(cut - 1 for cut in cuts[1:]), ladder.players]
    pieces: list[tuple[int, tuple[Paid, ...]]] = []
    done = 0
    for first, last in zip(cuts, ends, strict=True):
        begin = max(first, done + 1)
        if begin > last:
            continue
        tie_first, tie_last = ladder.tie(last)
        if tie_last == last:
            pieces.append((begin, _worth(table, ranges, begin)))
            done = last
            continue
        # The tie goes on past the line: before it whole places, then the tie by itself.
        if begin < tie_first:
            pieces.append((begin, _worth(table, ranges, begin)))
        pieces += _shared(table, ranges, cuts, max(begin, tie_first), tie_last)
        done = tie_last
    return [(ladder.position(place) if number else 1, paid) for number, (place, paid) in enumerate(pieces)]


def _worth(table: RewardTable, ranges: list[Range], place: int) -> tuple[Paid, ...]:
    """Return what ``place`` alone is granted."""
    taking = [each.rule for each in ranges if each.first <= place <= each.last]
    taking = taking[:1] if table.match == "first" else taking
    return tuple(Paid(rule.name, item, amount) for rule in taking for item, amount in rule.grant.items())


def _shared(
    table: RewardTable, ranges: list[Range], cuts: list[int], first: int, last: int
) -> list[tuple[int, tuple[Paid, ...]]]:
    """Return the pieces of a tie over the places ``first`` to ``last``."""
    begins = sorted({first, *(cut for cut in cuts if first < cut <= last)})
    ends = [*(begin - 1 for begin in begins[1:]), last]
    order = {rule.name: number for number, rule in enumerate(table.rule)}
    pool: dict[tuple[str, str], tuple[int, int]] = {}  # the number of the rule, the amount
    for begin, end in zip(begins, ends, strict=True):
        for paid in _worth(table, ranges, begin):
            key = ("" if table.match == "first" else paid.rule, paid.item)
            number, amount = pool.get(key, (len(order), 0))
            pool[key] = min(number, order[paid.rule]), amount + paid.amount * (end - begin + 1)
    size = last - first + 1
    lines = [
        (table.rule[number].name, item, *divmod(amount, size))
        for (_, item), (number, amount) in sorted(pool.items(), key=lambda each: _place_in_table(table, each))
    ]
    pieces = []
    for begin in sorted({first, *(first + rest for *_, rest in lines if rest)}):
        shares = [(rule, item, share + (begin < first + rest)) for rule, item, share, rest in lines]
        pieces.append((begin, tuple(Paid(rule, item, amount) for rule, item, amount in shares if amount)))
    return pieces


def _place_in_table(table: RewardTable, pooled_item: tuple[tuple[str, str], tuple[int, int]]) -> tuple[int, int]:
    """Return the number of the rule that an item is granted by, and the item's among those of that rule."""
    (_, item), (number, _) = pooled_item
    return number, list(table.rule[number].grant).index(item)
