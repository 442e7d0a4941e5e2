"""Sums of whole numbers, exactly, whatever their size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def exact_sum(points: NDArray[np.int64]) -> int:
    """Return the sum of whole-number points, which may pass 64 bits."""
    return (int((points >> 32).sum()) << 32) + int((points & 0xFFFFFFFF).sum())
