"""What a run says is AG-UI whatever the agent does, and says nothing that the agent did not mean."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from ag_ui.core import EventType, RunFinishedEvent, RunFinishedInterruptOutcome, TextMessageContentEvent
from ag_ui.core import Interrupt as AgUiInterrupt

from holdshort.contract import messages as contract
from holdshort.contract.rules import Limits
from holdshort.sdk import framing as module
from holdshort.sdk.framing import Framing, MendAgentError
from holdshort.sdk.transcript import Transcript

Json = Any
START = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
OUR_START = {**START, "protocolVersion": "1.0"}
TEXT = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "hello"}
DONE = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}}
PAUSED = {**DONE, "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "confirmation"}]}}
USER = {"id": "m1", "role": "user", "content": "please"}
SAID = {"id": "m2", "role": "assistant", "content": "hello"}


def framing(state: Json = None) -> Framing:
    return Framing("t", "r", Transcript([USER], state))


def said(frame: Framing, *events: Json) -> list[Json]:
    return parsed(value for event in events for value in frame.said(event))


def parsed(values: Iterable[bytes]) -> list[Json]:
    return [json.loads(value) for value in values]


# -- beginning and end --------------------------------------------------------------------------------------


def test_events_are_said_as_they_came() -> None:
    assert said(framing(), START, TEXT, DONE) == [START, TEXT, DONE]


def test_a_run_that_begins_with_something_else_gets_a_start() -> None:
    assert said(framing(), TEXT, DONE) == [OUR_START, TEXT, DONE]


def test_an_error_at_once_gets_a_start_too() -> None:
    error = {"type": "RUN_ERROR", "message": "no", "code": "MINE"}

    assert said(framing(), error) == [OUR_START, error]


def test_after_the_end_nothing_is_said() -> None:
    frame = framing()

    assert said(frame, START, DONE, TEXT, PAUSED) == [START, DONE]
    assert parsed(frame.broke_off()) == []


def test_a_run_that_breaks_off_has_failed_and_is_never_said_to_have_finished() -> None:
    frame = framing()
    said(frame, START, TEXT)

    [error] = parsed(frame.broke_off())

    assert (error["type"], error["code"]) == ("RUN_ERROR", "AGENT_FAILED")


def test_a_run_that_says_nothing_at_all_gets_a_start_and_has_failed() -> None:
    assert [event["type"] for event in parsed(framing().broke_off())] == ["RUN_STARTED", "RUN_ERROR"]


# -- snapshots before a pause -------------------------------------------------------------------------------


def test_before_a_pause_the_messages_are_told() -> None:
    assert said(framing(), START, TEXT, PAUSED)[2:] == [
        {"type": "MESSAGES_SNAPSHOT", "messages": [USER, SAID]},
        PAUSED,
    ]


def test_an_agent_that_has_told_them_itself_is_not_repeated() -> None:
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": [USER]}

    assert said(framing(), START, TEXT, snapshot, PAUSED) == [START, TEXT, snapshot, PAUSED]


def test_a_snapshot_that_something_followed_is_no_longer_all() -> None:
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": [USER]}

    assert [event["type"] for event in said(framing(), START, snapshot, TEXT, PAUSED)] == [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        "TEXT_MESSAGE_CHUNK",
        "MESSAGES_SNAPSHOT",
        "RUN_FINISHED",
    ]


def test_a_pause_before_which_nothing_was_said_needs_no_snapshot() -> None:
    assert said(framing(), START, PAUSED) == [START, PAUSED]


def test_a_success_needs_no_snapshot() -> None:
    assert said(framing(), START, TEXT, DONE) == [START, TEXT, DONE]


def test_before_a_pause_the_state_is_told_if_it_was_patched() -> None:
    delta = {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/n", "value": 1}]}

    assert said(framing(state={}), START, delta, PAUSED)[2:] == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
        PAUSED,
    ]


def test_a_state_that_is_not_known_is_not_told() -> None:
    delta = {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/n"}]}

    assert said(framing(state={}), START, delta, PAUSED) == [START, delta, PAUSED]


def test_a_legacy_pause_is_one() -> None:
    paused = {"type": "CUSTOM", "name": "on_interrupt", "value": "sure?"}
    plain = {key: value for key, value in DONE.items() if key != "outcome"}

    assert said(framing(), START, TEXT, paused, plain)[3:] == [
        {"type": "MESSAGES_SNAPSHOT", "messages": [USER, SAID]},
        plain,
    ]


def test_a_conversation_that_is_not_known_is_not_told() -> None:
    assert said(Framing("t", "r", None), START, TEXT, PAUSED) == [START, TEXT, PAUSED]


def test_messages_that_are_not_agui_do_not_end_the_run() -> None:
    odd = {"type": "MESSAGES_SNAPSHOT", "messages": ["not a message"]}

    assert said(framing(), START, odd, TEXT, PAUSED) == [START, odd, TEXT, PAUSED]


def test_a_snapshot_that_the_gate_would_not_take_is_left_out() -> None:
    large = {**TEXT, "delta": "x" * Limits().event}

    assert [event["type"] for event in said(framing(), START, large, PAUSED)] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_CHUNK",
        "RUN_FINISHED",
    ]


# -- what an event may be -----------------------------------------------------------------------------------


def test_an_event_may_be_a_model_a_dict_or_json() -> None:
    model = TextMessageContentEvent(message_id="m2", delta="hello")
    expected = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "hello"}
    with_enum = {**expected, "type": EventType.TEXT_MESSAGE_CONTENT}

    events = (START, model, expected, with_enum, json.dumps(expected), json.dumps(expected).encode())
    assert said(framing(), *events) == [START, *[expected] * 5]


def test_a_model_of_an_interrupt_is_a_pause() -> None:
    outcome = RunFinishedInterruptOutcome(interrupts=[AgUiInterrupt(id="i", reason="confirmation")])
    model = RunFinishedEvent(thread_id="t", run_id="r", outcome=outcome)

    assert said(framing(), START, TEXT, model)[-2:] == [
        {"type": "MESSAGES_SNAPSHOT", "messages": [USER, SAID]},
        PAUSED,
    ]


def test_json_is_said_byte_for_byte() -> None:
    value = b'{ "type": "CUSTOM", "name": "n", "value": 1e2 }'

    assert list(framing().said(value))[-1] is value


@pytest.mark.parametrize(
    "event",
    [b"{", "[]", {"no": "type"}, {"type": 5}, {"type": "CUSTOM", "value": {1, 2}}, 5, None, b'{"type": NaN}'],
)
def test_what_is_not_an_event_is_the_agents_to_mend(event: Json) -> None:
    with pytest.raises(MendAgentError):
        list(framing().said(event))


def test_an_event_of_another_thread_is_the_agents_to_mend() -> None:
    with pytest.raises(MendAgentError, match="another thread"):
        list(framing().said({**DONE, "threadId": "other"}))


@pytest.mark.parametrize("blank", [None, "", " "])
def test_a_blank_thread_names_none(blank: Json) -> None:
    event = {**DONE, "threadId": blank}

    assert said(framing(), START, event) == [START, event]


def test_the_words_are_those_of_the_contract() -> None:
    assert json.loads(module.HEARTBEAT)["name"] == contract.HEARTBEAT == "holdshort:heartbeat"
    assert Limits().event > module.LARGEST_SNAPSHOT
