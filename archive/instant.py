"""A season's sorted sets, one or several, watched at once, read as one board, and proved to be of one instant (I3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from itertools import accumulate
from types import TracebackType
from typing import Any

import numpy as np

from archive.ahead import Ahead, Reading
from archive.columns import decode_reply, joined
from archive.drain import DrainError, Paging, pages
from archive.fingerprints import MOST_ROWS, Prints, all_differ
from archive.merge import Block, Rows, merged
from archive.pacing import PAGE_BUDGET, PAGE_ROWS, Pacer, divided
from archive.plan import TASK_ROWS, CountsError, Span, Task, plan
from archive.proof import ProofConnection
from archive.seal import KeyFacts

Connect = Callable[[str], ProofConnection]  #: to the server that has the key
_PIPELINED = 200


class Instant:
    """The sorted sets ``keys``, each under a WATCH on a connection of its own; all are answered once it is entered.

    That they were read at one instant is proved by :meth:`prove`: each was what it was at its WATCH until its EXEC, so
    all were together from the last WATCH to the first EXEC, which follows the last page.
    """

    def __init__(self, connect: Connect, keys: Sequence[str]) -> None:
        self._connect = connect
        self._stack = ExitStack()
        self._proofs: list[ProofConnection] = []
        self._readings: list[Reading] = []
        self._ahead: Ahead | None = None
        self._prints: Prints | None = None
        self.keys = tuple(keys)
        self.rows: list[int] = []  #: of each sorted set, 0 for one that does not exist

    def __enter__(self) -> Instant:
        with ExitStack() as stack:
            for key in self.keys:
                self._proofs.append(stack.enter_context(self._connect(key)))
            found = [proof.watch(key).rows for key, proof in zip(self.keys, self._proofs, strict=True)]
            self.rows = [rows.get(key, 0) for key, rows in zip(self.keys, found, strict=True)]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def blocks(
        self,
        *,
        descending: bool,
        cuts: Sequence[float] = (),
        page_rows: int = PAGE_ROWS,
        page_budget: timedelta = PAGE_BUDGET,
    ) -> Iterator[Block]:
        """Yield all rows in board order, task by task; ``cuts`` are scores at which sorted sets begin, if they do.

        Raises what ``archive.drain.pages`` raises.
        """
        if len(self.keys) == 1:
            alone = pages(
                self._proofs[0], self.keys[0], descending=descending, page_rows=page_rows, page_budget=page_budget
            )
            yield from merged([Rows(0, alone)], self.rows, descending=descending)
            return
        tasks = self._plan(descending, cuts)
        rows, size = divided(page_rows, len(self.keys))
        paced = {proof.address: Pacer(rows, page_budget, size) for proof in self._proofs}
        total = sum(self.rows)
        self._prints = np.empty(total, np.uint64) if total <= MOST_ROWS else None
        ends = list(accumulate(self.rows))
        self._readings = [
            Reading(
                proof.address,
                Paging(proof, key, descending=descending, pacer=paced[proof.address]),
                None if self._prints is None else self._prints[end - count : end],
            )
            for key, proof, count, end in zip(self.keys, self._proofs, self.rows, ends, strict=True)
        ]
        self._ahead = ahead = self._stack.enter_context(Ahead(self._readings, tasks))
        sources = [Rows(number, ahead.pages(reading)) for number, reading in enumerate(self._readings)]
        for task in tasks:
            yield from merged(sources, task.rows, descending=descending)

    @property
    def complete(self) -> bool:
        """Whether several sorted sets have been read to their end, although not all of it was yielded yet."""
        return self._ahead is not None and self._ahead.complete

    def all_differ(self) -> bool:
        """Return whether no member is in two sorted sets, as far as fingerprints tell, once all were read.

        False may also mean that two of them look alike, or that there were too many rows to tell.
        """
        return len(self.keys) == 1 or (self._prints is not None and all_differ(self._prints))

    def prove(self, how: Callable[[ProofConnection], object] = ProofConnection.exec) -> None:
        """Prove that no sorted set has changed; raises what ``how`` raises on any of them."""
        for proof in self._proofs:
            how(proof)

    def key_facts(self, digest: str) -> tuple[KeyFacts, ...]:
        """Return what was read of each sorted set; ``digest`` is that of all rows."""
        if len(self.keys) == 1:
            return (KeyFacts(self.keys[0], self.rows[0], digest),)
        read = zip(self.keys, self._readings, strict=True)
        return tuple(KeyFacts(key, reading.digest.rows, reading.digest.hexdigest()) for key, reading in read)

    def _plan(self, descending: bool, cuts: Sequence[float]) -> list[Task]:
        direction = ("REV",) if descending else ()

        def scores_at(places: Sequence[tuple[int, int]]) -> list[float]:
            asked = [(number, ("ZRANGE", self.keys[number], at, at, *direction, "WITHSCORES")) for number, at in places]
            found = [decode_reply(reply) for reply in self._ask(asked)]
            if not all(found):
                raise CountsError("a row that was counted is not there")
            return [float(page.scores[0]) for page in found]

        def counts(spans: Sequence[Span]) -> list[list[int]]:
            asked = [
                (number, ("ZCOUNT", key, span.minimum, span.maximum))
                for span in spans
                for number, key in enumerate(self.keys)
            ]
            replies = [int(reply) for reply in self._ask(asked)]
            return [replies[at : at + len(self.keys)] for at in range(0, len(replies), len(self.keys))]

        try:
            return plan(self.rows, scores_at, counts, descending=descending, cuts=cuts, task_rows=TASK_ROWS)
        except CountsError as error:
            self.prove(ProofConnection.unchanged)
            raise DrainError(
                f"{', '.join(self.keys[:3])}…: the counts of ranges of scores do not fit together",
                detail=str(error),
                hint="check that nothing between here and the server changes replies; nothing was archived",
            ) from None

    def _ask(self, asked: Sequence[tuple[int, tuple[str | int, ...]]]) -> Iterator[Any]:
        """Yield the replies to commands, each for the sorted set of that number, all servers at work at once."""
        for at in range(0, len(asked), _PIPELINED):
            chunk = asked[at : at + _PIPELINED]
            for number, command in chunk:
                self._proofs[number].send(*command)
            yield from [self._proofs[number].read() for number, _ in chunk]


def joined_blocks(blocks: list[Block]) -> Block:
    """Return the rows of all ``blocks``, at least one, as one."""
    if len(blocks) == 1:
        return blocks[0]
    return Block(joined([block.page for block in blocks]), np.concatenate([block.origins for block in blocks]))
