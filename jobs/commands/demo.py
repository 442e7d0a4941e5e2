"""finale demo: a whole season on servers of its own, from the first result to the forgotten key."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    players: Annotated[int, typer.Option("--players", min=20, max=10_000_000, help="How many players.")] = 100_000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed plays the same season.")] = 1,
) -> None:
    """Play a season, close it, pay it, archive it, and forget the key; leaves nothing running.

    Example: finale demo --players 20000
    """
    from jobs.demo.play import play

    play(players, seed)
