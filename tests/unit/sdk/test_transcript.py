"""What a transcript comes to is what AG-UI's reference client shows of the same events."""

from typing import Any

import pytest

from holdshort.sdk.transcript import Transcript

Json = Any
USER = {"id": "m1", "role": "user", "content": "please"}


def folded(*events: Json, messages: Json = (USER,), state: Json = None) -> Transcript:
    transcript = Transcript(list(messages), state)
    for event in events:
        transcript.fold(event)
    return transcript


def text_start(id_: str, **more: Json) -> Json:
    return {"type": "TEXT_MESSAGE_START", "messageId": id_, **more}


def text(id_: str, delta: str) -> Json:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": delta}


def call_start(id_: str, name: str = "pay", **more: Json) -> Json:
    return {"type": "TOOL_CALL_START", "toolCallId": id_, "toolCallName": name, **more}


def call_args(id_: str, delta: str) -> Json:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": id_, "delta": delta}


def result(id_: str, call_id: str, content: str = "ok") -> Json:
    return {"type": "TOOL_CALL_RESULT", "messageId": id_, "toolCallId": call_id, "content": content}


def a_call(id_: str, arguments: str = "", name: str = "pay") -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def said(*messages: Json) -> list[Json]:
    return [USER, *messages]


# -- text ---------------------------------------------------------------------------------------------------


def test_a_message_is_streamed_by_its_id() -> None:
    transcript = folded(text_start("a"), text_start("b"), text("a", "one "), text("b", "x"), text("a", "two"))

    assert transcript.messages == said(
        {"id": "a", "role": "assistant", "content": "one two"},
        {"id": "b", "role": "assistant", "content": "x"},
    )


def test_a_message_has_the_role_and_the_name_that_its_start_says() -> None:
    transcript = folded(text_start("a", role="developer", name="kim", subagentRunId="s1"))

    assert transcript.messages == said(
        {"id": "a", "role": "developer", "content": "", "name": "kim", "subagentRunId": "s1"}
    )


def test_chunks_begin_a_message_and_go_on_with_it() -> None:
    transcript = folded(
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "a", "delta": "one "},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "two"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "b", "role": "system", "delta": "x"},
    )

    assert transcript.messages == said(
        {"id": "a", "role": "assistant", "content": "one two"}, {"id": "b", "role": "system", "content": "x"}
    )


def test_text_of_a_message_that_nothing_has_begun_is_passed_over() -> None:
    assert folded(text("x", "lost")).messages == said()


def test_a_start_of_a_message_that_is_there_goes_on_with_it() -> None:
    transcript = folded(call_start("c1", parentMessageId="a"), text_start("a"), text("a", "I pay"))

    assert transcript.messages == said(
        {"id": "a", "role": "assistant", "toolCalls": [a_call("c1")], "content": "I pay"}
    )


def test_the_messages_of_the_input_are_not_changed() -> None:
    given = {"id": "a", "role": "assistant", "content": "before", "toolCalls": [a_call("c1", "{")]}
    folded(text("a", " after"), call_args("c1", "}"), messages=[given])

    assert given == {"id": "a", "role": "assistant", "content": "before", "toolCalls": [a_call("c1", "{")]}


# -- tool calls ---------------------------------------------------------------------------------------------


def test_calls_gather_in_the_message_that_they_name() -> None:
    transcript = folded(
        text_start("a"),
        call_start("c1", parentMessageId="a"),
        call_args("c1", '{"n":'),
        call_start("c2", "move", parentMessageId="a"),
        call_args("c1", "1}"),
        call_args("c2", "{}"),
    )

    assert transcript.messages == said(
        {
            "id": "a",
            "role": "assistant",
            "content": "",
            "toolCalls": [a_call("c1", '{"n":1}'), a_call("c2", "{}", "move")],
        }
    )


def test_a_call_without_a_parent_is_a_message_of_its_own() -> None:
    assert folded(call_start("c1")).messages == said(
        {"id": "c1", "role": "assistant", "toolCalls": [a_call("c1")]}
    )


def test_a_parent_that_is_not_there_is_made() -> None:
    transcript = folded(call_start("c1", parentMessageId="a", subagentRunId="s"))

    assert transcript.messages == said(
        {"id": "a", "role": "assistant", "subagentRunId": "s", "toolCalls": [a_call("c1")]}
    )


def test_a_parent_that_is_no_assistant_does_not_get_the_call() -> None:
    transcript = folded(call_start("c1", parentMessageId="m1"))

    assert transcript.messages == said({"id": "c1", "role": "assistant", "toolCalls": [a_call("c1")]})


