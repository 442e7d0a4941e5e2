"""What an answer means for each grant, when it goes again, and in which batch: pure."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from rewards.delivery import LONGEST_ASKED, LONGEST_WAIT, Answer, Batch, batch_size, rest_after, settle, wait_before

SECOND = timedelta(seconds=1)
IDS = st.sets(st.sampled_from("abcdefgh"))


@given(sent=IDS, accepted=IDS, rejected=IDS, before=st.integers(0, 6), failure=st.sampled_from(["", "answered 500"]))
def test_i5_every_grant_is_in_exactly_one_place(
    sent: set[str], accepted: set[str], rejected: set[str], before: int, failure: str
) -> None:
    """I5: acknowledged, dead or again; accepted only what was accepted, and nothing that was not sent."""
    answer = Answer(frozenset(accepted), dict.fromkeys(rejected, "no"), failure)
    found = settle(dict.fromkeys(sent, before), answer, tries=5, backoff=SECOND, failures=0, chance=0.0)
    places = [set(found.acknowledged), set(found.dead), set(found.again)]
    assert set.union(*places) == sent and sum(map(len, places)) == len(sent)
    assert places[0] == sent & accepted - rejected
    assert sent & rejected - accepted <= places[1]
    assert not places[2] or before + 1 < 5


def test_what_is_refused_by_name_is_dead_at_once_and_the_rest_is_taken() -> None:
    """A receiver that knows no such item is not asked twelve times."""
    found = settle(
        {"a": 0, "b": 0, "c": 0},
        Answer(frozenset("a"), {"b": "no such item"}),
        tries=5,
        backoff=SECOND,
        failures=3,
        chance=0.0,
    )
    assert found.acknowledged == ("a",) and found.dead == {"b": "no such item"}
    assert list(found.again) == ["c"] and found.failures == 0 and found.pause is None


def test_both_accepted_and_refused_is_no_answer() -> None:
    """Who says both has said nothing: the grant goes again."""
    found = settle({"a": 0}, Answer(frozenset("a"), {"a": "no"}), tries=5, backoff=SECOND, failures=0, chance=0.0)
    assert list(found.again) == ["a"] and not found.dead


def test_after_the_last_try_it_is_a_dead_letter_with_the_reason() -> None:
    """The reason is the last one, short, and in printable characters."""
    found = settle({"a": 4}, Answer(failure="x\x1b" * 500), tries=5, backoff=SECOND, failures=0, chance=0.0)
    assert found.dead["a"].startswith("tried 5 times: x x")
    assert len(found.dead["a"]) == 200


def test_a_silent_target_is_left_alone_ever_longer() -> None:
    """Waits double from the first to ten minutes, between half of that and all of it; one success ends it."""
    waits = [wait_before(number, SECOND, 1.0).total_seconds() for number in range(1, 13)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    assert wait_before(3, SECOND, 0.0) == 2 * SECOND
    assert wait_before(10_000, SECOND, 1.0) == LONGEST_WAIT
    found = settle({"a": 0}, Answer(failure="answered 500"), tries=5, backoff=SECOND, failures=4, chance=1.0)
    assert found.failures == 5 and found.pause == 16 * SECOND


def test_retry_after_is_kept_within_reason() -> None:
    """A receiver may ask for longer than the back-off, up to an hour; its word does not make a wait shorter."""
    asked = [
        settle({"a": 0}, Answer(failure="answered 429", wait=wait), tries=5, backoff=SECOND, failures=0, chance=1.0)
        for wait in (timedelta(0), timedelta(minutes=5), timedelta(days=9))
    ]
    assert [one.pause for one in asked] == [SECOND, timedelta(minutes=5), LONGEST_ASKED]


def test_batches_shrink_so_that_one_bad_grant_keeps_only_itself_back() -> None:
    """The first repetition is the same batch; then quarters, down to one grant; never more than a second's worth."""
    assert [batch_size(500, 1_000, tries) for tries in range(8)] == [500, 500, 125, 31, 7, 1, 1, 1]
    assert batch_size(500, 10, 0) == 10
    assert batch_size(500, 0.1, 0) == 1
    assert rest_after(10, 10) == SECOND and rest_after(1, 0.5) == 2 * SECOND


def test_a_batch_is_named_by_what_is_in_it() -> None:
    """The same grants in any order have the same key; others have another."""
    rows = [{"grant_id": name} for name in "abc"]
    keys = [Batch("b", "s", 0, False, chosen).key for chosen in (rows, rows[::-1], rows[:2])]
    assert keys[0] == keys[1] != keys[2]
