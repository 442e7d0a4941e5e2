"""finale ledger prune: results of cleaned seasons go into sealed files, are read back, and only then removed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow.parquet as pq
import pytest

from archive import results as archived
from archive.store import open_store
from jobs.results import exporting, pruning
from leaderboard.errors import ArchiveMismatchError, WrongStateError
from ledger import seasons
from tests.support.cli import World, differing, finale

AT = "2026-01-02T00:00:00Z"
CONFIG = """
[board.cup]
source = "s"
ties = "shared"
grace = "0s"
keep_live = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
[board.league]
source = "s"
ties = "shared"
grace = "0s"
keep_live = "0s"
calendar = { seasons = [{ id = "half", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-06-01T00:00:00Z }] }
"""
PRUNE = ("ledger", "prune", "--as", "op")
PLACE = "results/board=cup/season=one"


@pytest.fixture
def played(world: World) -> World:
    world.configure(CONFIG)
    world.played("cup", f"m1,ann,5,{AT}", f"m1,bob,3,{AT}", "m2,ann,2,2026-03-01T00:00:00Z", f"m3,eve,9,{AT}")
    finale("results", "void", "m3", "--board", "cup", "--because", "cheats", "--as", "op").ok()
    return world


@pytest.fixture
def cleaned(played: World) -> World:
    """Both seasons cleaned, one result late."""
    finale("close", "cup", "one").ok()
    finale("close", "league", "half").ok()
    played.played("cup", f"m9,zoe,1,{AT}")
    return played


def _verdicts(*arguments: str) -> dict[str, tuple[str, str]]:
    found = finale("ledger", "prune", "--dry-run", "--json", *arguments).ok().json
    return {f"{one['board']}/{one['season']}": (one["verdict"], one["reason"]) for one in found}


def test_nothing_goes_before_every_season_that_counts_it_is_cleaned(played: World) -> None:
    """A shared result is kept as long as one of its seasons is not cleaned; the verdict names that season."""
    assert _verdicts()["cup/one"] == ("keep", "the season is open")
    finale("close", "cup", "one").ok()
    verdict, reason = _verdicts("--board", "cup")["cup/one"]
    assert verdict == "keep" and reason == "league/half, which is open, may count results of it too"
    before = played.picture()
    finale(*PRUNE).ok()
    assert differing(before, played.picture()) == []


def test_i6_a_season_that_may_yet_count_a_result_of_it_keeps_it(world: World) -> None:
    """I6: the league of one region has no result of the cup's time yet; one that comes would be lost."""
    world.configure(CONFIG.replace("[board.league]\n", '[board.league]\nwhere = { region = "eu" }\n'))
    world.played("cup", f"m1,ann,5,{AT}")
    finale("close", "cup", "one").ok()
    assert _verdicts("--board", "cup")["cup/one"][0] == "keep"
    path = world.folder / "eu.csv"
    path.write_text(f"match_id,player_id,points,region,played_at\nm2,bob,3,eu,{AT}\n")
    finale(*PRUNE).ok()
    finale("results", "import", str(path), "--board", "league").ok()
    finale(*PRUNE).ok()
    finale("reconcile", "league", "half", "--deep").ok()
    finale("close", "league", "half").ok()
    finale(*PRUNE).ok()
    assert world.sql("select count(*) from finale.match_result") == [(0,)]


def test_results_move_into_sealed_files(cleaned: World) -> None:
    """Every row with what became of it, under a seal; totals, standings and everything else stay; twice is once."""
    totals = cleaned.sql("select * from finale.player_total order by 1, 2")
    assert set(_verdicts().values()) == {("prune", "the season and all that share its results are cleaned")}
    finale(*PRUNE, "--json").ok()
    assert cleaned.sql("select count(*) from finale.match_result") == [(0,)]
    assert cleaned.sql("select count(*) from finale.late_result") == [(0,)]
    rows = pq.read_table(cleaned.store / PLACE / "part-00000.parquet", partitioning=None).to_pylist()
    assert [(row["match_id"], row["player_id"], row["points"], row["state"]) for row in rows] == [
        ("m1", "ann", 5, "counted"),
        ("m1", "bob", 3, "counted"),
        ("m3", "eve", 9, "voided"),
        ("m9", "zoe", 1, "late"),
    ]
    seal = json.loads((cleaned.store / "seals/cup/one/results.json").read_text())
    assert (seal["kind"], seal["rows"], seal["source"]) == ("results", 4, "s")
    assert len(json.loads((cleaned.store / "seals/league/half/results.json").read_text())["parts"]) == 1
    assert cleaned.sql("select * from finale.player_total order by 1, 2") == totals
    event, who, detail = cleaned.journal("cup", "one")[-1]
    assert (event, who, detail["rows"]) == ("pruned", "op", 4)
    before = cleaned.picture()
    again = finale(*PRUNE, "--json").ok().json
    assert {one["verdict"] for one in again} == {"done"}
    assert differing(before, cleaned.picture()) == []
    finale("archive", "verify", "--all").ok()


