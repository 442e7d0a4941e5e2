"""finale doctor: what every season relies on, looked at while there is time."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from jobs import output
from jobs.commands.common import AsJson, settings

if TYPE_CHECKING:
    from config.settings import Settings


def doctor(
    boards: Annotated[list[str] | None, typer.Argument(metavar="[BOARD]…", help="Only these boards' keys.")] = None,
    rights: Annotated[
        bool, typer.Option("--rights", help="Print the least rights to give in Redis, PostgreSQL and the bucket.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look at servers, clocks, rights, memory, room and store, and tell what is wrong and what to do about it.

    Changes nothing that stays. Ends with 19 if a check fails, else with 0, whatever it warns of.

    Example: finale doctor --json
    """
    found = settings()
    if rights:
        _print_rights(found, boards or [], as_json)
        return
    from jobs.doctor.checks import ORDER
    from jobs.doctor.examine import examine
    from leaderboard.errors import DoctorError

    checks = examine(found, os.environ, boards or [])
    if as_json:
        worst = max((check.verdict for check in checks), key=ORDER.index)
        output.print_json({"verdict": worst, "checks": [check.to_json() for check in checks]})
    else:
        rows = [(check.verdict, check.area, check.name, check.found, check.remedy) for check in checks]
        output.print_table(("verdict", "where", "what", "found", "remedy"), rows)
    failed = Counter(check.verdict for check in checks)["fail"]
    if failed:
        names = ", ".join(f"{check.area} {check.name}" for check in checks if check.verdict == "fail")
        raise DoctorError(f"{failed} of {len(checks)} checks failed", detail=names, hint="see the remedy of each above")


def _print_rights(found: Settings, boards: list[str], as_json: bool) -> None:
    from jobs.doctor.rights import least

    chosen = [found.board(name) for name in boards] or list(found.boards.values())
    told = least(found, chosen)
    if as_json:
        output.print_json(asdict(told))
        return
    print_part = output.out.print
    print_part("# Redis", markup=False)
    print_part(told.redis, markup=False)
    print_part("\n# PostgreSQL, as the owner of the schema, after finale db migrate", markup=False)
    print_part("\n".join(told.postgres), markup=False)
    print_part("\n# the store", markup=False)
    print_part(told.store, markup=False)
