"""A run is read as the gate wrote it, and handed to the agent in the form that it understands."""

import json
from typing import Any

import pytest

from holdshort.sdk.runs import Run, as_command, parse_input, transcript_of
from holdshort.stream.records import Record

Json = Any
HEADERS = [
    ("holdshort-run", b"r1"),
    ("holdshort-admission", b"inputs/0/5"),
    ("holdshort-start-by", b"1796000000000"),
    ("content-type", b"application/json"),
]


def record(headers: Any = HEADERS, key: bytes | None = b"t", value: bytes | None = b"{}") -> Record:
    return Record("runs.a", 3, 7, key, value, headers, 0)


def test_a_run_is_named_by_its_admission() -> None:
    run = Run.read(record())

    assert run == Run("t", "r1", "inputs/0/5", 1_796_000_000_000, 3, 7, b"{}")


def test_its_events_echo_run_and_admission() -> None:
    run = Run.read(record())
    assert run is not None

    assert run.headers() == {
        "content-type": "application/json",
        "holdshort-run": "r1",
        "holdshort-admission": "inputs/0/5",
    }


@pytest.mark.parametrize("missing", ["holdshort-run", "holdshort-admission"])
def test_what_cannot_be_answered_is_no_run(missing: str) -> None:
    assert Run.read(record([header for header in HEADERS if header[0] != missing])) is None
    assert Run.read(record(key=None)) is None
    assert Run.read(record(value=None)) is None


def test_headers_of_clients_may_be_anything() -> None:
    odd: Any = [*HEADERS, ("theirs", b"\xff\xfe"), ("none", None)]

    assert Run.read(record(odd)) is not None


def test_a_run_without_a_last_moment_is_never_late() -> None:
    run = Run.read(record([header for header in HEADERS if header[0] != "holdshort-start-by"]))
    assert run is not None

    assert not run.is_late(2**62)


def test_a_run_is_late_from_its_last_moment_on() -> None:
    run = Run.read(record())
    assert run is not None

    assert not run.is_late(1_795_999_999_999)
    assert run.is_late(1_796_000_000_000)


# -- the conversation ---------------------------------------------------------------------------------------


def test_the_conversation_begins_with_the_inputs() -> None:
    transcript = transcript_of({"messages": [{"id": "m"}], "state": {"n": 1}})
    assert transcript is not None

    assert (transcript.messages, transcript.state) == ([{"id": "m"}], {"n": 1})


def test_an_input_without_messages_begins_an_empty_conversation() -> None:
    assert transcript_of({"messages": []}) is not None


@pytest.mark.parametrize("input_", [{"messages": [], "resume": [{}]}, {"messages": None}, {}])
def test_a_resume_without_messages_does_not_tell_the_conversation(input_: Json) -> None:
    assert transcript_of(input_) is None


# -- legacy agents ------------------------------------------------------------------------------------------


def entry(payload: Json, status: str = "resolved") -> Json:
    return {"interruptId": "legacy-0", "status": status, "payload": payload}


@pytest.mark.parametrize("payload", [True, False, 0, "", None, {"approved": True}, []])
def test_an_answer_is_the_command_of_a_legacy_agent_whatever_it_is(payload: Json) -> None:
    assert as_command({"resume": [entry(payload)], "threadId": "t"}) == {
        "threadId": "t",
        "forwardedProps": {"command": {"resume": payload}},
    }


def test_what_else_was_forwarded_stays() -> None:
    props = {"model": "m", "command": {"interruptEvent": "e", "resume": "planted"}}

    assert as_command({"resume": [entry("yes")], "forwardedProps": props}) == {
        "forwardedProps": {"model": "m", "command": {"interruptEvent": "e", "resume": "yes"}}
    }
    assert props["command"] == {"interruptEvent": "e", "resume": "planted"}


def test_several_answers_are_a_list_in_their_order() -> None:
    command = as_command({"resume": [entry(1), entry("ignored", "cancelled"), entry(3)]})

    assert command["forwardedProps"]["command"]["resume"] == [1, None, 3]


def test_a_cancelled_answer_is_nothing_that_could_be_taken_for_a_yes() -> None:
    command = as_command({"resume": [entry({"approved": True}, "cancelled")]})

    assert command["forwardedProps"]["command"] == {"resume": None}


@pytest.mark.parametrize("input_", [{"threadId": "t"}, {"resume": None}, {"resume": []}])
def test_an_input_that_answers_nothing_stays_as_it_is(input_: Json) -> None:
    assert as_command(input_) == input_


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"threadId": ""}', b"\xff"])
def test_what_is_no_input_is_a_value_error(value: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_input(value)


def test_an_input_is_parsed() -> None:
    assert parse_input(json.dumps({"threadId": "t", "x": 1}).encode()) == {"threadId": "t", "x": 1}
