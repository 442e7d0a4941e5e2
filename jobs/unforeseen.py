"""What nobody foresaw stops at the season or board it happened to: told with its name, and the rest goes on."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from jobs.output import log
from leaderboard.errors import FinaleError


def told(name: str, error: Exception) -> FinaleError:
    """Return an error as it is told of the season or board ``name``; one that is no FinaleError is logged as a fault.

    Call it where the error was caught: FINALE_DEBUG shows where it came from.
    """
    if isinstance(error, FinaleError):
        return error
    # What the error says may hold a secret, such as a URL: only where it came from is told.
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}, line {last.lineno}"
    log().error("tick.unforeseen", name=name, error=type(error).__name__, place=place)
    if os.environ.get("FINALE_DEBUG"):
        traceback.print_exc()
    return FinaleError(
        f"{name}: this should not have happened: {type(error).__name__} in {place}",
        detail="nothing is lost, and it is tried again with the next tick; the others went on",
        hint="set FINALE_DEBUG=1, run finale tick, and report what it shows",
    )
