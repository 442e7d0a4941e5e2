"""Why a player stands where they stand, and was granted what they were: one page, from the archive and the ledger."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from archive.catalog import Sealed
from archive.lookup import history
from archive.positions import Positions
from archive.seal import Seal, sha256
from jobs.boards import standings as read
from jobs.boards.neighbours import because
from jobs.payout import recomputing
from jobs.payout.correction_basis import Sealed as SealedSeason
from jobs.payout.correction_basis import sealed as sealed_so_far
from jobs.payout.recomputing import Basis
from jobs.payout.sealed import committed
from jobs.wiring import Outside
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.errors import UnknownNameError, WrongStateError
from leaderboard.season import Season
from leaderboard.standing import Standing
from leaderboard.states import State, reached
from ledger import corrections, left_out, outbox, why
from live.board import LiveBoard
from rewards.eligibility import missing
from rewards.explain import SparseLadder, outcomes, sparse_ranges
from rewards.facts import needed
from rewards.ids import grant_id, line_key
from rewards.plan import Plan, plan

_LISTED = 20  # results that did not count, of each kind


def explain(outside: Outside, season: Season, player_id: bytes) -> dict[str, Any]:
    """Return everything there is to say, as plain JSON values and times.

    Where the season is sealed, only the parts that hold the player and the lines asked for are read, by their Bloom
    filters and row groups; all of it where outside facts decide the rules.
    """
    binary = season.board.member == "binary"
    sealed = reached(season.state, State.SEALED)
    standing, above, below, players = (_sealed if sealed else _live)(outside, season, player_id)
    told: dict[str, Any] = {
        "board": season.board.name,
        "season": season.id,
        "state": str(season.state),
        "cutoff": season.bounds.ends_at,
        "player_id": Standing(0, 0, player_id, 0, None, 0.0).name(binary=binary),
        "from": "the sealed archive" if sealed else "the live board",
        "players": players,
        "standing": standing.to_json(binary=binary) if standing else None,
        "accepted_drift": _accepted(outside, season, player_id, standing) if sealed else None,
        "above": _neighbour(season, standing, above, binary),
        "below": below.to_json(binary=binary) if below and standing else None,
        "not_on_board": None if standing else _absent(outside, season, player_id),
        "did_not_count": _left_out(outside, season, player_id, binary),
    }
    return {**told, **_rewards(outside, season, player_id, standing)}


def _neighbour(
    season: Season, standing: Standing | None, above: Standing | None, binary: bool
) -> dict[str, Any] | None:
    if standing is None or above is None:
        return None
    return {**above.to_json(binary=binary), "because": because(season.board, standing, above)}


Found = tuple[Standing | None, Standing | None, Standing | None, int]


def _sealed(outside: Outside, season: Season, player_id: bytes) -> Found:
    """Return the player's row, those above and below, and how many rows there are, from the archive."""
    seal = committed(outside, season, "standings")
    rows = Positions(outside.store, seal)
    name = player_id.hex() if season.board.member == "binary" else player_id.decode("utf-8", "surrogateescape")
    past = history(outside.store, [Sealed(seal, sha256(outside.store.get(seal.path)))], name)
    if not past:
        return None, None, None, rows.rows
    position = past[0].row["position"]
    near = [rows.row(at) if 1 <= at <= rows.rows else None for at in (position - 1, position + 1)]
    above, below = (_standing(row) if row else None for row in near)
    return _standing(past[0].row), above, below, rows.rows


