"""The goals of 2021 and 2024 with a reward table, the grants worked out by hand from the numbers of players by goals.

2021: 16 goals 1 player, 14: 2, 11: 2, 10: 1, 9: 4, 8: 5, 7: 8, 6: 9, 5: 33, 4: 59, 3: 83, 2: 240, 1: 622; 1,069 in all.
2024: 13 goals 1 player, 11: 2, 10: 1, 9: 3, 8: 4, 7: 4, 6: 12, 5: 16, 4: 26, 3: 68, 2: 182, 1: 629; 948 in all.
"""

from __future__ import annotations

import pytest

from tests.jobs.test_season_goals import file_of
from tests.support.cli import World, finale

CONFIG = """
[board.goals]
ties     = "shared"
calendar = { every = "year" }
rewards  = "goals.toml"
"""
TABLE = """
version = 1
[[rule]]
name  = "champion"
rank  = "1"
grant = { "title.champion" = 1, gems = 5000 }
[[rule]]
name  = "podium"
rank  = "2-3"
grant = { gems = 1000 }
[[rule]]
name  = "top ten"
rank  = "4-10"
grant = { gems = 500 }
[[rule]]
name       = "top five percent"
percentile = "5"
grant      = { gems = 100 }
[[rule]]
name  = "took part"
all   = true
grant = { gems = 10 }
"""


def closed(world: World, year: int, table: str) -> dict[str, int]:
    """Close a year with ``table`` and return how many players each rule paid."""
    world.configure(CONFIG, goals=table)
    finale("results", "import", str(file_of(year)), "--source", "goals").ok()
    finale("close", "goals", f"s{year}").ok()
    return dict(
        world.sql(
            "select rule, count(distinct player_id) from finale.grants join finale.season using (season_id)"
            " where season = %s group by rule",
            f"s{year}",
        )
    )


def paid(world: World, item: str = "gems") -> int:
    return int(world.sql("select coalesce(sum(amount), 0) from finale.grants where item = %s", item)[0][0])


def players(world: World, where: str) -> set[str]:
    found = world.sql(f"select convert_from(player_id, 'UTF8') from finale.grants where {where}")
    return {row[0] for row in found}


@pytest.mark.parametrize(
    ("year", "head", "expected", "gems"),
    [
        # 5% of 1,069 is 53.45. Positions 33 to 65 have 5 goals each, so position 53 is within that tie.
        (2021, 'at_line = "in"', (1, 2, 7, 55, 1004), 5_000 + 2 * 1_000 + 7 * 500 + 55 * 100 + 1_004 * 10),
        (2021, 'at_line = "out"', (1, 2, 7, 22, 1037), 5_000 + 2 * 1_000 + 7 * 500 + 22 * 100 + 1_037 * 10),
        (2021, 'ties = "position"', (1, 2, 7, 43, 1016), 5_000 + 2 * 1_000 + 7 * 500 + 43 * 100 + 1_016 * 10),
        # Positions 8 to 11 have 8 goals and rank 8; 5% of 948 is 47.4, and positions 44 to 69 have 4 goals.
        (2024, 'at_line = "in"', (1, 2, 8, 58, 879), 5_000 + 2 * 1_000 + 8 * 500 + 58 * 100 + 879 * 10),
        (2024, 'at_line = "out"', (1, 2, 8, 32, 905), 5_000 + 2 * 1_000 + 8 * 500 + 32 * 100 + 905 * 10),
    ],
)
def test_c74_a_year_is_paid_as_worked_out_by_hand(
    world: World, year: int, head: str, expected: tuple[int, ...], gems: int
) -> None:
    """C74, I5: players of each rule, and what they cost, with the tie at the line in, out, or not looked at."""
    rules = ("champion", "podium", "top ten", "top five percent", "took part")
    assert closed(world, year, f"{head}\n{TABLE}") == dict(zip(rules, expected, strict=True))
    assert paid(world) == gems
    assert paid(world, "title.champion") == 1
    first, second = {
        2021: ({"Harry Kane"}, {"Cyle Larin", "Memphis Depay"}),
        2024: ({"Aymen Hussein"}, {"Akram Afif", "Yazan Al-Naimat"}),
    }[year]
    assert players(world, "rule = 'champion'") == first
    assert players(world, "rule = 'podium'") == second


def test_a_tie_is_split_as_worked_out_by_hand(world: World) -> None:
    """Places 33 to 65 are one tie: 21 places of 100 and 12 of 10 are 2,220 gems, 67 for each of 33 and 9 over."""
    closed(world, 2021, f'ties = "split"\n{TABLE}')
    tie = world.sql("select position, amount, rule from finale.grants where rank = 33 order by position")
    assert [position for position, _, _ in tie] == list(range(33, 66))
    assert [amount for _, amount, _ in tie] == [68] * 9 + [67] * 24
    assert {rule for _, _, rule in tie} == {"top five percent"}
    assert paid(world) == 5_000 + 2 * 1_000 + 7 * 500 + 43 * 100 + 1_016 * 10


@pytest.mark.parametrize(
    ("removed", "champions", "podium"),
    [
        # The two with 11 goals were fourth and are third now.
        ("close_up", {"Cyle Larin", "Memphis Depay"}, {"Cristiano Ronaldo", "Robert Lewandowski"}),
        ("leave_gap", set(), {"Cyle Larin", "Memphis Depay"}),
    ],
)
def test_an_excluded_champion_closes_up_or_leaves_a_gap(
    world: World, removed: str, champions: set[str], podium: set[str]
) -> None:
    """Without Harry Kane two share rank 1 and the next two 3; or rank 1 stays empty. The facts are sealed."""
    (world.folder / "cheaters.csv").write_text("player_id,reason\nHarry Kane,boosted\nNobody,typo\n")
    closed(world, 2021, f'removed = "{removed}"\nexclude = [{{ file = "cheaters.csv" }}]\n{TABLE}')
    assert players(world, "rule = 'champion'") == champions
    assert players(world, "rule = 'podium'") == podium
    assert players(world, "player_id = 'Harry Kane'") == set()
    (file,) = finale("archive", "show", "goals", "s2021", "--kind", "grants", "--json").ok().json["facts"]
    assert (file["kind"], file["rows"], file["told"]) == ("excluded", 2, "file cheaters.csv")
    (path,) = world.files("facts")
    assert path == f"facts/board=goals/season=s2021/excluded-{file['sha256'][:16]}.parquet"
    finale("archive", "verify", "goals", "s2021").ok()


def test_who_kept_the_top_ten_of_the_season_before(world: World) -> None:
    """Seven of the ten best of 2021 scored in 2024; 2022 and 2023, which nobody played here, are no seasons before."""
    rule = '[[rule]]\nname = "kept"\nall = true\nprevious = "1-10"\ngrant = { gems = 77 }\n'
    closed(world, 2021, TABLE)
    closed(world, 2024, TABLE.replace("version = 1\n", f'version = 1\nmatch = "all"\n{rule}'))
    assert players(world, "rule = 'kept'") == {
        *("Harry Kane", "Cyle Larin", "Memphis Depay", "Cristiano Ronaldo"),
        *("Robert Lewandowski", "Lionel Messi", "Wu Lei"),
    }
    grants = finale("archive", "show", "goals", "s2024", "--kind", "grants", "--json").ok().json
    assert [(file["kind"], file["rows"]) for file in grants["facts"]] == [("previous", 10)]
    assert "standings of s2021, seal " in grants["facts"][0]["told"]
