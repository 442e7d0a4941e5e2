"""Outside facts about players that decided grants, as Arrow tables: what is sealed, and what computing is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from leaderboard.errors import InputError
from rewards.table import RewardTable

#: name -> the columns beside ``player_id``. Each name is a file under ``facts/``.
KINDS: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "excluded": (("reason", pa.string()), ("source", pa.string())),
    "eligible": (),
    "matches": (("matches", pa.int64()),),
    "leagues": (("league", pa.string()),),
    "previous": (("rank", pa.int64()),),
}


def schema(name: str, *, binary: bool = False) -> pa.Schema:
    """Return the columns of a kind of fact, none of them null; ``player_id`` is binary on boards with such ids."""
    columns = (("player_id", pa.binary() if binary else pa.string()), *KINDS[name])
    return pa.schema([pa.field(column, kind, nullable=False) for column, kind in columns])


_WORDS = {pa.string(): "text", pa.int64(): "whole number"}
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)  # what Arrow raises, by kind of value


def column(kind: str, name: str, values: Sequence[Any], *, binary: bool, told: str = "") -> pa.Array:
    """Return one column of a kind of fact; ids come as bytes, whatever they are on the board.

    Raises InputError that names kind, column and the first value that does not fit; ``told`` is where it is from.
    """
    wanted = schema(kind, binary=binary).field(name).type
    ids = name == "player_id"

    def made(some: Sequence[Any]) -> pa.Array:
        return pa.array(some, pa.binary()).cast(wanted) if ids else pa.array(some, wanted)

    def fits(value: Any) -> bool:
        try:
            made([value])
        except _UNFIT:
            return False
        return True

    try:
        return made(values)
    except _UNFIT as error:
        value = next((one for one in values if not fits(one)), None)
        raise InputError(
            f"the fact {kind} has a {name} that is no {'UTF-8 text' if ids else _WORDS[wanted]}: {value!r}",
            detail=told,
            hint="give ids as the board has them, in UTF-8"
            if ids
            else f"give it as it is meant, in SQL as {name}::text",
        ) from error


def cast(kind: str, batch: pa.RecordBatch, *, binary: bool) -> pa.RecordBatch:
    """Return rows whose ids are bytes in the columns of a kind of fact; raise InputError as ``column`` does."""
    try:
        return batch.cast(schema(kind, binary=binary))
    except pa.ArrowInvalid:
        column(kind, "player_id", batch.column("player_id").to_pylist(), binary=binary)
        raise


def needed(table: RewardTable) -> tuple[str, ...]:
    """Return the names of the facts without which ``table`` cannot be applied, sorted."""
    wanted = {
        "excluded": bool(table.exclude),
        "eligible": table.eligible is not None and bool(table.eligible.given),
        "matches": table.eligible is not None and table.eligible.min_matches is not None,
        "leagues": table.leagues is not None,
        "previous": table.uses_previous,
    }
    return tuple(sorted(name for name, is_wanted in wanted.items() if is_wanted))


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts by name, a row a player, in the columns of ``schema``.

    ``excluded``: who is granted nothing, and why. ``eligible``: everyone whom the table's source lists. ``matches``:
    how many results of each player counted. ``leagues``: who is in which. ``previous``: ranks in the season before, of
    the players whom a rule can ask for. Exclusions may come without the table asking for any: a correction's.
    """

    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    def check(self, table: RewardTable) -> None:
        """Raise InputError for a fact that ``table`` needs and that is missing, or of an unknown name."""
        missing = [name for name in needed(table) if name not in self.tables]
        unknown = [name for name in self.tables if name not in KINDS]
        if missing or unknown:
            raise InputError(
                "these are not the facts that the reward table needs",
                detail=f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}",
            )

    def get(self, name: str) -> pa.Table | None:
        return self.tables.get(name)

    def excluding(self, players: Iterable[bytes], reason: str, source: str, *, binary: bool) -> Facts:
        """Return the facts with more players excluded; who was excluded before keeps the first reason."""
        wanted = schema("excluded", binary=binary)
        before = self.get("excluded")
        known = set() if before is None else set(before["player_id"].cast(pa.binary()).to_pylist())
        more = [player for player in dict.fromkeys(players) if player not in known]
        columns = [column("excluded", "player_id", more, binary=binary)]
        columns += [pa.array([text] * len(more), pa.string()) for text in (reason, source)]
        added = pa.table(columns, schema=wanted)
        return Facts({**self.tables, "excluded": added if before is None else pa.concat_tables([before, added])})


NO_FACTS = Facts()
