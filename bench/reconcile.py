"""How fast a season is compared with its ledger, and in how much memory, against what else one could do.

    python -m bench.reconcile --players 10000000 --data /tmp/ten --rounds 0      # the data alone, kept
    python -m bench.reconcile --players 10000000 --data /tmp/ten --drift 0 --only floor,finale

One embedded PostgreSQL, the same data: totals in the ledger, standings as sealed parts in a folder. Without drift, and
with a share of the players changed. Contestants, each in a process of its own, in turn; seconds of processors are that
process's own, without the server's:

    floor     the bare totals query drained by COPY with psql, nothing decoded: what the server can send
    drained   the same in Python with psycopg, row by row
    finale    the parts read, verified and decoded, the totals as Arrow, one join, every difference
    reported  the same, and the report of it: its hash, and every differing player in Parquet, without causes
    buckets   counts and checksums of buckets of players first, rows of those that differ
    pandas    both sides into data frames, merged
    reladiff  the totals against a table of the standings in the same PostgreSQL, by key ranges
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.folders import data_folder
from bench.reconcilers import CONTESTANTS, Prepared, prepare
from config.settings import Settings
from jobs.wiring import outside

NAMES = tuple(CONTESTANTS)


def main() -> None:
    """Prepare the data, unless they are kept from before, run the rounds, and print medians with their spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--drift", default="0,0.001", help="shares of players that differ, with commas between")
    parser.add_argument("--only", default=",".join(NAMES), help="contestants, with commas between")
    parser.add_argument("--data", type=Path, help="a folder in which the data are kept for the next call")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {}
    with data_folder(given.data) as folder:
        home = folder / "home"
        with outside(Settings(home=home), {**os.environ, "FINALE_HOME": str(home)}) as wired:
            for share in map(float, given.drift.split(",")):
                made = prepare(wired.database, folder, given.players, share)
                rounds = [{one: _run(one, made) for one in given.only.split(",")} for _ in range(given.rounds)]
                if rounds:
                    found[str(share)] = rounds
    print(json.dumps({"players": given.players, "rounds": found}, indent=2) if given.json else _table(given, found))


def _run(name: str, made: Prepared) -> dict[str, float]:
    words = [sys.executable, "-m", "bench.reconcilers", name, json.dumps(made.to_json())]
    said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if said.returncode:
        raise SystemExit(f"{name} ended with {said.returncode}; leave it out with --only")
    told: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    if told["drift"] not in (made.drift, -1):
        raise SystemExit(f"{name} found {told['drift']} differences, planted were {made.drift}")
    return told


def _table(given: argparse.Namespace, found: dict[str, list[dict[str, dict[str, float]]]]) -> str:
    lines = []
    for share, rounds in found.items():
        lines += [f"{given.players:,} players, {float(share):.1%} differ, {len(rounds)} rounds; median (least to most)"]
        lines += [f"{'':10} {'seconds':>24} {'times the floor':>24} {'of processors':>14} {'memory, MB':>12}"]
        for name in rounds[0]:
            seconds = [one[name]["seconds"] for one in rounds]
            ratios = [one[name]["seconds"] / one["floor"]["seconds"] for one in rounds] if "floor" in rounds[0] else []
            worked = median(one[name]["processor"] for one in rounds)
            memory = max(one[name]["memory"] for one in rounds) / 2**20
            lines.append(f"{name:10} {_spread(seconds):>24} {_spread(ratios):>24} {worked:14.2f} {memory:12.0f}")
        lines.append("")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else ""


if __name__ == "__main__":
    main()
