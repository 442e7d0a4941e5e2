"""One player through all sealed seasons, without a scan: statistics and Bloom filters say where to look."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from archive.catalog import Sealed
from archive.fetch import sealed_file
from archive.objects import Store
from archive.parts import Part
from archive.pieces import find_row, may_be_in
from archive.seal import Seal

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Past:
    """Where a player stood in a sealed season: the seal, and the row of its standings as columns."""

    seal: Seal
    row: dict[str, Any]


def history(store: Store, seals: Iterable[Sealed], player: str) -> list[Past]:
    """Return where ``player`` stood in each season of ``seals`` that has them, in the order of the seasons' starts.

    Ids are compared byte for byte; on boards with binary ids ``player`` is read as hex. Of a part that the player is
    not in, only the end and two pieces of its Bloom filter are read, some 70 KB of 12 MB; a part that may hold the
    player (a few in a hundred do not) is read whole, and compared with its SHA-256 before a row of it is told. So a
    row told is as sealed; that there is none is as true as the part's own statistics and filter.

    Raises ArchiveMismatchError if a part is missing, is shorter than sealed, or differs.
    """
    wanted = [one.seal for one in seals if one.seal.kind == "standings" and _id(one.seal, player) is not None]
    wanted.sort(key=lambda seal: (seal.bounds.starts_at, seal.board_name))
    tasks = [(seal, part) for seal in wanted for part in seal.facts.parts]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="finale-lookup") as pool:
        found = pool.map(lambda task: _look(store, task[0], task[1], player), tasks)
        return [Past(seal, row) for (seal, _), row in zip(tasks, found, strict=True) if row is not None]


def _id(seal: Seal, player: str) -> bytes | None:
    """Return the bytes of the id on the seal's board; None if the board can have no such id."""
    if seal.board.get("member") != "binary":
        return player.encode("utf-8", "surrogateescape")
    try:
        return bytes.fromhex(player)
    except ValueError:
        return None


def _look(store: Store, seal: Seal, part: Part, player: str) -> dict[str, Any] | None:
    player_id = _id(seal, player)
    assert player_id is not None
    if not may_be_in(store, seal, part, player_id):
        return None
    return find_row(sealed_file(store, seal, part), player_id)
