"""Row *past answer* of contract 3: an answer to a pause that is no more, with that pause's batch."""

from typing import Any

import pytest
from tests.expected import admitted, opened, quietly_refused, refused, replayed
from tests.playbook import Playbook, agent, cancelled, client, later, resolved, sdk, without_payload

SHOWN = ["RUN_STARTED", "RUN_FINISHED"]


def answered() -> Playbook:
    """A pause about a and b, answered and settled."""
    play = Playbook()
    play(agent.interrupts("r1", "a", "b"), client.resumes("r2", a=True, b=cancelled), sdk.finishes("r2"))
    return play


def asked_again() -> Playbook:
    """The same, and the same ids are open again."""
    play = answered()
    play(client.asks("r3"))
    play >> sdk.interrupts("r3", "a", "b") << opened("a", "b", generation=2)
    return play


def outcome_of(play: Playbook) -> Any:
    return play.events()[1]["metadata"]["holdshort"]["outcome"]


# -- no pause is there: the ids are enough ------------------------------------------------------------------


def test_the_same_batch_again_is_replayed_and_not_forwarded() -> None:
    play = answered()
    play >> client.resumes("r9", b=cancelled, a=True) << replayed(emitted=["events", "events"], shown=SHOWN)
    assert outcome_of(play) == "settled"
    assert play.events()[1]["metadata"]["holdshort"]["generation"] == play.nth(1)


def test_it_changes_nothing() -> None:
    play = answered()
    before = play.state()
    play >> client.resumes("r9", a=True, b=cancelled) << replayed()
    assert play.state() == before


def test_only_cancels_are_how_a_client_that_missed_the_teams_answer_gets_free() -> None:
    play = answered()
    play >> client.resumes("r9", a=cancelled) << replayed(shown=SHOWN)
    assert outcome_of(play) == "answeredElsewhere"
    assert play.pending() == set()


def test_a_batch_of_cancels_that_was_the_answer_is_settled_rather_than_elsewhere() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=cancelled), sdk.finishes("r2"))
    play >> client.resumes("r9", a=cancelled) << replayed(shown=SHOWN)
    assert outcome_of(play) == "settled"


def test_an_absent_payload_is_null_here_for_python_models_drop_null() -> None:
    for first, again in ((resolved(None), without_payload), (without_payload, resolved(None))):
        play = Playbook()
        play(agent.interrupts("r1", "a"), client.resumes("r2", a=first), sdk.finishes("r2"))
        play >> client.resumes("r9", a=again) << replayed()


def test_the_rest_of_the_input_and_metadata_make_no_difference() -> None:
    play = answered()
    again = client.resumes("r9", a=resolved(True, mine=1), b=cancelled).adding(messages=[1], state={"x": 2})
    play >> again << replayed()


def test_a_run_that_answered_and_interrupted_again_shows_what_is_open() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.interrupts("r2", "b"))
    play >> client.resumes("r9", a=True).echoing(1) << replayed(shown=SHOWN, open=["b"])
    assert [one["id"] for one in play.events()[1]["outcome"]["interrupts"]] == ["b"]
    assert play.pending() == {"b"}


def test_once_it_is_forgotten_it_is_an_answer_to_nothing() -> None:
    play = answered()
    play(later(hours=25))
    play >> client.resumes("r9", a=True, b=cancelled) << refused("UNKNOWN_INTERRUPT_ID")


# -- a pause is there: only an address will do --------------------------------------------------------------


def test_an_old_answer_never_approves_a_new_question() -> None:
    play = asked_again()
    play >> client.resumes("r9", a=True, b=cancelled).echoing(1) << replayed(shown=SHOWN, open=["a", "b"])
    assert play.pending() == {"a", "b"}


def test_it_is_addressed_by_the_interrupted_run_too() -> None:
    play = asked_again()
    play >> client.resumes("r9", a=True, b=cancelled).adding(parentRunId="r1") << replayed(open=["a", "b"])


def test_it_is_addressed_by_a_tanstack_binding_too() -> None:
    play = asked_again()
    binding = {"tanstack:interruptBinding": {"generation": play.nth(1)}}
    play >> client.resumes("r9", a=resolved(True, **binding), b=cancelled) << replayed(open=["a", "b"])


def test_unaddressed_it_answers_what_is_open() -> None:
    play = asked_again()
    play >> client.resumes("r9", a=True, b=cancelled) << admitted()


def test_a_run_id_that_two_remembered_pauses_have_addresses_neither() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r1", a=True), sdk.starts("r1"))
    play >> sdk.interrupts("r1", "a") << opened("a", generation=2, settled=1)
    play >> client.resumes("r9", a=True).adding(parentRunId="r1") << admitted()


def test_ids_of_two_pauses_together_are_addressed_to_neither() -> None:
    play = answered()
    play(client.asks("r3"))
    play >> sdk.interrupts("r3", "c") << opened("c", generation=2)
    mixed = client.resumes("r9", a=True, c=True).echoing(1)
    play >> mixed << refused("UNKNOWN_INTERRUPT_ID", about=["a"])


def test_a_batch_that_echoes_two_generations_is_stale() -> None:
    play = asked_again()
    old, new = client.resumes("r9", a=True).echoing(1), client.resumes("r9", b=True).echoing(2)
    both = client.asks("r9", resume=[*old.value["resume"], *new.value["resume"]])
    play >> both << refused("STALE_BINDING", open=["a", "b"])


def test_two_bindings_of_one_entry_may_not_differ_either() -> None:
    play = asked_again()
    bindings = {
        "holdshort:binding": {"generation": play.nth(2)},
        "tanstack:interruptBinding": {"generation": play.nth(1)},
    }
    play >> client.resumes("r9", a=resolved(True, **bindings), b=True) << refused("STALE_BINDING")


# -- whatever happens now -----------------------------------------------------------------------------------


def test_while_a_run_is_in_flight_it_is_told_to_wait() -> None:
    play = answered()
    play(client.asks("r3"))
    (
        play
        >> client.resumes("r9", a=True, b=cancelled)
        << replayed("THREAD_BUSY", shown=["RUN_STARTED", "RUN_ERROR"])
    )
    assert play.error()["retryable"] is False


def test_under_the_id_of_the_run_in_flight_it_is_in_use() -> None:
    play = answered()
    play(client.asks("r3"))
    play >> client.resumes("r3", a=True, b=cancelled) << quietly_refused("RUN_ID_IN_USE")


@pytest.mark.parametrize("batch", [{"a": cancelled}, {"a": cancelled, "b": cancelled}])
def test_cancels_addressed_to_a_superseded_pause_show_what_is_asked_instead(batch: dict[str, Any]) -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a", "b"))
    play >> agent.interrupts("r1", "c") << opened("c", superseded=1)
    play >> client.resumes("r9", batch).echoing(1) << replayed(open=["c"])
    assert play.pending() == {"c"}
