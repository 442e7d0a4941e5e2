"""finale archive list, show, verify and sweep; the analysts' commands and adopt are in files of their own."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import output
from jobs.commands import adopting, analysts
from jobs.commands.analysts import OfKind, archive_store, checked_kind
from jobs.commands.common import AsJson, BoardName, SeasonName
from leaderboard.errors import InputError
from leaderboard.wording import counted

if TYPE_CHECKING:
    from archive.abandoned import Verdict
    from archive.catalog import Catalog, Sealed
    from archive.objects import Store
    from archive.results import ResultsSeal
    from archive.seal import Seal

archive = typer.Typer(
    help="The sealed archive. All but adopt ask the store alone, not Redis or PostgreSQL.", no_args_is_help=True
)


@archive.command("list")
def list_seals(
    board: Annotated[str | None, typer.Argument(metavar="BOARD", help="Only this board.")] = None,
    as_json: AsJson = False,
) -> None:
    """List every seal: board, season, kind, rows, size, when it was sealed, its number in the board's chain.

    Results that were pruned have seals beside the chain, without a number. Parts that are not in place are noted.

    Example: finale archive list goals
    """
    from archive import results as archived
    from archive.catalog import Catalog, read_catalog, unpublished

    store = archive_store()
    catalog = read_catalog(store, board)
    results, faults = archived.every(store, board)
    rows = [one.to_json() for one in catalog.seals] + [one.to_json() for one in results]
    if as_json:
        output.print_json(rows)
    elif rows:
        output.print_table(
            ("board", "season", "kind", "rows", "bytes", "sealed at (UTC)", "number"),
            [
                (
                    one["board"],
                    one["season"],
                    one["kind"],
                    f"{one['rows']:,}",
                    f"{one['bytes']:,}",
                    output.utc(one["sealed_at"]),
                    one["number"],
                )
                for one in rows
            ],
            numbers=("rows", "bytes", "number"),
        )
    else:
        output.out.print(f"nothing is sealed in {store.url}", markup=False)
    for what in (*unpublished(store, catalog.seals).values(), *archived.incomplete(store, results)):
        output.err.print(f"note: sealed but not in place (being copied, or damaged): {what}", markup=False)
    Catalog(catalog.seals, (*catalog.faults, *faults)).check()


@archive.command("show")
def show(board: BoardName, season_id: SeasonName, kind: OfKind = "standings", as_json: AsJson = False) -> None:
    """Show a season's seal; with --json the seal itself, byte for byte.

    Example: finale archive show goals s2026 --kind grants
    """
    from archive.fetch import load_seal
    from archive.seal import sha256

    store = archive_store()
    seal = load_seal(store, board, season_id, checked_kind(kind))
    data = store.get(seal.path)
    if as_json:
        typer.echo(data.decode(), nl=False)
        return
    facts: dict[str, Any] = {
        "sealed": f"{seal.kind} of {seal.board_name}/{seal.bounds.id}",
        "season (UTC)": f"{output.utc(seal.bounds.starts_at)} to {output.utc(seal.bounds.ends_at)}",
        "sealed at (UTC)": f"{output.utc(seal.sealed_at)}, by {seal.software}",
        "rows": f"{seal.facts.rows:,}",
        **_told(seal.facts.to_json()),
        **{name: _one_line(told) for name, told in _settled(seal).items()},
        "in the chain": f"number {seal.chain.number}, after {seal.chain.previous or 'none'}",
        "seal": f"{store.url}/{seal.path}",
        "its SHA-256": sha256(data),
    }
    output.print_table(("fact", "value"), [(name, value) for name, value in facts.items() if value is not None])
    output.print_table(
        ("part", "rows", "bytes", "sha256"),
        [(part.name, f"{part.rows:,}", f"{part.size:,}", part.sha256) for part in seal.facts.parts],
        numbers=("rows", "bytes"),
    )


def _settled(seal: Seal) -> dict[str, Any]:
    return {"reconcile": seal.reconcile, "repaired": seal.repaired, "accepted drift": seal.accepted_drift}


def _one_line(told: Any) -> str | None:
    """Return what a step wrote down as ``name value, name value``."""
    if isinstance(told, dict):
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told.items())
    return None if told is None else str(told)


def _told(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what a person wants to see of the facts of standings, grants or a correction."""
    if "keys" in facts:
        return {
            "digest": facts["digest"],
            "live key": ", ".join(key["key"] for key in facts["keys"]),
            "sum of points": facts["points_sum"],
            "first, last score": f"{facts['first_score']}, {facts['last_score']}" if facts["rows"] else None,
        }
    if "grants_seal" in facts:
        return {
            "amounts": ", ".join(f"{amount:+,} {item}" for item, amount in sorted(facts["sums"].items())) or "nothing",
            "corrects": facts["grants_seal"],
            "because": facts["because"],
            "by": facts["who"],
        }
    return {
        "amounts": ", ".join(f"{amount:,} {item}" for item, amount in sorted(facts["sums"].items())) or "nothing",
        "from standings": facts["standings_seal"],
    }


