"""Grants by loops over players and rules, in plain Python: what the vectorised computation is compared with."""

import uuid
from fractions import Fraction
from hashlib import sha256

import pyarrow as pa

from rewards.facts import Facts, schema
from rewards.table import RewardTable


def make_table(*rules, **head):
    return RewardTable.model_validate({"version": 1, "rule": list(rules), **head})


def rule(name, rank=None, condition=None, **grant):
    given = condition or ({"all": True} if rank is None else {"rank": rank})
    return {"name": name, **given, "grant": grant or {"gems": 1}}


def grant_id(board, season, player, rule_name, item):
    """The formula of the documentation, written out independently."""
    fields = [text.encode() for text in (board, season, rule_name, item)]
    key = sha256(b"".join(len(part).to_bytes(4, "big") + part for part in fields)).digest()
    return str(uuid.UUID(bytes=sha256(key + player).digest()[:16]))


def player(at):
    return f"p{at}é".encode()


def standings(scores):
    """Rows (position, rank, player, points) in the order given; equal scores, (points, time), share a rank."""
    rows, rank = [], 0
    for at, score in enumerate(scores):
        rank = rank if at and score == scores[at - 1] else at + 1
        rows.append((at + 1, rank, player(at), score[0] if isinstance(score, tuple) else score))
    return rows


def fact_tables(**facts):
    """Facts from plain dictionaries or sets of players, as the computation is given them."""
    tables = {}
    for name, value in facts.items():
        if value is None:
            continue
        players = list(value)
        columns = [pa.array(players, pa.binary()).cast(pa.string())]
        if name == "excluded":
            columns += [pa.array(["cheated"] * len(players)), pa.array(["file x"] * len(players))]
        elif name != "eligible":
            columns.append(pa.array([value[each] for each in players], schema(name).field(1).type))
        tables[name] = pa.table(columns, schema=schema(name))
    return Facts(tables)


class Brute:
    def __init__(self, rows, table, excluded=(), eligible=None, matches=None, leagues=None, previous=None):
        self.table, self.leagues, self.previous = table, leagues or {}, previous or {}
        self.gone = set(excluded or ())
        for row in rows:
            asked = table.eligible
            if eligible is not None and row[2] not in eligible:
                self.gone.add(row[2])
            if asked and asked.min_matches is not None and (matches or {}).get(row[2], 0) < asked.min_matches:
                self.gone.add(row[2])
            if asked and asked.min_points is not None and row[3] < asked.min_points:
                self.gone.add(row[2])
        self.rows = rows
        self.placed = [row for row in rows if table.removed == "leave_gap" or row[2] not in self.gone]

    def ladder(self, each, row):
        """The players among whom the rule counts the row's place; None if it does not."""
        mine = self.leagues.get(row[2])
        if each.league is None:
            return self.placed
        if mine is None or each.league not in ("*", mine):
            return None
        return [other for other in self.placed if self.leagues.get(other[2]) == mine]

    def takes(self, each, row, place):
        """Whether a rule takes the row, were it at ``place`` of its ladder (None: at its own)."""
        ladder = self.ladder(each, row)
        if ladder is None:
            return False
        tie = [at for at, other in enumerate(ladder, 1) if other[1] == row[1]]
        own = place if place is not None else next(at for at, other in enumerate(ladder, 1) if other == row)
        shared = self.table.ties == "share"
        at = own if not shared else tie[0] if self.table.at_line == "in" else tie[-1]
        low, _, high = (each.percentile or "100").rpartition("-")
        return (
            (each.rank is None or within(tie[0] if shared else own, each.rank))
            and (each.position is None or within(own, each.position))
            and (at * 100 <= Fraction(high) * len(ladder) and not (low and at * 100 <= Fraction(low) * len(ladder)))
            and (each.at_least is None or row[3] >= each.at_least)
            and (each.at_most is None or row[3] <= each.at_most)
            and (each.previous is None or (row[2] in self.previous and within(self.previous[row[2]], each.previous)))
        )

    def worth(self, row, place=None):
        taking = [each for each in self.table.rule if self.takes(each, row, place)]
        return taking[:1] if self.table.match == "first" else taking

    def paid(self, row):
        """(rule, item, amount) of one player."""
        if row[2] in self.gone:
            return []
        if self.table.ties != "split":
            return [(each.name, item, amount) for each in self.worth(row) for item, amount in each.grant.items()]
        ladder = self.ladder(self.table.rule[0].model_copy(update={"league": "*" if self.leagued else None}), row)
        if ladder is None:
            return []
        places = [at for at, other in enumerate(ladder, 1) if other[1] == row[1]]
        mine = next(at for at, other in enumerate(ladder, 1) if other == row)
        order = [each.name for each in self.table.rule]
        pool = {}
        for place in places:
            for each in self.worth(row, place):
                for item, amount in each.grant.items():
                    pool.setdefault(item if self.table.match == "first" else (item, each.name), []).append(
                        (order.index(each.name), item, amount)
                    )
        found = []
        for lines in pool.values():
            number, item = min(line[0] for line in lines), lines[0][1]
            share, rest = divmod(sum(line[2] for line in lines), len(places))
            if amount := share + (places.index(mine) < rest):
                at = list(self.table.rule[number].grant).index(item)
                found.append((number, at, (order[number], item, amount)))
        return [line for _, _, line in sorted(found)]

    @property
    def leagued(self):
        return self.table.rule[0].league is not None

    def grants(self, board, season):
        return [
            (grant_id(board, season, row[2], name, item), row[2].decode(), name, item, amount, row[0], row[1])
            for row in self.rows
            for name, item, amount in self.paid(row)
        ]


def within(place, text):
    low, dash, high = text.partition("-")
    return int(low) <= place and (place <= int(high) if high else bool(dash) or place == int(low))
