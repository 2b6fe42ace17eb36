"""Row *stale binding* of contract 3: written before the question could be seen, or bound to another."""

from typing import Any

import pytest
from tests.expected import admitted, opened, quietly_refused, refused, replayed
from tests.playbook import Playbook, agent, client, pause_of, question, resolved, sdk, team

from holdshort.contract.changes import evolve

STALE = refused("STALE_BINDING", open=["a"])
SCHEMA = {"type": "boolean"}


def open_a(**members: Any) -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", **members)) << opened("a")
    return play


def bound(play: Playbook, name: str = "holdshort:binding", **changes: Any) -> Any:
    """A resume that echoes the binding of the last outcome shown, with changes."""
    (interrupt,) = play.events()[-1]["outcome"]["interrupts"]
    binding = {**interrupt["metadata"][name], **changes}
    return client.resumes("r2", a=resolved(True, **{name: binding}))


# -- the inputs end -----------------------------------------------------------------------------------------


def test_a_record_below_the_inputs_end_cannot_have_seen_the_question() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a").but(inputs_end=10) << opened("a")
    play >> client.resumes("r2", a=True).but(offset=9) << STALE
    play >> client.resumes("r2", a=True).but(offset=10) << admitted()


def test_whatever_it_addresses() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a").but(inputs_end=10) << opened("a")
    early = client.resumes("r2", a=True).adding(parentRunId="r1").echoing(1)
    play >> early.but(offset=3) << STALE


def test_what_is_open_must_be_answered_anew_and_is_listed() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a").but(inputs_end=10) << opened("a")
    play >> client.resumes("r2", a=True).but(offset=9) << STALE
    assert [one["id"] for one in play.error()["open"]] == ["a"]
    assert play.error()["retryable"] is False


def test_a_question_put_differently_has_an_inputs_end_of_its_own() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a").but(inputs_end=3) << opened("a")
    play >> agent.interrupts("r1", question("a", message="all of it?")).but(inputs_end=9) << opened("a")
    play >> client.resumes("r2", a=True).but(offset=5) << STALE


def test_a_question_said_again_keeps_its_own() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a").but(inputs_end=3) << opened("a")
    play >> agent.interrupts("r1", "a").but(inputs_end=9)
    play >> client.resumes("r2", a=True).but(offset=5) << admitted()


def test_a_question_open_again_keeps_its_own() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a").but(inputs_end=0) << opened("a")
    play(client.resumes("r2", a=True), sdk.fails("r2").but(inputs_end=50))
    assert pause_of(play).inputs_end == 0
    play >> client.resumes("r3", a=True) << admitted()


def test_until_it_is_known_no_input_can_have_seen_the_question() -> None:
    play = Playbook()
    verdict = play.verdict(agent.interrupts("r1", "a"))
    play.transcript.keep(b"t", evolve(play.state(), verdict.changes))
    refusal = play.verdict(client.resumes("r2", a=True).but(offset=10**9))
    assert refusal.code == "STALE_BINDING"


def test_records_of_the_router_have_no_such_end() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a").but(inputs_end=10) << opened("a")
    play >> team.resumes("hs-1", a=True).but(offset=0) << admitted()


# -- echoed bindings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["holdshort:binding", "tanstack:interruptBinding"])
def test_the_binding_as_it_was_shown_is_right(name: str) -> None:
    play = open_a(responseSchema=SCHEMA)
    play >> bound(play, name) << admitted()


@pytest.mark.parametrize("name", ["holdshort:binding", "tanstack:interruptBinding"])
@pytest.mark.parametrize(
    "changes",
    [
        {"generation": 1},
        {"generation": "x"},
        {"generation": None},
        {"generation": True},
        {"interruptedRunId": "r0"},
        {"interruptedRunId": None},
        {"responseSchemaHash": "sha256:0"},
        {"responseSchemaHash": None},
    ],
)
def test_one_of_another_run_generation_or_schema_is_stale(name: str, changes: dict[str, Any]) -> None:
    play = open_a(responseSchema=SCHEMA)
    play >> bound(play, name, **changes) << STALE
    assert play.error()["problems"][0]["interruptId"] == "a"


