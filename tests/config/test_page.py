"""docs/configuration.md: every key of the configuration, with its default, and when a season fixes it."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from config import segments
from config.settings import Runner, Servers
from leaderboard.bands import Bands
from leaderboard.board import FIXED_AT_OPEN, Board
from leaderboard.calendar_rule import Calendar, ExplicitSeason
from leaderboard.delivery import Delivery
from leaderboard.keys import check_template
from leaderboard.shards import Shards
from leaderboard.ties import Ties
from leaderboard.truth import Checks, OutsideLedger
from tests.support.cli import REPOSITORY

PAGE = (REPOSITORY / "docs/configuration.md").read_text("utf-8")
#: Each section with the model that it tells of, and the least that makes one.
SECTIONS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "`[servers]`": (Servers, {}),
    "`[runner]`": (Runner, {}),
    "`[board.NAME]`": (Board, {"name": "b", "calendar": {"every": "week"}}),
    "Ties": (Ties, {}),
    "Shards": (Shards, {}),
    "Bands": (Bands, {"width": 10}),
    "Ledger": (OutsideLedger, {"sql": "select 1"}),
    "Reconcile": (Checks, {}),
    "Calendar": (Calendar, {"every": "week"}),
    "Deliver": (Delivery, {}),
}
KEY = re.compile(r"^\| `(\w+)` \|(.*)\|$", re.MULTILINE)


def rows(section: str) -> dict[str, list[str]]:
    """Return the rows of a section's first table of keys: the other cells of each."""
    (text,) = re.findall(rf"^##+ {re.escape(section)}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found = [(key, [cell.strip() for cell in rest.split(" | ")]) for key, rest in KEY.findall(text)]
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_has_its_row(section: str) -> None:
    """No key of a model is forgotten, and none is told of that there is not."""
    model, _ = SECTIONS[section]
    assert list(rows(section)) == [name for name in model.model_fields if name != "name"]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_default_and_word_is_the_models(section: str) -> None:
    """What the page has as defaults makes what leaving them out makes; every word that a key may be is named."""
    model, least = SECTIONS[section]
    found = rows(section)
    said = {
        key: tomllib.loads(f"x = {default.strip('`')}")["x"]
        for key, (_, default, *_rest) in found.items()
        if default.startswith("`") and key not in least
    }
    assert model.model_validate({**least, **said}) == model.model_validate(least)
    for key, (values, default, *_rest) in found.items():
        field = model.model_fields[key]
        assert (default == "—") == (field.default is None), key
        words = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        assert [word for word in words if f'"{word}"' not in values and f"`{word}`" not in values] == [], key


def test_segments_and_listed_seasons_are_told_of() -> None:
    """The keys that no model has, and those of a season in a list, which has no section."""
    assert tuple(rows("Segments")) == segments.KEYS
    told = rows("Calendar")["seasons"][0]
    assert [name for name in ExplicitSeason.model_fields if f"`{name}`" not in told] == []


def test_what_a_season_fixes_when_it_opens() -> None:
    """The last column has ``open`` for exactly what the ledger keeps of a season that has opened."""
    fixed = {key: cells[-1] for key, cells in rows("`[board.NAME]`").items()}
    assert {key for key, when in fixed.items() if when.startswith("`open`")} == set(FIXED_AT_OPEN)
    assert {re.match(r"`(\w+)`", when)[1] for when in fixed.values()} == {"created", "open", "close", "never"}  # type: ignore[index]  # else it fails


def test_the_letters_of_a_template_are_those_that_are_taken() -> None:
    """Each letter of strftime on the page formats a bound; what is not on it is refused."""
    (letters,) = re.findall(r"`((?:\w ){5,}\w)` of strftime", PAGE)
    for letter in letters.split():
        check_template(f"lb:<season>:<starts_at:%{letter}>")
    with pytest.raises(Exception, match="unknown field"):
        check_template("lb:<season>:<starts_at:%B>")


def test_every_link_leads_somewhere() -> None:
    """Each page and heading that is linked exists."""
    for page, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", PAGE)):
        text = (REPOSITORY / "docs" / page).read_text("utf-8") if page else PAGE
        slugs = {
            re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", text, re.M)
        }
        assert not heading or heading in slugs, (page, heading)
