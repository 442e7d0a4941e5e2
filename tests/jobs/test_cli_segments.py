"""Segments as an operator has them: one table, boards of their own, one merged top over them, live and sealed."""

from __future__ import annotations

from tests.support.cli import World, finale

CONFIG = """
[board.arena]
segments = { eu = "EU", na = "NA" }
segment_by = "region"
ties = "shared"
grace = "0s"
keep_live = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
AT = "2026-01-02T00:00:00Z"
ROWS = [("m1", "ann", 5, "EU"), ("m1", "bob", 7, "NA"), ("m2", "cat", 5, "NA"), ("m3", "dan", 9, "ASIA")]


def test_segments_count_apart_and_are_shown_together(world: World) -> None:
    """Each result counts in its segment alone; the merged top is exact while live and after all are cleaned."""
    world.configure(CONFIG)
    path = world.folder / "r.csv"
    rows = [f"{match},{player},{points},{AT},{region}" for match, player, points, region in ROWS]
    path.write_text("\n".join(["match_id,player_id,points,played_at,region", *rows, ""]))
    taken = finale("results", "import", str(path), "--source", "arena", "--json").ok().json
    assert (taken["new"], taken["uncounted"], taken["applied"]) == (4, 1, 3)
    assert world.redis.zrange("leaderboard:arena-eu:one", 0, -1) == [b"ann"]
    merged = finale("standings", "arena", "one", "--top", "2", "--json").ok().json
    assert [(row["position"], row["rank"], row["player_id"]) for row in merged] == [(1, 1, "bob"), (2, 2, "cat")]
    whole = finale("top", "arena", "--season", "one", "--json").ok().json
    assert [(row["position"], row["rank"], row["player_id"]) for row in whole] == [
        (1, 1, "bob"),
        (2, 2, "cat"),
        (3, 2, "ann"),
    ]
    for name in ("arena-eu", "arena-na"):
        finale("close", name, "one").ok()
    assert world.redis.keys() == []
    assert finale("standings", "arena", "one", "--json").ok().json == whole
    finale("close", "arena", "one").refused(5, "segments", "arena-eu, arena-na")
