"""finale rewards: what is paid, to whom, how it arrives, and how it is put right."""

from __future__ import annotations

import typer

from jobs.commands import correcting, delivery, granting

rewards = typer.Typer(help="Grants: what would be paid, their delivery and correction.", no_args_is_help=True)
rewards.command("check")(granting.check)
rewards.command("preview")(granting.preview)
rewards.command("approve")(granting.approve)
rewards.command("status")(delivery.status)
rewards.command("retry")(delivery.retry)
rewards.command("correct")(correcting.correct)
