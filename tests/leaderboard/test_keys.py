"""Key names, and that a cluster keeps a live key and its helpers in one slot."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from redis.crc import key_slot

from leaderboard import keys
from leaderboard.errors import ConfigError

START = datetime(2026, 10, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
BRACED = st.text(st.sampled_from("{}{}ab:é✓\0 "), max_size=12)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(BRACED | ANY_TEXT)
@example("{user1000}.following")
@example("foo{}{bar}")
@example("foo{{bar}}zap")
@example("foo{bar}{zap}")
def test_the_slot_is_the_one_that_the_cluster_client_computes(key):
    """The examples are those of the cluster specification; redis-py is the independent second opinion."""
    assert keys.slot(key) == key_slot(key.encode())


@given(BRACED | ANY_TEXT, st.sampled_from(["fence", "applied", "expiring"]))
def test_c14_a_helper_key_is_in_the_slot_of_its_live_key_or_is_refused(key, kind):
    """C14: CROSSSLOT cannot happen, whatever braces a key has."""
    try:
        helper = keys.helper_key(key, kind)
    except ConfigError as error:
        assert repr(key) in str(error)
        assert not key or "{" in key or "}" in key  # only braces can stand in the way
        return
    assert key_slot(helper.encode()) == key_slot(key.encode())
    assert helper != key


@given(BRACED)
def test_c14_helper_keys_of_different_kinds_or_live_keys_differ(key):
    """C14: no two live keys share a fence."""
    names = set()
    for each in (key, key + "2"):
        for kind in ("fence", "applied", "expiring"):
            try:
                names.add((each, kind, keys.helper_key(each, kind)))
            except ConfigError:
                return
    assert len({name for _, _, name in names}) == len(names)


@pytest.mark.parametrize(
    ("key", "helper"),
    [
        ("lb:s41", "{lb:s41}:finale:fence"),
        ("lb:{s41}", "lb:{s41}:finale:fence"),
        ("{eu}:lb:s41", "{eu}:lb:s41:finale:fence"),
    ],
)
def test_c14_a_helper_keeps_the_hash_tag_or_wraps_the_whole_key(key, helper):
    """C14: a template without a tag works in a cluster as well."""
    assert keys.helper_key(key, "fence") == helper


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("leaderboard:<board>:<season>", "leaderboard:goals:s2026q4"),
        ("lb:<starts_at:%Y-%m-%d>", "lb:2026-10-01"),
        ("{<board>}:<ends_at:%Y%m%d>", "{goals}:20270101"),
        ("weekly:<starts_at:%GW%V>", "weekly:2026W40"),
    ],
)
def test_a_template_is_filled_in(template, key):
    assert keys.check_template(template) == template
    assert keys.live_key(template, "goals", "s2026q4", START, END) == key


def test_bounds_in_a_key_are_utc():
    berlin = timezone(timedelta(hours=2))
    start = datetime(2026, 10, 1, 1, tzinfo=berlin)
    assert keys.live_key("<starts_at:%Y-%m-%dT%H>", "b", "s", start, END) == "2026-09-30T23"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("", "same key"),
        ("leaderboard", "same key"),
        ("lb:<board>", "same key"),
        ("lb:<sesaon>", "<sesaon>"),
        ("lb:<season:%Y>", "<season:%Y>"),
        ("lb:<starts_at>", "<starts_at>"),
        ("lb:<starts_at:%s>", "<starts_at:%s>"),
        ("lb:<starts_at:%B>", "<starts_at:%B>"),
        ("lb:<starts_at:%>", "<starts_at:%>"),
        ("lb:<starts_at:%Y:%n>", "%n"),
        ("lb:<season>:<", "stray"),
        ("lb:<<season>>", "stray"),
        ("lb:\n<season>", "unprintable"),
        ("lb}:<season>", "same cluster slot"),
        ("{}lb:<season>", "same cluster slot"),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_the_reason(template, reason):
    with pytest.raises(ConfigError, match=re.escape(reason)):
        keys.check_template(template)


def test_the_current_key_is_one_fixed_name_a_board():
    assert keys.check_current_key("current:<board>", "lb:<season>") == "current:<board>"


@pytest.mark.parametrize("name", ["", "current:<season>", "lb:<season>", "a\nb"])
def test_a_current_key_that_changes_with_the_season_is_refused(name):
    with pytest.raises(ConfigError, match="current_key"):
        keys.check_current_key(name, "lb:<season>")


def test_a_helper_kind_is_one_of_three():
    with pytest.raises(ValueError, match="lock"):
        keys.helper_key("lb", "lock")


class TestShards:
    @pytest.mark.parametrize(
        ("live_key", "second"),
        [
            ("lb:goals:s2026", "lb:goals:s2026:1"),
            ("lb:{goals}:s2026", "lb:{goals:1}:s2026"),
            ("lb:<shard>:goals", "lb:1:goals"),
            ("lb:{goals:<shard>}:s2026", "lb:{goals:1}:s2026"),
            ("lb:{goals}:s2026:<shard>", "lb:{goals}:s2026:1"),
        ],
    )
    def test_a_shard_is_named_by_its_number(self, live_key, second):
        assert keys.shard_keys(live_key, 3)[1] == second
        assert keys.shard_key(live_key, 1) == second

    def test_one_sorted_set_keeps_its_name(self):
        assert keys.shard_keys("lb:{goals}", 1) == ("lb:{goals}",)

    @given(BRACED)
    def test_shards_have_names_and_slots_of_their_own_and_helpers_beside_each(self, key):
        """C14: whatever can be a live key can be one of several, spread over a cluster, each beside its fence."""
        try:
            keys.helper_key(key, "fence")
        except ConfigError:
            return
        names = keys.shard_keys(key, 12)
        assert len(set(names)) == 12
        assert len({keys.slot(name) for name in names}) == 12
        assert all(keys.slot(keys.helper_key(name, "fence")) == keys.slot(name) for name in names)

    def test_they_lie_on_every_node_of_a_cluster_of_three(self):
        for key in ("leaderboard:goals:s2026", "lb:{goals}:s2026"):
            assert {keys.slot(name) * 3 // keys.SLOTS for name in keys.shard_keys(key, 4)} == {0, 1, 2}

    def test_a_template_may_say_where_the_number_stands(self):
        assert keys.check_template("lb:<board>:<season>:<shard>")
        assert keys.live_key("lb:<season>:<shard>", "goals", "s2026", START, END) == "lb:s2026:<shard>"
        with pytest.raises(ConfigError, match="<shard:2>"):
            keys.check_template("lb:<season>:<shard:2>")
