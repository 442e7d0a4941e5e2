"""finale rewards status and retry: where a season's grants are, and once more for what was not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs import output
from jobs.commands.common import As, AsJson, Because, BoardName, SeasonName, Yes, confirm, who_acts, wired

if TYPE_CHECKING:
    from jobs.wiring import Outside
    from leaderboard.season import Season

_SHOWN = 20  # dead letters that a table shows
_TOLD = 10_000  # that JSON has


def status(board: BoardName, season_id: SeasonName, as_json: AsJson = False) -> None:
    """Tell how a season's grants and corrections are delivered: how many wait, are acknowledged, or are dead letters.

    Example: finale rewards status goals s2026
    """
    from jobs.seasons.closing import find

    with wired() as outside:
        found = find(outside, board, season_id)
        told = _status(outside, found, _TOLD if as_json else _SHOWN)
    if as_json:
        output.print_json(told)
        return
    if not told["deliveries"]:
        output.out.print(f"{found.name} is {found.state}: nothing is to be delivered yet")
        return
    output.print_table(
        ("what", "by", "grants", "waiting", "being sent", "acknowledged", "dead", "delivered at (UTC)"),
        [
            (
                one["what"],
                one["mode"],
                *(f"{one[name]:,}" for name in ("grants", "waiting", "sending", "acknowledged", "dead")),
                output.utc(one["delivered_at"]),
            )
            for one in told["deliveries"]
        ],
        numbers=("grants", "waiting", "being sent", "acknowledged", "dead"),
    )
    if told["paused_until"]:
        again = output.utc(told["paused_until"])
        why = f"after {told['failures']} failures in a row" if told["failures"] else "by its rate"
        output.out.print(f"\nthe target is left alone until {again} UTC, {why}")
    if told["dead_letters"]:
        output.out.print("\n[bold]dead letters[/], each with what the target said")
        output.print_table(
            ("grant", "player", "item", "amount", "tries", "reason"),
            [
                (one["grant_id"], one["player_id"], one["item"], one["amount"], one["attempts"], one["reason"])
                for one in told["dead_letters"]
            ],
            numbers=("amount", "tries"),
        )
        dead = sum(one["dead"] for one in told["deliveries"])
        output.print_more(dead - len(told["dead_letters"]), f"--json lists up to {_TOLD:,}")
        output.out.print(f"send them again with: finale rewards retry {board} {season_id} --as NAME")


def _status(outside: Outside, season: Season, limit: int) -> dict[str, Any]:
    from ledger import outbox

    database, key = outside.database, season.key
    counted: dict[tuple[int, str], dict[str, Any]] = {
        (row["correction"], row["state"]): row for row in outbox.counts(database, key)
    }

    def number(correction: int, state: str, what: str = "grants") -> int:
        return int(counted.get((correction, state), {}).get(what, 0))

    deliveries = []
    planned = outbox.planned(database, key)
    for one in planned:
        sending = number(one.correction, "waiting", "claimed")
        in_table = one.grants if one.mode == "table" else 0
        deliveries.append(
            {
                "what": f"correction {one.correction}" if one.correction else "grants",
                "correction": one.correction,
                "mode": one.mode,
                "grants": one.grants,
                "waiting": number(one.correction, "waiting") - sending,
                "sending": sending,
                "acknowledged": number(one.correction, "acknowledged") + in_table,
                "dead": number(one.correction, "dead"),
                "planned_at": one.planned_at,
                "delivered_at": one.delivered_at,
            }
        )
    until, failures = outbox.paused(database, key)
    return {
        "board": season.board.name,
        "season": season.id,
        "state": str(season.state),
        "deliveries": deliveries,
        "failures": failures,
        "paused_until": until,
        "dead_letters": [_letter(row, season) for row in outbox.dead_letters(database, key, limit)],
    }


def _letter(row: dict[str, Any], season: Season) -> dict[str, Any]:
    player = row["player_id"]
    text = player.hex() if season.board.member == "binary" else player.decode(errors="backslashreplace")
    return {**row, "grant_id": str(row["grant_id"]), "player_id": text}


def retry(
    board: BoardName,
    season_id: SeasonName,
    because: Because = "",
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Send a season's dead letters again, and at once what waits for its next try.

    A receiver that has them already knows them by their ids.

    Example: finale rewards retry goals s2026 --as ana
    """
    from jobs.payout.delivering import deliver
    from jobs.seasons.closing import find
    from jobs.seasons.runner import held
    from ledger import outbox, pausing

    who = who_acts(operator, lever=True)
    with wired() as outside:
        found = find(outside, board, season_id)
        if found.hold is not None:
            raise held(found)
        pausing.check(outside.database)
        confirm(f"send the dead letters of {found.name} again?", yes)
        paused, _ = outbox.paused(outside.database, found.key)
        revived, hurried = outbox.retry(outside.database, found.key, who=who, because=because)
        with output.progress_bar() as bar:
            task = bar.add_task("", total=None)
            later = deliver(
                outside,
                found,
                who=who,
                progress=lambda done, whole: bar.update(task, completed=done, total=whole),
            )
        told = _status(outside, found, _SHOWN)
    if as_json:
        output.print_json({"revived": revived, "hurried": hurried, **told})
        return
    output.out.print(f"{revived:,} dead letters and {hurried:,} waiting grants were made due")
    if paused is not None:
        output.out.print(f"the back-off until {output.utc(paused)} UTC was lifted")
    for one in told["deliveries"]:
        counts = f"{one['acknowledged']:,} acknowledged, {one['waiting']:,} waiting, {one['dead']:,} dead"
        output.out.print(f"{one['what']}: {counts}")
    if later is not None and later.until is None:
        output.out.print(later.told, markup=False)
    elif later is not None:
        output.out.print(f"{later.grants:,} grants wait until {output.utc(later.until)} UTC; finale tick sends them")
