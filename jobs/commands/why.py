"""finale why: one page about one player, for support to paste."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobs import output
from jobs.commands.common import AsJson, BoardName, SeasonName, player_id, wired
from leaderboard.wording import counted, more

Player = Annotated[str, typer.Argument(metavar="PLAYER", help="The player's id, byte for byte; hex on binary boards.")]
_DELIVERY = {
    "acknowledged": "acknowledged",
    "readable": "readable by the game",
    "waiting": "on its way",
    "dead": "NOT TAKEN",
    "not handed over": "not handed over yet",
}


def why(board: BoardName, season_id: SeasonName, player: Player, as_json: AsJson = False) -> None:
    """Tell why a player stands where they stand and was granted what they were, or why they are not on the board.

    Works on a season that is being played too, from the live board.

    Example: finale why goals s2026 "Harry Kane"
    """
    from jobs.boards.playing import season_to_read
    from jobs.payout.why import explain

    with wired() as outside:
        found = season_to_read(outside, board, season_id)
        told = explain(outside, found, player_id(player, "PLAYER", binary=found.board.member == "binary"))
    if as_json:
        output.print_json(told)
        return
    for line in page(told):
        output.out.print(output.shown(line), markup=False, soft_wrap=True)


def page(told: dict[str, Any]) -> list[str]:
    """Return the page, line by line."""
    return [
        f"{told['player_id']} in {told['board']}/{told['season']} ({told['state']}), "
        f"cutoff {output.utc(told['cutoff'])} UTC, from {told['from']}",
        "",
        *_place(told),
        *_rules(told),
        *_grants(told),
        *_not_counted(told),
    ]


def _place(told: dict[str, Any]) -> list[str]:
    standing = told["standing"]
    if standing is None:
        absent = told["not_on_board"]
        lines = [f"Not on the board of {counted(told['players'], 'player')}: {absent['reason']}."]
        lines += _accepted(told)
        lines += [f"  in {one['board']}/{one['season']}: {one['points']:,} points" for one in absent["other_boards"]]
        return lines
    reached = f", reached {standing['reached_at']}" if standing["reached_at"] else ""
    lines = [
        f"Rank {standing['rank']:,}, position {standing['position']:,} of {told['players']:,}: "
        f"{standing['points']:,} points{reached}.",
        *_accepted(told),
    ]
    if above := told["above"]:
        lines.append(f"Just above: {above['player_id']} (position {above['position']:,}): {above['because']}.")
    else:
        lines.append("Nobody stands above.")
    if below := told["below"]:
        lines.append(f"Just below: {below['player_id']} with {below['points']:,} points.")
    if corrected := told["corrected"]:
        where = f"position {corrected['position']:,}" if corrected["position"] else "not on the board"
        lines.append(f"Once voided matches are taken back (a correction): {where}.")
    return lines


def _accepted(told: dict[str, Any]) -> list[str]:
    accepted = told["accepted_drift"]
    if accepted is None:
        return []
    has = "no points of this player"
    if accepted["ledger_points"] is not None:
        has = f"{accepted['ledger_points']:,} points, reached {output.utc(accepted['ledger_reached_at'])} UTC"
    by = f"accepted by {accepted['by']} at {accepted['at']}: {accepted['because']}"
    return [f"The ledger has {has}; the difference was {by}."]


def _rules(told: dict[str, Any]) -> list[str]:
    lines = []
    if excluded := told["excluded"]:
        lines.append(f"Excluded from rewards: {excluded['reason']} ({excluded['source']}).")
    lines += [f"Not eligible: {one['why']}." for one in told["not_eligible"]]
    if moved := told["moved"]:
        up = (
            f"so for the rules this is place {moved['place']:,}"
            if moved["removed"] == "close_up"
            else "their places stay empty"
        )
        above = counted(moved["left_out_above"], "player above is", "players above are")
        lines.append(f"{above} excluded or not eligible: {up}.")
    if told["rules"]:
        lines += ["", "Rules:"]
    for one in told["rules"]:
        points = f", {one['points_short']:,} points behind it" if one.get("points_short") else ""
        lines.append(f"  {'yes' if one['taken'] else 'no '}  {one['rule']} ({one['condition']}): {one['why']}{points}")
    return lines


def _grants(told: dict[str, Any]) -> list[str]:
    lines = ["", "Grants:" if told["grants"] else "No grants."]
    for one in told["grants"]:
        of = f", correction {one['correction']}" if one["correction"] else ""
        state = _DELIVERY[one["delivery"]]
        at = f" {output.utc(one['delivered_at'])} UTC" if one["delivered_at"] else ""
        reason = f" ({one['reason']})" if one["reason"] else ""
        lines.append(f"  {one['amount']:+,} {one['item']} ({one['rule']}{of}): {state}{at}{reason}  {one['grant_id']}")
    return lines


def _not_counted(told: dict[str, Any]) -> list[str]:
    lines = []
    for kind, listed in told["did_not_count"].items():
        lines += ["", f"Results that did not count, {kind}: {listed['total']:,}"]
        for one in listed["results"]:
            played = f" played {output.utc(one['played_at'])} UTC" if one["played_at"] else ""
            lines.append(f"  match {one['match_id']}, {one['points']} points{played}: {one['reason']}")
        if left := more(listed["total"] - len(listed["results"])):
            lines.append(f" {left}; finale results lists them")
    return lines