def test_chunks_of_a_call_begin_it_and_go_on_with_it() -> None:
    transcript = folded(
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "pay", "delta": "{"},
        {"type": "TOOL_CALL_CHUNK", "delta": "}"},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c2", "toolCallName": "move", "parentMessageId": "c1"},
    )

    assert transcript.messages == said(
        {"id": "c1", "role": "assistant", "toolCalls": [a_call("c1", "{}"), a_call("c2", "", "move")]}
    )


def test_a_result_stands_behind_its_call_whatever_was_said_since() -> None:
    """Providers refuse a call that is not followed by its result."""
    transcript = folded(
        call_start("c1", parentMessageId="a"),
        call_start("c2", parentMessageId="a"),
        text_start("b"),
        result("r1", "c1"),
        result("r2", "c2", "fine"),
    )

    assert [message["id"] for message in transcript.messages] == ["m1", "a", "r1", "r2", "b"]
    assert transcript.messages[3] == {"id": "r2", "role": "tool", "toolCallId": "c2", "content": "fine"}


def test_a_result_of_a_call_that_is_not_there_comes_last() -> None:
    assert folded(text_start("a"), result("r1", "unknown")).messages[-1]["id"] == "r1"


def test_arguments_of_a_call_that_nothing_has_begun_are_passed_over() -> None:
    assert folded(call_args("x", "{}")).messages == said()


# -- reasoning ----------------------------------------------------------------------------------------------


def test_reasoning_is_a_message_too() -> None:
    transcript = folded(
        {"type": "REASONING_MESSAGE_START", "messageId": "a", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "a", "delta": "hm"},
        {"type": "REASONING_MESSAGE_CHUNK", "messageId": "b", "delta": "so"},
        {"type": "REASONING_MESSAGE_CHUNK", "delta": "!"},
    )

    assert transcript.messages == said(
        {"id": "a", "role": "reasoning", "content": "hm"}, {"id": "b", "role": "reasoning", "content": "so!"}
    )


def test_encrypted_values_are_kept_where_they_belong() -> None:
    transcript = folded(
        call_start("c1"),
        {
            "type": "REASONING_ENCRYPTED_VALUE",
            "subtype": "tool-call",
            "entityId": "c1",
            "encryptedValue": "x",
        },
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "c1", "encryptedValue": "y"},
    )

    [_, message] = transcript.messages
    assert message["encryptedValue"] == "y"
    assert message["toolCalls"][0]["encryptedValue"] == "x"


# -- snapshots, state, start --------------------------------------------------------------------------------


def test_a_snapshot_of_the_messages_replaces_them() -> None:
    new = [{"id": "z", "role": "user", "content": "other"}]
    transcript = folded(text_start("a"), {"type": "MESSAGES_SNAPSHOT", "messages": new})

    assert transcript.messages == new
    assert not transcript.messages_changed


@pytest.mark.parametrize(
    "event",
    [
        text_start("a"),
        call_start("c1"),
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "REASONING_START", "messageId": "a"},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "plan", "content": {}},
    ],
)
def test_what_the_gate_takes_for_a_change_is_one(event: Json) -> None:
    assert folded({"type": "MESSAGES_SNAPSHOT", "messages": []}, event).messages_changed


def test_other_events_change_no_messages() -> None:
    transcript = folded(
        {"type": "CUSTOM", "name": "x", "value": 1}, {"type": "STEP_STARTED", "stepName": "s"}, {}
    )

    assert transcript.messages == said()
    assert not transcript.messages_changed


def test_activities_are_the_clients_own_and_stand_in_no_snapshot() -> None:
    activity = {"id": "p", "role": "activity", "activityType": "plan", "content": {}}

    assert folded(messages=[USER, activity]).snapshot() == said()


def test_state_is_replaced_and_patched() -> None:
    transcript = folded(
        {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
    )

    assert transcript.state == {"n": 2}
    assert transcript.state_known
    assert transcript.state_changed


def test_a_delta_that_does_not_fit_leaves_the_state_unknown_until_the_next_snapshot() -> None:
    transcript = folded({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/x"}]}, state={"n": 1})

    assert (transcript.state, transcript.state_known) == ({"n": 1}, False)

    transcript.fold({"type": "STATE_SNAPSHOT", "snapshot": {}})

    assert (transcript.state_known, transcript.state_changed) == (True, False)


def test_a_start_that_tells_the_input_adds_what_is_not_there() -> None:
    other = {"id": "m2", "role": "user", "content": "and"}
    transcript = folded({"type": "RUN_STARTED", "input": {"messages": [USER, other]}})

    assert transcript.messages == said(other)
