"""Contract 2.1: what a well-formed interrupt outcome is."""

from typing import Any

import pytest
from tests.expected import admitted, opened, passed, violated
from tests.playbook import Playbook, agent, client, pause_of, question, sdk

INVALID = violated("INVALID_OUTCOME", generation=None, open=[])


def after_start() -> Playbook:
    play = Playbook()
    play(agent.starts("r1"))
    return play


@pytest.mark.parametrize(
    "outcome",
    [
        [],
        ["interrupt"],
        "interrupt",
        1,
        True,
        {},
        {"type": None},
        {"type": 1},
        {"interrupts": [question("a")]},
    ],
)
def test_the_outcome_is_an_object_with_a_string_type(outcome: Any) -> None:
    play = after_start()
    play >> agent.finishes("r1", outcome) << INVALID


@pytest.mark.parametrize("type_", ["success", "cancelled", "novel", ""])
def test_interrupts_under_any_other_type_are_malformed(type_: str) -> None:
    play = after_start()
    play >> agent.finishes("r1", {"type": type_, "interrupts": [question("a")]}) << INVALID


@pytest.mark.parametrize("type_", ["success", "cancelled", "novel", ""])
def test_an_empty_list_of_interrupts_under_another_type_is_none(type_: str) -> None:
    play = after_start()
    play >> agent.finishes("r1", {"type": type_, "interrupts": []}) << passed(shown=["RUN_FINISHED"])


@pytest.mark.parametrize("interrupts", [None, [], {}, "a", 0])
def test_interrupts_is_a_list_that_is_not_empty(interrupts: Any) -> None:
    play = after_start()
    play >> agent.finishes("r1", {"type": "interrupt", "interrupts": interrupts}) << INVALID


def test_interrupts_must_be_there() -> None:
    play = after_start()
    play >> agent.finishes("r1", {"type": "interrupt"}) << INVALID


@pytest.mark.parametrize("broken", [None, "a", [], {}])
def test_an_interrupt_is_an_object(broken: Any) -> None:
    play = after_start()
    play >> agent.finishes("r1", {"type": "interrupt", "interrupts": [question("a"), broken]}) << INVALID


@pytest.mark.parametrize("member", ["id", "reason"])
@pytest.mark.parametrize("value", [None, "", "  ", " \t\n", 1, ["a"]])
def test_id_and_reason_are_strings_that_are_not_blank(member: str, value: Any) -> None:
    play = after_start()
    play >> agent.interrupts("r1", {**question("a"), member: value}) << INVALID


@pytest.mark.parametrize("member", ["id", "reason"])
def test_id_and_reason_must_be_there(member: str) -> None:
    descriptor = question("a")
    del descriptor[member]
    play = after_start()
    play >> agent.interrupts("r1", descriptor) << INVALID


def test_ids_are_unique_in_the_list() -> None:
    play = after_start()
    play >> agent.interrupts("r1", "a", "b", "a") << INVALID


@pytest.mark.parametrize("schema", [None, True, False, "string", [], 1])
def test_a_response_schema_is_an_object(schema: Any) -> None:
    play = after_start()
    play >> agent.interrupts("r1", question("a", responseSchema=schema)) << INVALID


@pytest.mark.parametrize("expiry", [None, 0, "", "soon", {}, "2026-11-30T12:00:00Z"])
def test_expires_at_may_be_anything(expiry: Any) -> None:
    play = after_start()
    play >> agent.interrupts("r1", question("a", expiresAt=expiry)) << opened("a")


def test_an_unreadable_expiry_means_never() -> None:
    play = after_start()
    play(agent.interrupts("r1", question("a", expiresAt="yesterday")))
    play >> client.resumes("r2", a=True) << admitted()


def test_unknown_members_are_kept_as_they_were_written() -> None:
    play = Playbook()
    written = '{"id":"a","reason":"x","n":1.0e2,"u":"\\u00e9"}'
    outcome = '{"type":"interrupt","interrupts":[ ' + written + "]}"
    raw = '{"type":"RUN_FINISHED","runId":"r1","outcome":' + outcome + "}"
    play >> agent.finishes("r1").but(value=raw) << opened("a")

    assert bytes(pause_of(play).interrupts[0].descriptor).decode() == written


def test_only_the_run_level_list_opens_interrupts() -> None:
    play = after_start()
    suspended = {"type": "suspended", "interruptIds": ["a"]}
    play >> agent.event("SUBAGENT_FINISHED", outcome=suspended) << passed(open=[], generation=None)
    play >> agent.interrupts("r1", question("b", subagentRunId="s")) << opened("b")


def test_a_schema_that_is_refused_does_not_hide_the_pause() -> None:
    play = after_start()
    remote = {"$ref": "https://example.org/schema.json"}
    play >> agent.interrupts("r1", question("a", responseSchema=remote), "b") << opened("a", "b")

    assert [one.cancel_only for one in pause_of(play).interrupts] == [True, False]


def test_the_same_id_may_come_back_in_another_pause() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"), client.resumes("r2", a=1))
    play >> sdk.interrupts("r2", "a") << opened("a", generation=2, settled=1)
    assert pause_of(play).interrupts[0].reused
