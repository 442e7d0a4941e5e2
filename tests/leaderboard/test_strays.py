"""Which keys look like a board's: templates as patterns, helper keys taken apart, known seasons subtracted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard import keys, strays
from leaderboard.errors import ConfigError
from leaderboard.names import NAME
from leaderboard.season import Bounds
from leaderboard.states import State
from tests.leaderboard.test_retention import DELIVERED

LAYOUTS = [f"%{letter}" for letter in "YymdHMSjGVuw"] + ["-", ".", "*", "|"]
TEMPLATES = st.lists(
    st.one_of(
        st.sampled_from(["<board>", "<season>", ":", "lb.", "a*b", "[x]", "(", "+", "\\d", "{t}"]),
        st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=5).map(lambda parts: f"<starts_at:{''.join(parts)}>"),
    ),
    min_size=1,
    max_size=5,
).map("".join)
INSTANTS = st.integers(-30_000_000_000, 253_000_000_000).map(lambda at: datetime.fromtimestamp(at, UTC))


def valid(template: str) -> bool:
    try:
        keys.check_template(template)
    except ConfigError:
        return False
    return True


@given(TEMPLATES.filter(valid), st.from_regex(NAME, fullmatch=True), INSTANTS)
def test_every_live_key_of_a_board_fits_its_shape(template, season, starts_at):
    """Whatever literal parts, fields and layouts a template has: no live key is ever missed, and its season is read."""
    key = keys.live_key(template, "goals", season, starts_at, starts_at + timedelta(days=1))
    shape = strays.shape_of("goals", template)
    assert shape.fits(key)
    if "<season>" in template:
        assert shape.season(key) is not None
    if template.count("<season>") == 1 and "<starts_at" not in template:
        assert shape.season(key) == season


@pytest.mark.parametrize(
    ("template", "key", "season"),
    [
        ("leaderboard:<board>:<season>", "leaderboard:goals:s2026", "s2026"),
        ("lb:<starts_at:%Y-%m-%d>", "lb:2026-10-01", None),
        ("a.b:<season>:<season>", "a.b:x1:x1", "x1"),
    ],
)
def test_what_fits(template, key, season):
    shape = strays.shape_of("goals", template)
    assert shape.fits(key)
    assert shape.season(key) == season


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("leaderboard:<board>:<season>", "leaderboard:laps:s2026"),
        ("leaderboard:<board>:<season>", "leaderboard:goals:s2026:old"),
        ("leaderboard:<board>:<season>", "leaderboard:goals:2026"),
        ("leaderboard:<board>:<season>", "leaderboard:goals:S2026"),
        ("leaderboard:<board>:<season>", "x:leaderboard:goals:s2026"),
        ("lb:<starts_at:%Y-%m-%d>", "lb:2026-1-1"),
        ("lb:<starts_at:%Y-%m-%d>", "lb:٢٠٢٦-10-01"),
        ("a.b:<season>:<season>", "a.b:x1:x2"),
        ("a.b:<season>", "aXb:s1"),
    ],
)
def test_what_does_not_fit(template, key):
    """Literal parts are literal, digits are ASCII digits, and nothing may stand before or after."""
    assert not strays.shape_of("goals", template).fits(key)


@given(st.text(st.sampled_from("{}ab:"), min_size=1, max_size=8), st.sampled_from(keys.KINDS))
def test_a_helper_key_names_the_key_it_stands_beside(key, kind):
    """Whatever hash tag a key has: its helper key is known as one, and the key is among those it may belong to."""
    try:
        name = keys.helper_key(key, kind)
    except ConfigError:
        return
    found = strays.helper(name)
    assert found is not None
    assert (found.name, found.kind) == (name, kind)
    assert key in found.beside


@pytest.mark.parametrize(
    "name", ["lb:x", "{lb:x}:finale:other", "lb:x:finale:fence", ":finale:fence", "{}:finale:fence"]
)
def test_what_is_no_helper_key(name):
    """Neither another kind, nor a name that Finale would not have written beside any key."""
    assert strays.helper(name) is None


SHAPES = [strays.shape_of("goals", "lb:<season>"), strays.shape_of("laps", "lb:<season>")]


def test_keys_of_known_seasons_are_no_strays():
    """Every other key that fits is told once, with each board it fits; what fits none is nobody's business here."""
    known = replace(DELIVERED, live_key="lb:s1")
    cancelled = replace(DELIVERED, live_key="lb:s2", state=State.CANCELLED)
    found = strays.stray_keys(["lb:s1", "lb:s2", "lb:s3", "lb:s3", "sessions"], SHAPES, [known, cancelled])
    assert [one.key for one in found] == ["lb:s2", "lb:s3"]
    assert found[1].fits == (("goals", "s3"), ("laps", "s3"))


