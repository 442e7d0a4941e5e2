"""What a seal of a correction holds beside what every seal does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archive.layout import check_attempt
from archive.parts import Part
from archive.sealed_grants import FactFile
from archive.sealed_values import Nonsense, agree, parts_of, sha256_text

OF_CORRECTIONS = frozenset(("because", "facts", "grants_seal", "number", "reward_table", "sums", "who"))
CHANGED = "changed"  #: the kind of the facts that change standings: a player, the right points, since when


@dataclass(frozen=True, slots=True)
class CorrectionFacts:
    """What a correction computed: with which table and outside facts, all that hold from it on, and why and by whom.

    ``number`` counts the season's corrections from 1. The rows are the difference to the grants of ``grants_seal`` and
    all earlier corrections.
    """

    number: int
    attempt: str
    rows: int
    parts: tuple[Part, ...]
    grants_seal: str  #: SHA-256 of the seal of the grants
    reward_table: Mapping[str, Any]
    facts: tuple[FactFile, ...]
    sums: Mapping[str, int]  #: item to the exact signed sum of its amounts
    because: str
    who: str

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        return {
            "number": self.number,
            "attempt": self.attempt,
            "rows": self.rows,
            "parts": [part.to_json() for part in self.parts],
            "grants_seal": self.grants_seal,
            "reward_table": dict(self.reward_table),
            "facts": [file.to_json() for file in self.facts],
            "sums": dict(self.sums),
            "because": self.because,
            "who": self.who,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CorrectionFacts:
        """Return the facts that ``to_json`` gave; raise ArchiveMismatchError for anything else."""
        with Nonsense("correction"):
            facts = cls(
                number=value["number"],
                attempt=check_attempt(value["attempt"]),
                rows=value["rows"],
                parts=parts_of(value["parts"], value["rows"]),
                grants_seal=sha256_text(value["grants_seal"]),
                reward_table=dict(value["reward_table"]),
                facts=tuple(FactFile.from_json(file) for file in value["facts"]),
                sums=dict(value["sums"]),
                because=str(value["because"]),
                who=str(value["who"]),
            )
            agree(type(facts.number) is int and facts.number >= 1, "number of the correction")
            agree(all(type(amount) is int for amount in facts.sums.values()), "sums are no whole numbers")
            return facts
