"""What a seal of grants holds beside what every seal does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from archive.layout import check_attempt
from archive.parts import Part
from archive.sealed_values import Nonsense, agree, parts_of, sha256_text
from leaderboard.errors import ArchiveMismatchError

OF_GRANTS = frozenset(("digest", "facts", "reward_table", "standings_seal", "sums"))

EMPTY = "2dba5dbc339e7316aea2683faf839c1b7b1ee2313db792112588118df066aa35"  #: the digest of no grants


_KIND = re.compile(r"[a-z][a-z_]{0,30}")
_IN_NAME = 16  # characters of the hash


@dataclass(frozen=True, slots=True)
class FactFile:
    """A file of facts as the seal names it. ``told`` says where they came from, for a person."""

    kind: str
    rows: int
    size: int
    sha256: str
    told: str

    @property
    def name(self) -> str:
        """The file's name: other facts have another, so two runners never write one file."""
        return f"{self.kind}-{self.sha256[:_IN_NAME]}.parquet"

    def to_json(self) -> dict[str, Any]:
        """Return the file as plain JSON values."""
        return {"kind": self.kind, "rows": self.rows, "size": self.size, "sha256": self.sha256, "told": self.told}

    @classmethod
    def from_json(cls, value: Any) -> FactFile:
        """Return the file that ``value`` describes; raise ArchiveMismatchError for anything else."""
        try:
            file = cls(**value)
            sound = (
                _KIND.fullmatch(file.kind) is not None
                and all(type(number) is int and number >= 0 for number in (file.rows, file.size))
                and len(bytes.fromhex(file.sha256)) == sha256().digest_size
                and isinstance(file.told, str)
            )
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise ArchiveMismatchError(f"this describes no file of facts: {value!r}")
        return file


@dataclass(frozen=True, slots=True)
class GrantFacts:
    """What the reward step computed: from which sealed standings, by which table, and how much of each item."""

    attempt: str
    rows: int
    parts: tuple[Part, ...]
    standings_seal: str  #: SHA-256 of the standings' seal
    reward_table: Mapping[str, Any]
    sums: Mapping[str, int]
    digest: str = EMPTY  #: of the ids and amounts, by which grants are approved
    facts: tuple[FactFile, ...] = ()  #: every outside fact that was used

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        return {
            "attempt": self.attempt,
            "rows": self.rows,
            "parts": [part.to_json() for part in self.parts],
            "standings_seal": self.standings_seal,
            "reward_table": dict(self.reward_table),
            "sums": dict(self.sums),
            "digest": self.digest,
            "facts": [file.to_json() for file in self.facts],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> GrantFacts:
        """Return the facts that ``to_json`` gave; raise ArchiveMismatchError for anything else."""
        with Nonsense("grants"):
            facts = cls(
                attempt=check_attempt(value["attempt"]),
                rows=value["rows"],
                parts=parts_of(value["parts"], value["rows"]),
                standings_seal=sha256_text(value["standings_seal"]),
                reward_table=dict(value["reward_table"]),
                sums=dict(value["sums"]),
                digest=sha256_text(value["digest"]),
                facts=tuple(FactFile.from_json(file) for file in value["facts"]),
            )
            agree(all(type(amount) is int for amount in facts.sums.values()), "sums are no whole numbers")
            return facts
