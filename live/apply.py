"""Writes totals to a live board, batch by batch, so that no late, lost or repeated write can make it wrong.

Beside the live key stands a hash: of each bucket of players the fence of its lease (``f<bucket>``), the running number
of its last batch (``n<bucket>``) and that batch's token (``t<bucket>``). Scores are absolute. One script call writes a
batch of each of some buckets; a batch is refused unless its fence is the stored one and its number the next one. So a
write that arrives after a take-over, after a failover or after the season was cleaned changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import isfinite

from redis import Redis
from redis.client import NEVER_DECODE

from leaderboard.errors import InputError
from leaderboard.keys import helper_key
from leaderboard.marks import Mark, new_token
from live.errors import FencedError, LostWritesError, RolledBackError, UnclaimedError
from live.scripts import run, send
from live.translate import translated

_PIPELINED = 500  # keys that are asked for at once


def claim(client: Redis, live_key: str, bucket: int | Sequence[int], fence: int | Sequence[int]) -> list[Mark]:
    """Put each bucket's fence beside the live key and return how far each bucket has been written there.

    One fence may be given for all buckets. All are claimed or none: FencedError when a bucket has a higher fence.
    Claiming again with the same fence changes nothing, so it also tells what became of a batch whose answer was lost.
    """
    buckets = [bucket] if isinstance(bucket, int) else list(bucket)
    fences = [fence] * len(buckets) if isinstance(fence, int) else list(fence)
    pairs = chain.from_iterable(zip(buckets, fences, strict=True))
    status, *rest = run(client, "claim", {helper_key(live_key, "applied"): "hash"}, *pairs)
    if status == b"fenced":
        mine = fences[buckets.index(int(rest[0]))]
        raise _fenced(live_key, int(rest[0]), mine, int(rest[1]))
    return _marks(rest)


def written(client: Redis, live_key: str, buckets: Sequence[int]) -> list[Mark]:
    """Return how far each bucket has been written to the live key, without claiming it."""
    key = helper_key(live_key, "applied")
    with translated(client, {key: "hash"}):
        found = send(client, "HMGET", key, *(f"{kind}{bucket}" for bucket in buckets for kind in "nt"))
    return _marks(found)


def written_to_all(client: Redis, wanted: Mapping[str, Sequence[int]]) -> dict[str, list[Mark] | None]:
    """Return the same of the buckets wanted of each of many live keys, asked at once; None where one cannot be told."""
    found: dict[str, list[Mark] | None] = {}
    keys = iter(wanted)
    while chunk := list(islice(keys, _PIPELINED)):
        with translated(client, {}), client.pipeline(transaction=False) as pipeline:
            for key in chunk:
                fields = (f"{kind}{bucket}" for bucket in wanted[key] for kind in "nt")
                pipeline.execute_command("HMGET", helper_key(key, "applied"), *fields, **{NEVER_DECODE: True})  # type: ignore[no-untyped-call]  # has no annotations
            replies = pipeline.execute(raise_on_error=False)
        for key, reply in zip(chunk, replies, strict=True):
            found[key] = None if isinstance(reply, Exception) else _marks(reply)
    return found


def _marks(replied: Sequence[bytes | None]) -> list[Mark]:
    pairs = zip(replied[0::2], replied[1::2], strict=True)
    return [Mark(int(number or 0), (token or b"").hex()) for number, token in pairs]


def withdraw(client: Redis, live_key: str, bucket: int, fence: int) -> None:
    """Take back a claim that came too late: remove it if it still stands and no batch was ever applied in the bucket.

    What a cleaned season forgot does so not come back. Safe to repeat.
    """
    run(client, "withdraw", {helper_key(live_key, "applied"): "hash"}, bucket, fence)


@dataclass(frozen=True, slots=True)
class Batch:
    """Scores of one bucket's members, and members to take out, as its batch ``number`` under its lease's ``fence``."""

    bucket: int
    fence: int
    number: int
    members: Sequence[bytes]
    scores: Sequence[float]
    removed: Sequence[bytes]
    token: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", new_token(self.fence))

    def arguments(self, live_key: str) -> Iterator[bytes | str | int]:
        """Yield the batch as the script takes it. Raises InputError for a score that is no finite number."""
        finite = [float(score) + 0.0 for score in self.scores]  # -0 is 0, as Redis has it
        if not all(map(isfinite, finite)):
            raise InputError(
                f"{live_key}: a score that is not a finite number", detail=f"bucket {self.bucket}, batch {self.number}"
            )
        yield from (self.bucket, self.fence, self.number, self.token, len(finite), len(self.removed))
        yield from chain.from_iterable(zip(map(repr, finite), self.members, strict=True))
        yield from self.removed


def apply(
    client: Redis,
    live_key: str,
    *,
    bucket: int,
    fence: int,
    number: int,
    members: Sequence[bytes],
    scores: Sequence[float],
    removed: Sequence[bytes],
    beside: str | None = None,
    moving: str = "",
    bands: str = "",
) -> Mark:
    """Apply one batch as ``apply_all`` does, and return what the server has of the bucket then.

    Raises what ``apply_all`` returns of a batch that was refused.
    """
    batch = Batch(bucket, fence, number, members, scores, removed)
    [found] = apply_all(client, live_key, [batch], beside=beside, moving=moving, bands=bands)
    if isinstance(found, Mark):
        return found
    raise found


def apply_all(
    client: Redis,
    live_key: str,
    batches: Sequence[Batch],
    *,
    beside: str | None = None,
    moving: str = "",
    bands: str = "",
) -> list[Mark | FencedError | LostWritesError]:
    """Give members their scores and take members out, a batch of each of several buckets in one call.

    Each batch is written whole or refused, whatever becomes of the others. Returns, for each, what the server has of
    the bucket then, or why it was refused: FencedError when another applier holds the bucket, UnclaimedError when the
    server does not know the claim, RolledBackError when the number is not the one after the stored number.

    ``moving`` marks the members as added to this shard while another may still have them; with ``bands``, the text of a
    scale, the counts of score bands follow. The buckets are claimed beside the live key, or ``beside`` another name in
    its slot.

    Raises InputError for a score that is no finite number, before anything is sent. After UnavailableError each batch
    may have been written or not, and may still arrive: claim again and apply again from the number that says; whichever
    comes second is refused.
    """
    assert len({batch.bucket for batch in batches}) == len(batches), "sent again, the first of two would be refused"
    arguments = [argument for batch in batches for argument in batch.arguments(live_key)]
    replied = run(
        client,
        "apply",
        {live_key: "zset"} | {helper_key(beside or live_key, kind): "hash" for kind in ("applied", "moving", "bands")},
        *(moving, bands, *arguments),
    )
    pairs = zip(batches, replied[0::2], replied[1::2], strict=True)
    return [_outcome(live_key, batch, status, stored) for batch, status, stored in pairs]


def _outcome(live_key: str, batch: Batch, status: bytes, stored: bytes) -> Mark | FencedError | LostWritesError:
    if status == b"fenced":
        return _fenced(live_key, batch.bucket, batch.fence, int(stored))
    if status == b"unclaimed":
        return UnclaimedError(
            f"{live_key}: the server does not know the claim on bucket {batch.bucket} under fence {batch.fence}",
            detail=f"it has fence {int(stored)}" if stored else "it has none",
            hint="a failover lost it, or the season was cleaned: look at the season, then claim and apply again",
        )
    if status == b"number":
        return RolledBackError(
            f"{live_key}: bucket {batch.bucket} stands at batch {int(stored)}, so batch {batch.number} cannot follow",
            stored=int(stored),
            hint="the server lost writes, or a write arrived whose answer did not: apply everything since again",
        )
    return Mark(batch.number, batch.token.hex())


def present(client: Redis, live_key: str, members: Sequence[bytes]) -> list[bytes]:
    """Return those of ``members`` that the live key has."""
    if not members:
        return []
    with translated(client, {live_key: "zset"}):
        scores = send(client, "ZMSCORE", live_key, *members)
    return [member for member, score in zip(members, scores, strict=True) if score is not None]


def _fenced(live_key: str, bucket: int, fence: int, stored: int) -> FencedError:
    return FencedError(
        f"{live_key}: bucket {bucket} is held by another applier",
        detail=f"its fence is {stored}, this one's {fence}",
        hint="nothing was written; the other applier goes on",
    )
