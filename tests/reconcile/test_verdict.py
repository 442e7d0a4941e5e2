"""What follows from a comparison, without any server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.drift import Comparison
from reconcile.verdict import REPAIRS, Allowed, Decision, decide

EQUAL = Comparison(100, 0, 0, 0, 0, 0, 500, 500, 0)
DRIFT = replace(EQUAL, equal=98, only_ledger=2, redis_points=490)
OWN = Allowed(own=True, repairs=2, done=0)
HASH, OTHER = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("found", "allowed", "expected"),
    [
        (EQUAL, OWN, Decision.AGREED),
        (replace(EQUAL, equal=97, tolerated=3, redis_points=503), OWN, Decision.AGREED),
        (replace(EQUAL, redis_points=501), OWN, Decision.HOLD),
        (DRIFT, OWN, Decision.REPAIR),
        (replace(DRIFT, only_redis=1), OWN, Decision.HOLD),
        (DRIFT, replace(OWN, repairs=1), Decision.HOLD),
        (DRIFT, replace(OWN, repairs=0), Decision.HOLD),
        (DRIFT, replace(OWN, own=False), Decision.HOLD),
        (DRIFT, replace(OWN, done=REPAIRS - 1), Decision.REPAIR),
        (DRIFT, replace(OWN, done=REPAIRS), Decision.HOLD),
        (replace(DRIFT, null_ids=1), OWN, Decision.HOLD),
        (DRIFT, replace(OWN, own=False, accepted=frozenset({HASH})), Decision.ACCEPTED),
        (DRIFT, replace(OWN, repairs=0, accepted=frozenset({OTHER})), Decision.HOLD),
        (EQUAL, replace(OWN, accepted=frozenset({HASH})), Decision.AGREED),
    ],
)
def test_i4_what_follows(found: Comparison, allowed: Allowed, expected: Decision) -> None:
    """I4: agreed, accepted as this very difference, repaired within the bound, or held; each with its reason."""
    verdict = decide(found, HASH, allowed)
    assert verdict.decision is expected
    assert verdict.why
