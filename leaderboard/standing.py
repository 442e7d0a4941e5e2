"""One row of a board, the same from the live key and from the archive."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple


class Standing(NamedTuple):
    """Where a player stands. ``position`` is 1..N in board order, ``rank`` what the player is told.

    A tuple, because a top of a hundred makes a hundred of them for each that asks.
    """

    position: int
    rank: int
    player_id: bytes
    points: int | float
    reached_at: datetime | None  #: aware UTC, floored to the codec's unit; None where the score does not know it
    score: float  #: the raw sorted-set score

    def to_json(self, *, binary: bool = False) -> dict[str, Any]:
        """Return ``position, rank, player_id, points, reached_at`` as JSON values.

        ``player_id`` is the text, or lower-case hex on ``binary`` boards. A text board's id that is not UTF-8 is shown
        with ``\\x..`` for the wrong bytes, and ``player_id_hex`` then has them all. ``reached_at`` is ISO 8601 with Z.
        """
        row: dict[str, Any] = {"position": self.position, "rank": self.rank, "player_id": self.name(binary=binary)}
        row["points"] = self.points
        row["reached_at"] = None if self.reached_at is None else self.reached_at.isoformat().replace("+00:00", "Z")
        if not binary and not self.is_text:
            row["player_id_hex"] = self.player_id.hex()
        return row

    @property
    def is_text(self) -> bool:
        """Whether the id is UTF-8."""
        try:
            self.player_id.decode()
        except UnicodeDecodeError:
            return False
        return True

    def name(self, *, binary: bool = False) -> str:
        """Return the id as a person is shown it; it can always be encoded as UTF-8."""
        return self.player_id.hex() if binary else self.player_id.decode(errors="backslashreplace")
