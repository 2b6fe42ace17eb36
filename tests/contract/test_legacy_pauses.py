"""Legacy pauses (contract 2): CUSTOM `on_interrupt` and a plain RUN_FINISHED."""

from typing import Any

import pytest
from tests.expected import admitted, ignored, opened, passed, refused, settled, violated
from tests.playbook import Playbook, agent, client, pause_of, sdk

from holdshort.contract.rules import AgentRules

LEGACY = {"default": AgentRules(legacy_interrupts=True)}


def declared() -> Playbook:
    play = Playbook(agents=LEGACY)
    play(client.asks("r1"), sdk.starts("r1"))
    return play


def undeclared() -> Playbook:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), sdk.pauses_legacy("sure?"))
    return play


# -- declared -----------------------------------------------------------------------------------------------


def test_each_becomes_an_interrupt_of_the_standard_outcome() -> None:
    play = declared()
    play(sdk.pauses_legacy({"q": "sure?"}), sdk.pauses_legacy(1.0))
    play >> sdk.finishes("r1") << opened("legacy-0", "legacy-1", shown=["RUN_FINISHED"])

    outcome = play.events()[0]["outcome"]
    assert outcome["type"] == "interrupt"
    assert [(one["id"], one["reason"], one["metadata"]["value"]) for one in outcome["interrupts"]] == [
        ("legacy-0", "legacy", {"q": "sure?"}),
        ("legacy-1", "legacy", 1.0),
    ]


def test_the_value_stays_as_it_was_written() -> None:
    play = declared()
    raw = '{"type":"CUSTOM","name":"on_interrupt","value":1.0e2}'
    play(sdk.pauses_legacy(0).but(value=raw), sdk.finishes("r1"))
    assert b"1.0e2" in bytes(pause_of(play).interrupts[0].descriptor)


def test_a_missing_value_is_null() -> None:
    play = declared()
    play(sdk.event("CUSTOM", name="on_interrupt"), sdk.finishes("r1"))
    assert b'"value":null' in bytes(pause_of(play).interrupts[0].descriptor)


def test_its_answer_is_a_resume_like_any_other() -> None:
    play = declared()
    play(sdk.pauses_legacy("sure?"), sdk.finishes("r1"))
    play >> client.asks("r2") << refused("PENDING_INTERRUPTS")
    play >> client.resumes("r3", {"legacy-0": "yes"}) << admitted()
    play >> sdk.finishes("r3") << settled(1)


@pytest.mark.parametrize("outcome", [{"type": "success"}, {"type": "novel"}])
def test_success_is_as_plain_as_none(outcome: Any) -> None:
    play = declared()
    play(sdk.pauses_legacy("sure?"))
    play >> sdk.finishes("r1", outcome) << opened("legacy-0")


def test_a_cancelled_run_or_one_that_fails_pauses_for_nothing() -> None:
    play = declared()
    play(sdk.pauses_legacy("sure?"))
    play >> sdk.finishes("r1", {"type": "cancelled"}) << passed(generation=None)
    play(client.asks("r2"), sdk.pauses_legacy("sure?", run="r2"))
    play >> sdk.fails("r2") << passed(generation=None)


def test_a_standard_outcome_wins() -> None:
    play = declared()
    play(sdk.pauses_legacy("sure?"))
    play >> sdk.interrupts("r1", "a") << opened("a")


def test_as_much_as_is_kept_is_asked() -> None:
    play = declared()
    play(sdk.pauses_legacy("x" * (128 * 1024 - 2)))
    play >> sdk.finishes("r1") << opened("legacy-0")


def test_what_is_too_large_to_keep_must_not_fail_open() -> None:
    play = declared()
    play(sdk.pauses_legacy("x" * (256 * 1024 - 2)))
    play >> sdk.finishes("r1") << violated("TOO_LARGE", shown=["RUN_ERROR"], generation=None)


def test_as_many_as_a_pause_may_have_are_asked() -> None:
    play = declared()
    play(*[sdk.pauses_legacy(n) for n in range(64)])
    play >> sdk.finishes("r1") << opened(*[f"legacy-{n}" for n in range(64)])


def test_too_many_must_not_fail_open() -> None:
    play = declared()
    play(*[sdk.pauses_legacy(n) for n in range(65)])
    play >> sdk.finishes("r1") << violated("TOO_LARGE")


def test_one_over_the_event_limit_must_not_fail_open() -> None:
    play = declared()
    play >> sdk.pauses_legacy("x" * 1024 * 1024) << violated("TOO_LARGE", dead=["TOO_LARGE"])
    play(sdk.pauses_legacy("small"))
    play >> sdk.finishes("r1") << violated("TOO_LARGE")


def test_a_finish_over_the_limit_must_not_fail_open() -> None:
    play = declared()
    play(sdk.pauses_legacy("sure?"))
    (
        play
        >> sdk.finishes("r1").adding(result="x" * 1024 * 1024)
        << violated("TOO_LARGE", shown=["RUN_ERROR"], generation=None)
    )


def test_the_deepest_value_that_can_be_read_can_be_asked() -> None:
    play = declared()
    deep = '{"type":"CUSTOM","name":"on_interrupt","value":' + "[" * 240 + "]" * 240 + "}"
    play(sdk.pauses_legacy(0).but(value=deep))
    play >> sdk.finishes("r1") << opened("legacy-0")


# -- not declared -------------------------------------------------------------------------------------------


def test_not_declared_it_opens_nothing_and_the_run_is_marked() -> None:
    play = undeclared()
    play >> sdk.finishes("r1") << passed(generation=None, shown=["RUN_FINISHED"])
    assert play.state().ended[0].not_gated


def test_its_answer_passes_by_either_channel() -> None:
    for answer in (
        client.resumes("r2", a="yes"),
        client.asks("r2", forwardedProps={"command": {"resume": "yes"}}),
        client.resumes("r2", a="yes").adding(forwardedProps={"command": {"interruptEvent": "sure?"}}),
    ):
        play = undeclared()
        play(sdk.finishes("r1"))
        play >> answer << admitted()


def test_only_while_that_run_is_the_newest() -> None:
    play = undeclared()
    play(sdk.finishes("r1"), client.asks("r2"), sdk.finishes("r2"))
    play >> client.resumes("r3", a="yes") << refused("UNKNOWN_INTERRUPT_ID")
    play >> client.asks("r3", forwardedProps={"command": {"resume": 1}}) << refused("CONFLICTING_CHANNELS")


def test_only_while_no_pause_is_there() -> None:
    play = undeclared()
    play >> sdk.interrupts("r1", "a") << opened("a")
    play >> client.asks("r2", forwardedProps={"command": {"resume": 1}}) << refused("PENDING_INTERRUPTS")
    (
        play
        >> client.resumes("r3", a=1).adding(forwardedProps={"command": {"resume": 1}})
        << refused("CONFLICTING_CHANNELS")
    )


def test_a_run_that_failed_or_was_cancelled_is_not_marked() -> None:
    for end in (sdk.fails("r1"), sdk.finishes("r1", {"type": "cancelled"})):
        play = undeclared()
        play(end)
        play >> client.resumes("r2", a="yes") << refused("UNKNOWN_INTERRUPT_ID")


def test_the_same_said_by_the_interrupted_run_is_ignored() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> agent.pauses_legacy("sure?") << ignored(emitted=[])
