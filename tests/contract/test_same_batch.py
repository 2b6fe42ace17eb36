"""Contract 3.1: which batches are the same."""

import hashlib
from typing import Any

import pytest
from tests.expected import refused, replayed
from tests.playbook import Playbook, agent, cancelled, client, resolved, sdk

from holdshort.contract.resume import ABSENT, Entry, digests


def entry(id_: str, payload: Any = ABSENT, *, resolved: bool = True, **metadata: Any) -> Entry:
    return Entry(id_, resolved, payload, metadata)


def strict(*batch: Entry) -> str | None:
    return digests(batch).strict


def test_it_is_sha256_over_the_canonical_json_of_id_status_and_payload() -> None:
    form = '[{"interruptId":"a","payload":1,"status":"resolved"},{"interruptId":"b","status":"cancelled"}]'
    batch = [entry("b", resolved=False), entry("a", 1.0)]
    assert digests(batch).strict == hashlib.sha256(form.encode()).hexdigest()


def test_the_order_of_entries_and_of_members_does_not_count() -> None:
    one = [entry("a", {"x": 1, "y": [1, 2]}), entry("b", "z")]
    other = [entry("b", "z"), entry("a", {"y": [1, 2], "x": 1})]
    assert digests(one) == digests(other)


def test_ids_are_sorted_by_utf_16_code_units() -> None:
    high, astral = entry("\uff5e", 1), entry("\U0001f600", 2)
    assert strict(high, astral) == strict(astral, high)
    form = (
        '[{"interruptId":"\U0001f600","payload":2,"status":"resolved"},'
        '{"interruptId":"\uff5e","payload":1,"status":"resolved"}]'
    )
    assert strict(high, astral) == hashlib.sha256(form.encode()).hexdigest()


@pytest.mark.parametrize("same", [(1, 1.0), (100, 1e2), (0, -0.0), ("é", "\u00e9"), ([], [])])
def test_equal_values_are_the_same_however_they_are_written(same: tuple[Any, Any]) -> None:
    assert strict(entry("a", same[0])) == strict(entry("a", same[1]))


@pytest.mark.parametrize(
    "different",
    [(1, True), (0, False), ("1", 1), (None, ABSENT), ([1, 2], [2, 1]), ("é", "e\u0301"), ({}, [])],
)
def test_different_values_are_different(different: tuple[Any, Any]) -> None:
    assert strict(entry("a", different[0])) != strict(entry("a", different[1]))


def test_ids_and_status_count() -> None:
    assert len({strict(entry("a", 1)), strict(entry("b", 1)), strict(entry("a", resolved=False))}) == 3


def test_metadata_is_left_out() -> None:
    assert strict(entry("a", 1, mine=1)) == strict(entry("a", 1))


def test_a_cancelled_entrys_payload_is_left_out() -> None:
    assert strict(entry("a", 1, resolved=False)) == strict(entry("a", resolved=False))


def test_absent_is_distinct_from_null_but_not_in_past_answer() -> None:
    absent, null = digests([entry("a")]), digests([entry("a", None)])
    assert absent.strict != null.strict
    assert absent.loose == null.loose == null.strict


def test_a_cancelled_entry_is_not_a_resolved_null() -> None:
    assert digests([entry("a", resolved=False)]).loose != digests([entry("a", None)]).loose


def test_a_batch_without_a_canonical_form_is_never_the_same_as_another() -> None:
    assert digests([entry("a", 2**60)]) == (None, None)


def test_the_run_id_and_the_rest_of_the_input_do_not_count() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a", "b"), client.resumes("r2", a={"x": 1}, b=cancelled))
    again = client.resumes("r3", b=cancelled, a=resolved({"x": 1.0}, mine=2)).adding(messages=[1])
    play >> again << refused("THREAD_BUSY")
    play(sdk.finishes("r2"))
    play >> again << replayed()


def test_answers_to_two_pauses_that_are_the_same_input_must_echo_the_binding() -> None:
    """Byte for byte the same input, written before the first run ended, is a repetition of it."""
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    answer = client.resumes("r9", a=True)
    play(answer)
    play >> sdk.interrupts("r9", "a").but(after=5)
    play >> answer.but(after=-3) << replayed(open=["a"])
    play >> client.resumes("r9", a=True).echoing(2).but(after=9)
    assert play.unchecked[0]["verdict"] == "admitted"