def test_a_lost_or_other_file_of_pruned_results_is_noticed(cleaned: World) -> None:
    """After a prune the sealed results are the only copy: verify, --all and list know the seal and each part."""
    finale(*PRUNE).ok()
    part, seal = cleaned.store / PLACE / "part-00000.parquet", cleaned.store / "seals/cup/one/results.json"
    verified = finale("archive", "verify", "cup", "one", "--json").ok().json
    assert [(one["kind"], one["rows"], one["faults"]) for one in verified][-1] == ("results", 4, [])
    listed = [one for one in finale("archive", "list", "--json").ok().json if one["kind"] == "results"]
    assert [(one["season"], one["rows"], one["number"]) for one in listed] == [("one", 4, None), ("half", 1, None)]
    whole, sealed = part.read_bytes(), seal.read_bytes()
    part.chmod(0o600)
    seal.chmod(0o600)
    part.write_bytes(whole[:-1])
    for asked in (("cup", "one"), ("--all",)):
        found = finale("archive", "verify", *asked, "--json")
        found.refused(30, f"{PLACE}/part-00000.parquet is not the part that was sealed")
        [fault] = [fault for one in found.json for fault in one["faults"]]
        assert fault["file"] == f"{PLACE}/part-00000.parquet"
        assert fault["expected"] == json.loads(sealed)["parts"][0]["sha256"] != fault["found"]
    part.unlink()
    told = finale("archive", "verify", "cup", "one").refused(30, f"{PLACE}/part-00000.parquet is missing").err
    assert told.count("part-00000") == 1 and told.count("backup") == 1
    assert f"{PLACE} has not part-00000.parquet" in finale("archive", "list").ok().err
    part.write_bytes(whole)
    seal.write_bytes(sealed[:-20])
    for asked in (("verify", "cup", "one"), ("verify", "--all"), ("list",)):
        finale("archive", *asked).refused(30, "seals/cup/one/results.json: this is no seal of results")
    seal.unlink()
    finale("archive", "verify", "--all").refused(30, "seals/cup/one/results.json does not exist")


def test_nothing_is_pruned_into_a_store_without_the_earlier_seals(cleaned: World) -> None:
    """The folder is gone: exit 11, none is made, and every result stays in the ledger."""
    before = cleaned.sql("select count(*) from finale.match_result")
    away = cleaned.store.with_name("away")
    cleaned.store.rename(away)
    finale(*PRUNE).refused(11, "is not the store of the earlier seals")
    assert not cleaned.store.exists()
    assert cleaned.sql("select count(*) from finale.match_result") == before
    away.rename(cleaned.store)
    finale(*PRUNE).ok()


def test_i6_what_was_pruned_is_never_counted_again(cleaned: World) -> None:
    """I6: an old result sent again, and a new one of that time, are refused with the reason; no total moves."""
    finale(*PRUNE).ok()
    before = cleaned.picture("set_aside")
    path = cleaned.results(f"m1,ann,5,{AT}", f"m77,ann,5,{AT}")
    answer = finale("results", "import", str(path), "--board", "cup", "--json")
    answer.refused(4, "pruned")
    assert (answer.json["new"], answer.json["refused"]) == (0, 2)
    assert differing(before, cleaned.picture("set_aside")) == []
    finale("results", "void", "m1", "--board", "cup", "--because", "x", "--as", "op").refused(5, "m1")


def test_what_another_board_pruned_is_not_taken_for_never_played(cleaned: World) -> None:
    """I6: the results that two boards count went with the first: nothing is told from what is left."""
    finale("results", "void", "m2", "--board", "league", "--because", "x", "--as", "op").ok()
    asked = {
        "export": ("results", "export", "league", "half", "--to", str(cleaned.folder / "out.csv")),
        "deep": ("reconcile", "league", "half", "--deep"),
        "correct": ("rewards", "correct", "league", "half", "--voided", "--because", "x", "--as", "op", "--dry-run"),
    }
    finale(*asked["export"]).ok()
    (cleaned.folder / "out.csv").unlink()
    finale(*PRUNE, "--board", "cup").ok()
    for command in asked.values():
        told = finale(*command)
        told.refused(23, "results of league/half were pruned from the ledger with those of cup/one at")
        told.refused(23, "results/board=cup/season=one/")
    assert not (cleaned.folder / "out.csv").exists()
    own = ("results", "export", "cup", "one", "--to", str(cleaned.folder / "cup.csv"))
    finale(*own).refused(23, "the results of cup/one were pruned from the ledger at")