@archive.command("verify")
def verify(
    board: Annotated[str | None, typer.Argument(metavar="BOARD", help="The board's name.")] = None,
    season_id: Annotated[str | None, typer.Argument(metavar="SEASON", help="The season's id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every season of the board, or of all boards.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read every part of a sealed season again, its grants and pruned results too, and compare all with the seals.

    With --all, every season, the chain of each board's seals, and parts that no seal has as well. Goes on after a
    fault, and then ends with exit code 30; with --json, "faults" has each: file, what, expected, found.

    Example: finale archive verify goals s2026
    """
    from archive import results as archived
    from archive.catalog import unsealed
    from archive.chain import chain_faults
    from archive.faults import split
    from archive.faults import told as in_words
    from leaderboard.errors import ArchiveMismatchError

    if everything == (season_id is not None):
        raise InputError("verify takes a board and a season, or --all", hint="finale archive verify goals s2026")
    store = archive_store()
    catalog = _asked(store, board, season_id)
    results, unreadable = archived.every(store, board, season_id)
    rows = [*(_verified(store, one) for one in catalog.seals), *(_verified(store, one) for one in results)]
    loose = [*catalog.faults, *unreadable]
    seals = len(rows) + len(loose)
    if everything:
        loose += [split(told) for told in chain_faults(catalog.seals)]
        loose += [*unsealed(store, board), *archived.unsealed(store, board)]
    faults = [fault for row in rows for fault in row["faults"]] + loose
    if as_json:
        shown = [{**row, "faults": [fault.to_json() for fault in row["faults"]]} for row in rows]
        output.print_json(shown + [{**_NO_SEAL, "seal": one.file, "faults": [one.to_json()]} for one in loose])
    elif any(not row["faults"] for row in rows):
        output.print_table(
            ("sealed", "rows", "parts", "bytes", "seconds", "seal"),
            [
                (
                    one["kind"],
                    f"{one['rows']:,}",
                    one["parts"],
                    f"{one['bytes']:,}",
                    f"{one['seconds']:.2f}",
                    one["seal"],
                )
                for one in rows
                if not one["faults"]
            ],
            numbers=("rows", "parts", "bytes", "seconds"),
        )
    if faults:
        raise ArchiveMismatchError(
            f"{counted(len(faults), 'fault')} in {counted(seals, 'seal')}",
            detail=in_words(faults, "\n"),
            hint="restore these files from a backup; nothing that still exists elsewhere may be removed before; "
            "files without a seal are no season: move them away",
        )
    if not as_json:
        for row in rows:
            if row["keys"] == 0:
                output.out.print(
                    f"{row['board']}/{row['season']}: players were not in the shards that the board's layout gives "
                    "them; the standing is as sealed, the digests of its live keys could not be computed again",
                    markup=False,
                )
        told = "everything is as it was sealed" if rows else f"nothing is sealed in {store.url}: nothing was verified"
        output.out.print(told, markup=False)


def _asked(store: Store, board: str | None, season_id: str | None) -> Catalog:
    """Return the seals that are to be verified; raise UnknownNameError if the named season has none."""
    from archive.catalog import read_catalog, season_catalog

    if board is not None and season_id is not None:
        return season_catalog(store, board, season_id)
    return read_catalog(store, board)


#: What a row of ``verify`` says of a file that is no seal.
_NO_SEAL = dict.fromkeys(("board", "season", "kind", "rows", "parts", "bytes", "digest", "keys", "seconds"))


def _verified(store: Store, one: Sealed | ResultsSeal) -> dict[str, Any]:
    """Return what ``verify`` tells of a seal; ``faults`` is empty if everything is as sealed."""
    from archive import results as archived
    from archive.faults import NotAsSealedError, split
    from archive.verify import verify as verified
    from leaderboard.errors import ArchiveMismatchError

    told = one.to_json()
    row = {name: told[name] for name in ("board", "season", "kind", "rows", "parts", "bytes")}
    row |= {"digest": None, "keys": None, "seal": told["path"], "seconds": None, "faults": []}
    output.heard("archive.verify", path=told["path"])
    started = time.monotonic()
    try:
        if isinstance(one, archived.ResultsSeal):
            archived.verify(store, one)
        else:
            found = verified(store, one.seal.board_name, one.seal.bounds.id, one.seal.kind)
            row |= {"digest": found.digest, "keys": found.keys}
    except NotAsSealedError as error:
        row["faults"] = list(error.faults)
    except ArchiveMismatchError as error:
        row["faults"] = [split(f"{told['path']} {error}")]
    return row | {"seconds": round(time.monotonic() - started, 3)}


@archive.command("sweep")
def sweep(
    older_than: Annotated[str, typer.Option("--older-than", metavar="AGE", help="Like 7d or 36h.")] = "7d",
    unsealed: Annotated[
        bool, typer.Option("--unsealed", help="Also the newest attempt of a season since its last seal.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove what attempts that died long ago have staged, and facts that no seal names; what is sealed stays.

    Example: finale archive sweep --older-than 14d --dry-run
    """
    from archive.abandoned import sweep_abandoned, verdicts

    decide = verdicts if dry_run else sweep_abandoned
    found = decide(archive_store(), _age(older_than), datetime.now(UTC), unsealed=unsealed)
    if as_json:
        output.print_json([_swept(one, dry_run) for one in found])
        return
    if not found:
        output.out.print("nothing was left behind")
        return
    done = {True: "to be removed" if dry_run else "removed", False: "kept"}
    output.print_table(
        ("board", "season", "attempt or facts", "files", "bytes", "newest (UTC)", "", "why"),
        [
            (
                one.left.board,
                one.left.season,
                one.left.attempt or one.left.facts,
                len(one.left.objects),
                f"{one.left.size:,}",
                output.utc(one.left.modified),
                done[one.removed],
                one.reason,
            )
            for one in found
        ],
        numbers=("files", "bytes"),
    )


def _age(text: str) -> timedelta:
    from leaderboard.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(f"--older-than: {error}", hint="write a duration like 15m, 2h or 7d") from None


def _swept(one: Verdict, dry_run: bool) -> dict[str, Any]:
    left = one.left
    return {
        "board": left.board,
        "season": left.season,
        "attempt": left.attempt,
        "facts": left.facts,
        "files": len(left.objects),
        "bytes": left.size,
        "modified": left.modified,
        "verdict": "remove" if one.removed else "keep",
        "removed": one.removed and not dry_run,
        "reason": one.reason,
    }


archive.command("sql")(analysts.sql)
archive.command("export")(analysts.export)
archive.command("player")(analysts.player)
archive.command("adopt")(adopting.adopt)
