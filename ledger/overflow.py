"""Which of a player's lines do not fit into what a board's scores can hold; all others are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def refused(beyond: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return which ``lines`` of one player are refused, and why, so that the total fits; never none.

    ``beyond``: the ``board``, its ``aggregate``, the ``least`` and ``most`` that its scores can hold, and the
    ``points`` of the total with every line. ``lines``: ``line`` and ``points``, by line. A line whose own points fit no
    total is refused for that alone, and the rest is looked at again without it. Where the rest does not fit together,
    lines are taken in the file's order, and the ones refused are those with which the total would not fit.
    """
    least, most = beyond["least"], beyond["most"]
    holds = f"board {beyond['board']} can hold {least:,} to {most:,}"
    # A sum may lose points too, as long as the total stays in its bounds.
    lowest, highest = (least - most, most - least) if beyond["aggregate"] == "sum" else (least, most)
    alone = {
        row["line"]: f"{row['points']:,} points do not fit: {holds}"
        for row in lines
        if not lowest <= row["points"] <= highest
    }
    if alone:
        return alone
    total = int(beyond["points"]) - sum(row["points"] for row in lines)
    found = {}
    for row in lines:
        if least <= total + row["points"] <= most:
            total += row["points"]
        else:
            found[row["line"]] = f"with this line the player's total would be {total + row['points']:,} points; {holds}"
    together = f"the player's total would be {beyond['points']:,} points; {holds}"
    return found or {row["line"]: together for row in lines}
