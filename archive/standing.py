"""Pages of live keys turned into rows of standings, and the facts of them that the seal will tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from archive.columns import as_arrow
from archive.digest import StandingDigest
from archive.merge import Block
from archive.parts import Part, standings_schema
from archive.seal import KeyFacts, StandingFacts
from leaderboard.board import Board
from leaderboard.codec import codec_for
from leaderboard.errors import InputError, SeasonHeldError
from leaderboard.names import in_one_line
from leaderboard.ranking import Ranker
from leaderboard.season import Bounds
from leaderboard.sums import exact_sum


class ForeignMemberError(SeasonHeldError):
    """A member or a score in the live key that this board cannot have written."""


class Standing:
    """The standing of a season's live keys, built block after block in board order."""

    def __init__(self, board: Board, bounds: Bounds, keys: Sequence[str]) -> None:
        self.schema = standings_schema(binary=board.member == "binary", fraction=board.points == "fraction")
        self._board = board
        self._keys = keys
        self._codec = codec_for(board, bounds)
        self._ranker = Ranker(shared=board.ties.by != "member")
        self._digest = StandingDigest()
        self._points_sum = 0
        self._first: float | None = None
        self._last: float | None = None

    @property
    def digest(self) -> str:
        """The digest of all rows so far."""
        return self._digest.hexdigest()

    def add(self, block: Block) -> Any:
        """Return the next rows as a record batch of :attr:`schema`.

        Raises ForeignMemberError, with its position, for a member that is not UTF-8 on a text board and for a score
        that the board's codec cannot have written.
        """
        page = block.page
        names = page.members if self._board.member == "binary" else self._text(block)
        points, reached_at = self._decoded(block)
        positions, ranks = self._ranker.add(page.scores)
        self._digest.update(page.members, page.scores)
        if self._board.points == "integer":
            self._points_sum += exact_sum(points)
        if self._first is None:
            self._first = float(page.scores[0])
        self._last = float(page.scores[-1])
        kinds = {field.name: field.type for field in self.schema}
        columns = [
            as_arrow(positions, kinds["position"]),
            as_arrow(ranks, kinds["rank"]),
            names,
            as_arrow(points, kinds["points"]),
            pa.nulls(len(page), kinds["reached_at"])
            if reached_at is None
            else as_arrow(reached_at, kinds["reached_at"]),
            as_arrow(page.scores, kinds["score"]),
        ]
        return pa.record_batch(columns, schema=self.schema)

    def facts(self, attempt: str, parts: tuple[Part, ...], keys: tuple[KeyFacts, ...]) -> StandingFacts:
        """Return what a seal tells of all rows so far, read from ``keys`` and staged by ``attempt`` as ``parts``."""
        return StandingFacts(
            attempt=attempt,
            rows=self._digest.rows,
            digest=self.digest,
            keys=keys,
            points_sum=self._points_sum if self._board.points == "integer" else None,
            first_score=self._first,
            last_score=self._last,
            parts=parts,
        )

    def _text(self, block: Block) -> Any:
        members = block.page.members
        try:
            return members.cast(pa.string())
        except pa.ArrowInvalid:
            at = next(index for index, member in enumerate(members.to_pylist()) if not _is_text(member))
        raise ForeignMemberError(
            f"{self._place(block, at)} is not UTF-8",
            detail=f'board {self._board.name} has member = "text"',
            hint='a board with such ids needs member = "binary"; an adopted key is then adopted again, which until the '
            "seal begins the season anew; else remove or rename that member: a season keeps what it opened with",
        )

    def _decoded(self, block: Block) -> tuple[Any, Any]:
        scores = block.page.scores
        try:
            return self._codec.decode_array(scores)
        except InputError as error:
            at = next(index for index, score in enumerate(scores.tolist()) if not self._is_own(score))
            raise ForeignMemberError(
                f"{self._place(block, at)} has a score that board {self._board.name} cannot have written",
                detail=error.message,
                hint="find what else writes to this key, and correct or remove the member; with Finale's own ledger "
                "finale reconcile --repair does",
            ) from None

    def _is_own(self, score: float) -> bool:
        try:
            self._codec.decode(score)
        except InputError:
            return False
        return True

    def _place(self, block: Block, at: int) -> str:
        member = in_one_line(block.page.members[at].as_py())
        position, score = self._ranker.rows + at + 1, float(block.page.scores[at])
        return f"{self._keys[int(block.origins[at])]}: member '{member}' at position {position:,} (score {score!r})"


def _is_text(member: bytes) -> bool:
    try:
        member.decode()
    except UnicodeDecodeError:
        return False
    return True