def test_a_generation_written_as_a_float_is_the_same_number() -> None:
    play = open_a()
    near, same = (bound(play, generation=play.nth(1) + more) for more in (0.5, 0.0))
    play >> near << STALE
    play >> same << admitted()


def test_a_generation_written_as_a_float_addresses_a_gone_pause_too() -> None:
    play = open_a()
    again = bound(play, generation=float(play.nth(1)))
    play(client.resumes("r3", a=True), sdk.interrupts("r3", "a"))
    play >> again << replayed(open=["a"])


def test_true_is_no_generation() -> None:
    play = open_a()
    play >> bound(play, generation=True) << STALE


@pytest.mark.parametrize("name", ["holdshort:binding", "tanstack:interruptBinding"])
@pytest.mark.parametrize("binding", [None, "x", 1, [], True])
def test_a_binding_that_is_no_object_is_stale(name: str, binding: Any) -> None:
    play = open_a()
    play >> client.resumes("r2", a=resolved(True, **{name: binding})) << STALE


def test_members_it_does_not_echo_and_members_of_its_own_do_not_count() -> None:
    play = open_a()
    for binding in ({}, {"generation": play.nth(1)}, {"mine": 1, "v": 9}):
        play >> client.resumes("r2", a=resolved(True, **{"holdshort:binding": binding})) << admitted()
        play(sdk.fails("r2"))


def test_a_schema_hash_where_no_schema_is_is_of_another_question() -> None:
    play = open_a()
    play >> bound(play, responseSchemaHash="sha256:0") << STALE


def test_an_agents_own_tanstack_binding_is_right_as_it_was_shown() -> None:
    """It may name the schema by a hash of its own; a client that echoes it must be able to answer."""
    own = {"v": 1, "kind": "tool-approval", "responseSchemaHash": "sha256:its-own"}
    play = open_a(responseSchema=SCHEMA, metadata={"tanstack:interruptBinding": own})
    play >> bound(play, "tanstack:interruptBinding") << admitted()


def test_all_stale_entries_are_told() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a", "b"))
    (
        play
        >> client.resumes("r2", a=1, b=1).echoing(1, interruptedRunId="r0")
        << refused("STALE_BINDING", about=["a", "b"])
    )


def test_the_router_must_not_echo_a_stale_one_either() -> None:
    play = open_a()
    play >> team.resumes("hs-1", a=True).echoing(7) << quietly_refused("STALE_BINDING")


# -- ids that are used again --------------------------------------------------------------------------------


def reused(**changes: Any) -> Playbook:
    play = Playbook(**changes)
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))
    play >> sdk.interrupts("r2", "a") << opened("a", generation=2, settled=1)
    return play


def test_an_unaddressed_answer_to_a_reused_id_is_accepted_by_default() -> None:
    play = reused()
    play >> client.resumes("r3", a=True) << admitted()


def test_with_unaddressed_reuse_refused_it_must_be_addressed() -> None:
    play = reused(unaddressed_reuse="refuse")
    play >> client.resumes("r3", a=True) << STALE
    play >> client.resumes("r3", a=True).adding(parentRunId="r2") << admitted()
    play(sdk.fails("r3"))
    play >> client.resumes("r4", a=True).echoing(2) << admitted()


def test_an_id_that_is_not_reused_need_not_be() -> None:
    play = Playbook(unaddressed_reuse="refuse")
    play(agent.interrupts("r1", "a"))
    play >> client.resumes("r2", a=True) << admitted()


def test_the_router_has_addressed_it_by_its_header() -> None:
    play = reused(unaddressed_reuse="refuse")
    play >> team.resumes("hs-1", a=True, generation=2) << admitted()
