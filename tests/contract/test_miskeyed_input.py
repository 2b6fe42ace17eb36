"""Row *miskeyed* of contract 3: the key is not the thread id, or the partition is not the thread's."""

import pytest
from tests.expected import admitted, unreadable
from tests.playbook import Playbook, client, team

from holdshort.contract.keys import partition_of

MISKEYED = unreadable(
    "MISKEYED_RECORD", emitted=["dead-letters", "events", "events"], shown=["RUN_STARTED", "RUN_ERROR"]
)


def test_the_error_is_shown_under_the_records_key_with_the_callers_ids() -> None:
    play = Playbook()
    play >> client.asks("r1").but(key="u") << MISKEYED

    started, error = [emit for emit in play.got["emits"] if emit["topic"] == "events"]
    assert started["key"] == error["key"] == "u"
    assert started["value"]["threadId"] == "u"
    assert started["value"]["runId"].startswith("hs-")
    assert started["headers"]["holdshort-run"] == started["value"]["runId"]
    assert error["value"]["code"] == "MISKEYED_RECORD"
    told = error["value"]["metadata"]["holdshort"]
    assert (told["threadId"], told["runId"], told["retryable"]) == ("t", "r1", False)


def test_without_a_key_the_thread_is_the_one_it_names() -> None:
    play = Playbook()
    play >> client.asks("r1").but(key=None) << MISKEYED
    assert [event.get("threadId") for event in play.events()] == ["t", None]


def test_each_record_is_told_under_a_run_id_of_its_own() -> None:
    play = Playbook()
    play >> client.asks("r1").but(key="u") << MISKEYED
    first = play.got["under"]
    play >> client.asks("r1").but(key="u") << MISKEYED
    assert play.got["under"] != first


@pytest.mark.parametrize("key", [None, "", "T", "t ", "\udcff"])
def test_any_other_key_is_not_the_threads(key: str | None) -> None:
    play = Playbook()
    play >> client.asks("r1").but(key=key) << MISKEYED


def test_a_partition_that_is_not_the_threads_is_told_in_that_partition() -> None:
    play = Playbook(partitions=12)
    home = partition_of(b"t", 12)
    play >> client.asks("r1").but(partition=(home + 1) % 12) << MISKEYED
    play >> client.asks("r1").but(partition=home) << admitted()


def test_from_resumes_it_is_a_dead_letter_only() -> None:
    play = Playbook()
    play >> team.abandons(1).but(key="u") << unreadable("MISKEYED_RECORD", emitted=["dead-letters"])


def test_neither_thread_changes() -> None:
    play = Playbook()
    play >> client.asks("r1").but(key="u") << MISKEYED
    assert play.state().empty
    assert play.state("u").empty


def test_endless_ids_are_not_repeated() -> None:
    """Events that cannot be written would stop the partition."""
    for said in (
        client.asks("r" * 513).but(key="u"),
        client.asks("r1").but(key="u" * 513),
        client.asks("r1").adding(threadId="t" * 513).but(key="u"),
    ):
        play = Playbook()
        play >> said << unreadable("MISKEYED_RECORD", emitted=["dead-letters"])