def test_what_another_region_pruned_is_none_of_ones_own(world: World) -> None:
    """Two boards of one source whose filters contradict each other share no result, so the other is whole."""
    regions = CONFIG.replace("[board.cup]\n", '[board.cup]\nwhere = { region = "eu" }\n')
    world.configure(regions.replace("[board.league]\n", '[board.league]\nwhere = { region = "na" }\n'))
    path = world.folder / "r.csv"
    path.write_text(f"match_id,player_id,points,region,played_at\nm1,ann,5,eu,{AT}\nm2,bob,3,na,{AT}\n")
    finale("results", "import", str(path), "--board", "cup").ok()
    finale("close", "cup", "one").ok()
    finale(*PRUNE, "--board", "cup").ok()
    assert world.sql("select match_id from finale.match_result") == [("m2",)]
    finale("reconcile", "league", "half", "--deep").ok()
    told = finale("results", "export", "league", "half", "--to", str(world.folder / "out.csv"), "--json").ok().json
    assert told["rows"] == 1


def test_a_prune_while_results_are_exported_leaves_no_file(cleaned: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results go after the export has looked whether they are there, and before it reads them: no file is left."""
    real = exporting.match_rows.read

    def pruned_first(*arguments: Any) -> Any:
        monkeypatch.setattr(exporting.match_rows, "read", real)
        finale(*PRUNE, "--board", "cup").ok()
        return real(*arguments)

    target = cleaned.folder / "out.parquet"
    with cleaned.outside() as outside:
        season = seasons.find(outside.database, "cup", "one")
        monkeypatch.setattr(exporting.match_rows, "read", pruned_first)
        with pytest.raises(WrongStateError, match="were pruned"):
            exporting.export_results(outside, season, target, force=False)
    assert not list(cleaned.folder.glob("*out*"))


def test_what_was_voided_after_the_freeze_stays_for_corrections(cleaned: World) -> None:
    """The file has it, and so has the ledger: corrections have yet to undo it."""
    finale("results", "void", "m1", "--board", "cup", "--player", "bob", "--because", "late find", "--as", "op").ok()
    finale(*PRUNE).ok()
    assert cleaned.sql("select match_id, player_id from finale.match_result") == [("m1", b"bob")]
    [row] = finale("results", "voided", "cup", "one", "--player", "bob", "--json").ok().json
    assert "after the freeze" in row["reason"]


def test_a_part_that_is_not_as_sealed_keeps_the_rows(cleaned: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is removed before every part was read back: exit 30 names the part, and the rows stay."""
    real = archived.put_parts

    def spoiling(*arguments: Any) -> None:
        real(*arguments)
        for path in (cleaned.store / PLACE).glob("*.parquet"):
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:-9] + b"spoiltPAR")

    monkeypatch.setattr(archived, "put_parts", spoiling)
    finale(*PRUNE, "--board", "cup").refused(30, "part-00000.parquet")
    assert cleaned.sql("select count(*) from finale.match_result where played_at < '2026-02-01'") == [(4,)]


class _Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