def _accepted(outside: Outside, season: Season, player_id: bytes, standing: Standing | None) -> dict[str, Any] | None:
    """Return what the ledger has of a player, and who accepted that something else is sealed; None where it is not so.

    The totals of a ledger of the user's own may have moved on since, so nothing is told of these.
    """
    accepted = committed(outside, season, "standings").accepted_drift
    if accepted is None or season.board.ledger != "own":
        return None
    total = why.total(outside.database, season, player_id)
    if total is None and standing is None:
        return None
    if total is not None and standing is not None:
        floored = codec_for(season.board, season.bounds).floor(to_microseconds(total["reached_at"]))
        reached_at = standing.reached_at and to_microseconds(standing.reached_at)
        apart = abs(total["points"] - standing.points)
        # As they were compared: points within the tolerance are no difference, equal ones only with equal times.
        if (0 < apart <= season.board.reconcile.tolerance) or (apart == 0 and floored == reached_at):
            return None
    return {
        "ledger_points": total and total["points"],
        "ledger_reached_at": total and total["reached_at"],
        **{name: accepted[name] for name in ("by", "at", "because")},
    }


def _live(outside: Outside, season: Season, player_id: bytes) -> Found:
    """Return the same from the live board, from one version of it."""
    players = LiveBoard.of(outside.redis, season).count()
    try:
        rows = read.around(outside, season, player_id, 1)
    except UnknownNameError:
        return None, None, None, players
    at = next(index for index, row in enumerate(rows) if row.player_id == player_id)
    return rows[at], rows[at - 1] if at else None, rows[at + 1] if at + 1 < len(rows) else None, players


def _standing(row: dict[str, Any]) -> Standing:
    player = row["player_id"]
    return Standing(**{**row, "player_id": player.encode() if isinstance(player, str) else player})


def _absent(outside: Outside, season: Season, player_id: bytes) -> dict[str, Any]:
    """Return why a player is not on the board, as far as the ledger shows it."""
    if season.board.ledger != "own":
        return {"reason": "the board's key does not have this player, and no ledger tells more", "other_boards": []}
    counted = why.results(outside.database, season, player_id)
    total = why.total(outside.database, season, player_id)
    others = why.other_boards(outside.database, season, player_id)
    late = left_out.late(outside.database, season, player_id, 1).total
    if total is not None:
        reason = f"the ledger has {total['points']:,} points of {total['matches']:,} matches, which the board lacks"
    elif not counted["all_boards"]:
        reason = (
            f"the ledger has no result of this player from source {season.board.source}: never played, or another id"
        )
    elif counted["here"] and counted["voided"] == counted["here"]:
        reason = f"all {counted['here']:,} results of this player in the season were voided"
    elif counted["here"] and late:
        reason = f"all results of this player that were not voided came after the freeze ({late:,})"
    elif counted["filtered"]:
        left = f"{counted['filtered']:,} results of this player in the season"
        reason = f"{left} are of another segment, which the board's filter leaves out"
    else:
        reason = f"the player has {counted['all_boards']:,} results, none of them in this season"
    return {"reason": reason, "other_boards": others}


def _left_out(outside: Outside, season: Season, player_id: bytes, binary: bool) -> dict[str, Any]:
    if season.board.ledger != "own":
        return {}
    database, board = outside.database, season.board
    lists = {
        "late": left_out.late(database, season, player_id, _LISTED),
        "voided": left_out.voided(database, season, player_id, _LISTED),
        "refused": left_out.refused(database, board, season, player_id, _LISTED),
        "conflicting": left_out.conflicting(database, board, season, player_id, _LISTED),
    }
    return {
        kind: {"total": one.total, "results": [row.to_json(binary=binary) for row in one.rows]}
        for kind, one in lists.items()
        if one.total
    }


def _rewards(outside: Outside, season: Season, player_id: bytes, standing: Standing | None) -> dict[str, Any]:
    """Return the rules with their outcomes, grants and corrections with their delivery, and what moved the player."""
    nothing: dict[str, Any] = {
        **dict.fromkeys(("corrected", "excluded", "moved")),
        **{name: [] for name in ("not_eligible", "rules", "grants")},
    }
    try:
        so_far = sealed_so_far(outside, season)
    except WrongStateError:
        return nothing
    basis = recomputing.basis_of(outside.store, so_far.corrections[-1] if so_far.corrections else so_far.grants)
    told = nothing | {"grants": _grants(outside, season, player_id, so_far)}
    told["excluded"] = _excluded(basis, player_id)
    if basis.changed is not None:
        standing = _changed(outside, so_far, basis, player_id)
        told["corrected"] = standing.to_json(binary=season.board.member == "binary") if standing else {"position": None}
    if standing is not None:
        told["not_eligible"] = missing(basis.table, basis.facts, player_id, standing.points)
        told |= _rules(outside, so_far.standings, basis, standing)
    return told


