"""Checks a sealed season in a folder; written from docs/archive-format.md alone, as a stranger would."""

import json
from datetime import datetime, timedelta
from hashlib import sha256
from struct import pack
from uuid import UUID

import pyarrow.parquet as pq


def load(root, board, season, kind):
    data = (root / "seals" / board / season / f"{kind}.json").read_bytes()
    seal, place, rows = json.loads(data), root / kind / f"board={board}" / f"season={season}", []
    told = seal["format"], seal["kind"], seal["board"]["name"], seal["season"]["id"]
    assert told == ("1", kind, board, season), "another seal"
    assert sorted(file.name for file in place.iterdir()) == [part["name"] for part in seal["parts"]], "files in place"
    for part in seal["parts"]:
        file = (place / part["name"]).read_bytes()
        assert (len(file), sha256(file).hexdigest()) == (part["size"], part["sha256"]), f"bytes of {part['name']}"
        table = pq.ParquetFile(place / part["name"]).read()
        ids, column = table["player_id"].cast("binary"), table.schema.get_field_index("player_id")
        rows += table.set_column(column, "player_id", ids).to_pylist()
    assert len(rows) == seal["rows"] == sum(part["rows"] for part in seal["parts"]), "number of rows"
    return seal, rows, sha256(data).hexdigest()


def check(root, board, season):
    seal, rows, sealed = load(root, board, season, "standings")
    high, ties, rank, before = seal["board"]["order"] == "high", seal["board"]["ties"], 0, None
    order = [(row["score"] + 0.0, row["player_id"]) for row in rows]
    assert order == sorted(order, reverse=high), "board order"
    hashed = [pack("<I", len(i)) for _, i in order], [i for _, i in order], [pack("<d", score) for score, _ in order]
    assert sha256(b"".join(sha256(b"".join(one)).digest() for one in hashed)).hexdigest() == seal["digest"], "digest"
    assert [seal["first_score"], seal["last_score"]] == ([order[0][0], order[-1][0]] if rows else [None] * 2), "scores"
    assert seal["points_sum"] in (None, sum(row["points"] for row in rows)), "sum of points"
    for position, row in enumerate(rows, 1):
        rank = rank if ties["by"] != "member" and row["score"] == before else position
        before = points = row["score"]
        found, reached_at = (row["position"], row["rank"], row["points"], row["reached_at"]), None
        if ties["by"] == "first_to_reach":
            points, low = divmod(int(points), ties["multiplier"])
            elapsed = timedelta(**{ties["unit"] + "s": ties["multiplier"] - 1 - low if high else low})
            reached_at = datetime.fromisoformat(seal["season"]["starts_at"]) + elapsed
        assert found == (position, rank, points, reached_at), f"row {position}"
    if (root / "seals" / board / season / "grants.json").exists():
        seal, grants, _ = load(root, board, season, "grants")
        assert seal["standings_seal"] == sealed, "computed from other standings"
        for grant in grants:
            row = rows[grant["position"] - 1]
            assert (row["player_id"], row["rank"]) == (grant["player_id"], grant["rank"]), "a grant of another player"
            texts = [text.encode() for text in (board, season, grant["rule"], grant["item"])]
            key = sha256(b"".join(pack(">I", len(field)) + field for field in texts)).digest()
            hashed = sha256(key + row["player_id"]).digest()
            assert grant["grant_id"] == str(UUID(bytes=hashed[:16])), "grant_id"
            seal["sums"][grant["item"]] -= grant["amount"]
        assert not any(seal["sums"].values()), "sums"
