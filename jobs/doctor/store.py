"""The archive's store: conditional put, read and list after a write, room, and what a bucket's rules may do."""

from __future__ import annotations

import time
from collections.abc import Mapping

from archive.canary import check_conditional_put, shown
from archive.disk import free_bytes
from archive.store import open_store
from config.settings import Settings
from jobs.doctor.checks import Check, Checks

#: The board under whose staging canaries are put where none is configured.
_NOBODY = "doctor"


def look(settings: Settings, environ: Mapping[str, str], boards: list[str]) -> list[Check]:
    """Return what is found of the store. Canaries are put as dead attempts of a board, which sweeping removes."""
    checks = Checks("store")
    board = boards[0] if boards else _NOBODY
    with checks.trying("answers"):
        store = open_store(settings.store, environ)
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


def _rules(checks: Checks) -> None:
    checks.add(
        "lifecycle rules",
        "unknown",
        "untested: the client cannot ask for a bucket's rules",
        "see that no rule expires or moves objects outside staging/: a seal names every file for ever",
    )
