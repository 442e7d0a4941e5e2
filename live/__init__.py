"""The live boards in Redis: totals written under fences, the top, ranks and neighbours read from one version."""

from live.board import LiveBoard as Board
from live.board import Rank
from live.cache import SharedTop

__all__ = ["Board", "Rank", "SharedTop"]
