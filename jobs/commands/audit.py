"""finale audit: is everything of a sealed season what it says it is, asked of the object store alone?"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs import output
from jobs.commands.common import AsJson, BoardName, SeasonName
from leaderboard.errors import ArchiveMismatchError, InputError
from leaderboard.wording import counted

if TYPE_CHECKING:
    from jobs.payout.auditing import Check

_HASH = re.compile(r"[0-9a-fA-F]{64}")


def audit(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The archive: s3://…, gs://…, az://…, file://… or a folder.")
    ],
    board: BoardName,
    season_id: SeasonName,
    tip: Annotated[
        str | None, typer.Option("--tip", metavar="HASH", help="SHA-256 of a seal of the board, written down before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a season with the archive alone: seals, files, ranks, grants and corrections; no configuration, no servers.

    What was cut off at the end of the chain can be seen only with --tip. The last seal's hash, told here, is what to
    write down for the next audit. Ends with exit code 30 if anything is not as it should be.

    Example: finale audit s3://bucket/archive goals s2026 --tip 4a803ae4…
    """
    from archive.store import FolderStore, open_store
    from jobs.payout.auditing import audit as audited

    if tip is not None and not _HASH.fullmatch(tip):
        raise InputError(
            f"--tip {tip!r} is no SHA-256", hint="64 hexadecimal digits, as finale archive list --json tells"
        )
    if not url.strip():
        raise InputError("an empty text names no archive", hint="is a variable of the script not set?")
    store = open_store(url if "://" in url else Path(url).absolute().as_uri(), os.environ)
    if isinstance(store, FolderStore):
        store.check_exists(f"look at {url!r}: the archive is the folder that has seals/ and standings/")
    found = audited(store, board, season_id, tip)
    if as_json:
        output.print_json(found.to_json())
    else:
        output.print_table(
            ("check", "", "what"),
            [(check.name, "FAULT" if check.faults else "right", _told(check)) for check in found.checks],
        )
        last = found.last
        output.out.print(
            f"the chain ends with number {last.seal.chain.number}: {last.sha256}", markup=False, soft_wrap=True
        )
    if found.faults:
        raise ArchiveMismatchError(
            f"{board}/{season_id} is not what was sealed",
            detail="\n".join(found.faults),
            hint="restore what is missing or changed from a backup, and find out who changed it",
        )


def _told(check: Check) -> str:
    return f"{counted(len(check.faults), 'fault')}, told below" if check.faults else check.told
