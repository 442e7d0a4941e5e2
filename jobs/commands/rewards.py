"""finale rewards: what is paid, to whom, how it arrives, and how it is put right."""

from __future__ import annotations

import typer

from jobs.commands import correcting, delivery

rewards = typer.Typer(help="Grants: their delivery and correction.", no_args_is_help=True)
rewards.command("status")(delivery.status)
rewards.command("retry")(delivery.retry)
rewards.command("correct")(correcting.correct)