def _changed(outside: Outside, so_far: SealedSeason, basis: Basis, player_id: bytes) -> Standing | None:
    """Return where the player stands once voided matches are taken back; None for one who is not there any more."""
    for batch in recomputing.standings_of(outside.store, so_far.standings, basis.changed):
        at = pa.compute.index(batch.column("player_id").cast(pa.binary()), player_id).as_py()
        if at >= 0:
            return _standing(batch.slice(at, 1).to_pylist()[0])
    return None


def _excluded(basis: Basis, player_id: bytes) -> dict[str, Any] | None:
    known = basis.facts.get("excluded")
    if known is None:
        return None
    at = pa.compute.index(known["player_id"].cast(pa.binary()), pa.scalar(player_id, pa.binary())).as_py()
    if at < 0:
        return None
    row = known.slice(at, 1).to_pylist()[0]
    return {"reason": row["reason"], "source": row["source"]}


def _rules(outside: Outside, seal: Seal, basis: Basis, standing: Standing) -> dict[str, Any]:
    table, position = basis.table, standing.position
    rows = Positions(outside.store, seal)
    planned: Plan | None = None
    moved = None
    if needed(table) or basis.facts.tables or table.eligible is not None or basis.changed is not None:
        planned = plan(recomputing.standings_of(outside.store, seal, basis.changed), table, basis.facts)
        ranges, ladders = list(planned.ranges), planned.ladders
        if planned.marks.gone is not None and (gone := int(planned.marks.gone[: position - 1].sum())):
            moved = {"left_out_above": gone, "place": ladders[0].through(position), "removed": table.removed}
    else:
        ladder = SparseLadder(rows.rows, lambda at: int(rows.row(at)["rank"]))
        ranges, ladders = sparse_ranges(table, ladder, lambda at: float(rows.row(at)["points"])), (ladder,)
    found = outcomes(table, ranges, position, ladders, planned)
    told = []
    for one in found:
        line = one.to_json()
        if one.short and one.line and basis.changed is None:
            line["points_short"] = abs(rows.row(one.line)["points"] - standing.points)
        told.append(line)
    return {"rules": told, "moved": moved}


def _grants(outside: Outside, season: Season, player_id: bytes, so_far: SealedSeason) -> list[dict[str, Any]]:
    """Return the player's grants, looked up by the ids they can have, and corrections, each with where it is."""
    sealed = recomputing.basis_of(outside.store, so_far.grants).table
    lines = [(rule.name, item) for rule in sealed.rule for item in rule.grant]
    ids = [grant_id(line_key(season.board.name, season.id, rule, item), player_id) for rule, item in lines]
    found = [{"correction": 0, **row} for row in why.grants(outside.database, season.key, ids)]
    found += corrections.of_player(outside.database, season.key, player_id)
    sent = outbox.of_player(outside.database, season.key, [row["grant_id"] for row in found])
    planned = {one.correction: one for one in outbox.planned(outside.database, season.key)}
    told = []
    for row in found:
        where, way = sent.get((row["correction"], str(row["grant_id"]))), planned.get(row["correction"])
        state = where["state"] if where else ("readable" if way and way.delivered_at else "not handed over")
        told.append(
            {
                "correction": row["correction"],
                "grant_id": str(row["grant_id"]),
                **{name: row[name] for name in ("rule", "item", "amount", "position", "rank")},
                "by": way.mode if way else None,
                "delivery": state,
                "delivered_at": where["settled_at"] if where else (way.delivered_at if way else None),
                "reason": where["reason"] if where else None,
            }
        )
    return told