def test_helper_keys_are_strays_once_no_season_needs_them():
    needed = replace(DELIVERED, live_key="lb:s1")
    cleaned = replace(DELIVERED, live_key="lb:s2", state=State.CLEANED)
    helpers = [strays.helper(keys.helper_key(key, "fence")) for key in ("lb:s3", "lb:s2", "lb:s1")]
    found = strays.stray_helpers([one for one in helpers if one], [needed, cleaned])
    assert [one.beside[0] for one in found] == ["lb:s2", "lb:s3"]


def test_a_key_used_again_belongs_to_the_later_season():
    """One key for ever, season after season: what is there is the open season's, else the last cleaned one's."""
    first = replace(DELIVERED, live_key="lb", state=State.CLEANED)
    bounds = Bounds(first.bounds.ends_at, first.bounds.ends_at + timedelta(days=1), "s2026m02")
    second = replace(first, key=2, bounds=bounds)
    assert strays.cleaned_keys([second, first]) == {"lb": second}
    assert strays.cleaned_keys([first, replace(second, state=State.DELIVERED)]) == {}


@given(st.text(st.sampled_from("{}ab:"), min_size=1, max_size=8))
def test_a_frozen_key_names_the_key_it_was_and_has_helper_keys_of_its_own(key):
    """What a season left under a private name is known as such, and so is the fence beside that."""
    try:
        name = keys.frozen_key(key, "s2026")
    except ConfigError:
        return
    found = strays.helper(name)
    assert found is not None
    assert (found.kind, key in found.beside) == ("frozen", True)
    fence = strays.helper(keys.helper_key(name, "fence"))
    assert fence is not None
    assert (fence.kind, name in fence.beside) == ("fence", True)


def test_seasons_of_one_key_that_are_frozen_by_renaming_are_kept_apart():
    """Each has a name of its own: one is cleaned, one waits for that, one is open, and a fourth is nobody's."""
    board = DELIVERED.board.model_copy(update={"freeze": "rename", "key": "lb"})
    waits = replace(DELIVERED, board=board, live_key="lb")
    names = {
        state: replace(waits, state=state, bounds=Bounds(waits.bounds.starts_at, waits.bounds.ends_at, name))
        for state, name in ((State.CLEANED, "s1"), (State.DELIVERED, "s2"), (State.OPEN, "s3"))
    }
    cleaned, delivered, opened = names.values()
    assert strays.cleaned_keys(names.values()) == {keys.frozen_key("lb", "s1"): cleaned}
    frozen = [keys.frozen_key("lb", f"s{number}") for number in (1, 2, 3, 4)]
    fences = [keys.helper_key(key, "fence") for key in frozen]
    helpers = [one for one in map(strays.helper, [*frozen, *fences]) if one]
    assert len(helpers) == 8
    left = [one.name for one in strays.stray_helpers(helpers, names.values())]
    assert left == sorted([frozen[3], fences[0], fences[3]])
    assert (delivered.standing_key, opened.standing_key, opened.own_key) == (frozen[1], "lb", frozen[2])
    assert [season.late_keys for season in names.values()] == [(), (), ()]


@pytest.mark.parametrize(
    ("template", "key", "season"),
    [
        ("lb:<season>", "lb:s2026:11", "s2026"),
        ("lb:{<season>}", "lb:{s2026:0}", "s2026"),
        ("lb:<shard>:<season>", "lb:7:s2026", "s2026"),
    ],
)
def test_the_shards_of_a_board_look_like_it(template, key, season):
    shape = strays.shape_of("goals", template, sharded=True)
    assert shape.season(key) == season
    assert not shape.fits(key.replace("s2026", "s2026:"))