def _dies(real: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    def dying(*arguments: Any, **named: Any) -> Any:
        if not before:
            real(*arguments, **named)
        raise _Killed

    return dying


EFFECTS = [
    (pruning.match_rows, "claim"),
    (pruning.match_rows, "close"),
    (pruning.archived, "put_seal"),
    (pruning.archived, "put_parts"),
    (pruning.match_rows, "remove"),
    (pruning.journal, "put_result"),
]


@pytest.mark.parametrize(
    ("module", "name", "before"),
    [
        pytest.param(*effect, before, marks=() if at % 2 == before else pytest.mark.slow)
        for at, effect in enumerate(EFFECTS)
        for before in (True, False)
    ],
)
def test_i8_broken_off_anywhere_and_run_again_it_ends_the_same(
    cleaned: World, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, before: bool
) -> None:
    """I8: before or after any of its effects, and the other board's turn first: no row is in two files or lost."""
    with monkeypatch.context() as patch, cleaned.outside() as outside, pytest.raises(_Killed):
        patch.setattr(module, name, _dies(getattr(module, name), before=before))
        pruning.prune(outside, "cup", who="op")
    finale(*PRUNE, "--board", "league").ok()
    finale(*PRUNE).ok()
    assert cleaned.sql("select count(*) from finale.match_result") == [(0,)]
    assert _archived(cleaned) == ["m1 ann", "m1 bob", "m2 ann", "m3 eve", "m9 zoe"]
    assert set(_verdicts().values()) == {("done", "its results are in the archive")}


def _archived(world: World) -> list[str]:
    """Return match and player of every row in the results of both boards."""
    store = open_store(world.store.as_uri(), {})
    seals = [archived.find(store, *season) for season in (("cup", "one"), ("league", "half"))]
    return sorted(
        f"{row['match_id']} {row['player_id']}"
        for seal in seals
        if seal is not None
        for batch in archived.read_back(store, seal)
        for row in batch.to_pylist()
    )


@pytest.mark.parametrize("name", ["close", "put_seal", "put_parts", "remove", "put_result"])
def test_i6_of_two_prunes_at_once_one_has_the_shared_results(
    cleaned: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """I6, I9: while one board's season is pruned, the other's waits and says for which; no row is archived twice."""
    module: Any = {"close": pruning.match_rows, "remove": pruning.match_rows, "put_result": pruning.journal}.get(
        name, pruning.archived
    )
    real, beside = getattr(module, name), []

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        if not beside:
            beside.append(None)
            with cleaned.outside() as other:
                beside.extend(pruning.prune(other, "league", who="other"))
        return real(*arguments, **named)

    with monkeypatch.context() as patch, cleaned.outside() as outside:
        patch.setattr(module, name, meanwhile)
        pruning.prune(outside, "cup", who="op")
    assert beside[1].action == "keep" and beside[1].reason.startswith("cup/one may count results of it too")
    finale(*PRUNE).ok()
    assert _archived(cleaned) == ["m1 ann", "m1 bob", "m2 ann", "m3 eve", "m9 zoe"]


def test_i6_i8_what_comes_while_a_season_is_pruned_is_refused(cleaned: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6, I8: a result comes between the prune's two looks, for a board that is cleaned and not pruned yet."""
    real, answers = archived.put_seal, []
    late = cleaned.results(f"m77,ann,5,{AT}")

    def meanwhile(*arguments: Any) -> Any:
        answers.append(finale("results", "import", str(late), "--board", "league", "--json"))
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(archived, "put_seal", meanwhile)
        finale(*PRUNE, "--board", "cup").ok()
    answers[0].refused(4, "pruned")
    assert _verdicts("--board", "cup")["cup/one"][0] == "done"
    finale(*PRUNE).ok()
    assert cleaned.sql("select count(*) from finale.match_result") == [(0,)]
    assert _archived(cleaned) == ["m1 ann", "m1 bob", "m2 ann", "m3 eve", "m9 zoe"]


def test_i6_two_that_claim_in_the_same_instant(cleaned: World) -> None:
    """I6: two threads begin at once, each with connections of its own: every row is archived once."""
    start = threading.Barrier(2)

    def run(board: str) -> str:
        with cleaned.outside() as outside:
            start.wait(30)
            [verdict] = pruning.prune(outside, board, who=board)
            assert verdict.error is None
            return verdict.action

    with ThreadPoolExecutor(2) as pool:
        assert "done" in list(pool.map(run, ("cup", "league")))
    finale(*PRUNE).ok()
    assert _archived(cleaned) == ["m1 ann", "m1 bob", "m2 ann", "m3 eve", "m9 zoe"]


def test_a_seal_of_results_that_is_none_is_refused() -> None:
    for data in (b"", b"{}", b'{"format": "9", "kind": "results"}', b"[]"):
        with pytest.raises(ArchiveMismatchError, match="no seal of results"):
            archived.ResultsSeal.parse(data)


def test_a_board_that_is_not_configured_is_kept(cleaned: World) -> None:
    """As clean does: what another configuration counts of these results, nobody can know. Dry runs tell the rows."""
    rows = {f"{one['board']}/{one['season']}": one["rows"] for one in finale(*PRUNE, "--dry-run", "--json").ok().json}
    assert rows == {"cup/one": 4, "league/half": 5}
    cleaned.configure(CONFIG[: CONFIG.index("[board.league]")])
    assert _verdicts()["league/half"] == ("keep", "its board is not in this configuration")
    finale(*PRUNE).ok()
    assert cleaned.sql("select match_id from finale.match_result") == [("m2",)]
