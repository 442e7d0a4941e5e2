"""The archive's store: the newest seal, conditional put, read and list after a write, room, a bucket's rules."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing

from archive.canary import check_conditional_put, shown
from archive.disk import free_bytes
from archive.folder import FolderStore
from archive.store import Store, open_store
from config.settings import Settings
from jobs.checks import same_store
from jobs.doctor.checks import Check, Checks
from jobs.endpoints import ledger_database
from leaderboard.errors import FinaleError
from ledger import seals

#: The board under whose staging canaries are put where none is configured.
_NOBODY = "doctor"


def look(settings: Settings, url: str, environ: Mapping[str, str], boards: list[str]) -> list[Check]:
    """Return what is found of the store. Canaries are put as dead attempts of a board, which sweeping removes.

    ``url`` is where the ledger is, which knows what must be there. Nothing is put where there is no folder, which may
    be a mount that is away, nor where the newest seal is missing.
    """
    checks = Checks("store")
    board = boards[0] if boards else _NOBODY
    with checks.trying("answers"):
        store = open_store(settings.store, environ)
        if not _is_ours(checks, store, settings, url):
            return checks.found
        begun = time.perf_counter()
        found = shown(store, board)
        taken = time.perf_counter() - begun
        checks.add("answers", "ok", f"{store.url}: put, read, listed and removed an object in {taken * 1000:,.0f} ms")
        for name, seen, what in (
            ("read after write", found.read, "is read at once"),
            ("list after write", found.listed, "is listed at once"),
            ("delete", found.deleted, "that is removed is gone at once"),
        ):
            told = f"an object {what}" if seen else f"not so: no object {what}"
            checks.add(
                name,
                "ok" if seen else "fail",
                told,
                "use a store that is consistent: what is sealed is listed and read back",
            )
        with checks.trying("conditional put"):
            check_conditional_put(store, board)
            checks.add("conditional put", "ok", "a second put of an object is refused")
        free = free_bytes(store)
        if free is not None:
            checks.room("room", free, store.url)
        else:
            _rules(checks)
    return checks.found


def _is_ours(checks: Checks, store: Store, settings: Settings, url: str) -> bool:
    """Compare the newest seal that the ledger knows to be put; return whether canaries may be put."""
    absent = isinstance(store, FolderStore) and not store.root.exists()
    name = "earlier seals"
    try:
        with closing(ledger_database(settings, url)) as database:
            newest = seals.newest_put(database)
    except FinaleError:
        away = f", and {store.url} does not exist" if absent else ""
        remedy = "see the rows of postgres; a store that is not mounted is mounted, or restored"
        checks.add(name, "unknown", f"the ledger could not be asked for its newest seal{away}", remedy)
        return not absent
    if newest is None:
        first = f"{store.url} does not exist yet; the first seal makes it"
        checks.add(name, "ok", first if absent else "the ledger has none yet")
        return not absent
    row = len(checks.found)
    with checks.trying(name):
        same_store.compare(store, newest)
        checks.add(name, "ok", f"seal {newest.number} of {newest.board}, the ledger's newest, is there as committed")
    return checks.found[row].verdict == "ok"


def _rules(checks: Checks) -> None:
    checks.add(
        "lifecycle rules",
        "unknown",
        "untested: the client cannot ask for a bucket's rules",
        "see that no rule expires or moves objects outside staging/: a seal names every file for ever",
    )
