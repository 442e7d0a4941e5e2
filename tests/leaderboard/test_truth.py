"""What a board is checked against: the user's own SQL, and the bound up to which drift is repaired."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from leaderboard.board import Board
from leaderboard.truth import Checks, OutsideLedger

SQL = "select player_id, points, reached_at from scores where season = %(season)s"


def board(**fields: Any) -> Board:
    return Board.model_validate({"name": "cup", "calendar": {"every": "year"}, **fields})


def test_a_ledger_of_the_users_own_survives_the_ledger_and_the_seal() -> None:
    """Its SQL stands in the board's definition, which reads back as the same board."""
    made = board(ledger={"url_env": "GAME_POSTGRES", "sql": f"  {SQL} ;\n"})
    assert isinstance(made.ledger, OutsideLedger) and made.ledger.sql == SQL
    assert made.ledger_kind == "outside"
    assert Board.model_validate(made.definition()) == made
    assert [board(ledger=kind).ledger_kind for kind in ("own", "none")] == ["own", "none"]


@pytest.mark.parametrize(
    ("ledger", "words"),
    [
        ("theirs", '"own", "none", or a table'),
        ({}, "sql is missing"),
        ({"sql": " ; "}, "must be one SELECT"),
        ({"sql": "select 1 where a like 'b%'"}, "lone %"),
        ({"sql": "select %(player)s"}, "%(starts_at)s, %(ends_at)s, %(season)s, %(board)s"),
        ({"sql": "select %(season)d"}, "%(season)d"),
        ({"sql": SQL, "url_env": "GAME POSTGRES"}, "name of an environment variable"),
        ({"sql": SQL, "url": "mysql://db/game"}, "postgresql://"),
        ({"sql": SQL, "url": "postgresql://db/game", "url_env": "GAME"}, "both url and url_env"),
        ({"sql": SQL, "urls": "x"}, "unknown key; did you mean url?"),
    ],
)
def test_what_is_no_ledger_is_refused_with_the_remedy(ledger: Any, words: str) -> None:
    """One fault, in words that say what is right."""
    with pytest.raises(ValidationError) as raised:
        board(ledger=ledger)
    assert words in str(raised.value)
    assert len(raised.value.errors()) == 1


@pytest.mark.parametrize("url", ["postgresql://ann:s3cret@db/game", "postgresql://db/game?password=s3cret"])
def test_a_password_in_the_url_is_refused_and_not_repeated(url: str) -> None:
    """Seals show the board's definition, so it may hold no secret; nor may the error."""
    with pytest.raises(ValidationError) as raised:
        board(ledger={"sql": SQL, "url": url})
    (fault,) = raised.value.errors(include_input=False)
    assert "no password" in fault["msg"] and "url_env" in fault["msg"]
    assert "s3cret" not in fault["msg"]


def test_whole_points_only_where_there_is_a_ledger() -> None:
    with pytest.raises(ValidationError, match='needs ledger = "none"'):
        board(points="fraction", ties="shared", ledger={"sql": SQL})


@pytest.mark.parametrize(
    ("repair", "players", "expected"),
    [(0, 100, 0), (100, 5, 100), ("1%", 199, 1), ("1%", 99, 0), ("0.1 %", 10_000, 10), ("100%", 7, 7)],
)
def test_the_bound_is_a_number_of_players_or_a_share(repair: int | str, players: int, expected: int) -> None:
    """A share is rounded down, so that a small board is not repaired by halves."""
    assert Checks.model_validate({"repair": repair}).repairs(players) == expected


@pytest.mark.parametrize("repair", [-1, "101%", "1", "many", True, 1.5, "-1%"])
def test_what_is_no_bound_is_refused(repair: Any) -> None:
    with pytest.raises(ValidationError, match='such as "1%"'):
        Checks.model_validate({"repair": repair})


def test_without_a_word_one_per_cent_is_repaired_and_nothing_is_tolerated() -> None:
    """C86: no tolerance unless the board declares one."""
    found = Checks()
    assert (found.repair, found.tolerance, found.compare, found.deep, found.live) == ("1%", 0, "rows", False, "report")
