"""Row *unreadable* of contract 2: not JSON, or not an object with a string `type`."""

import pytest
from tests.expected import passed, unreadable
from tests.playbook import Playbook, Said, agent, client

EVENTS = "agent-events.default"


@pytest.mark.parametrize(
    "raw",
    ["", "{", "[]", "null", '"RUN_STARTED"', "{}", '{"type": null}', '{"type": 1}', '{"type":"A","x":NaN}'],
)
def test_what_is_not_an_object_with_a_string_type_is_a_dead_letter(raw: str) -> None:
    play = Playbook()
    play >> Said(EVENTS, raw) << unreadable("MALFORMED_EVENT", emitted=["dead-letters"])


def test_a_record_without_a_value_is_a_dead_letter() -> None:
    play = Playbook()
    play >> Said(EVENTS, None) << unreadable("MALFORMED_EVENT", emitted=["dead-letters"])


def test_bytes_that_are_no_text_are_a_dead_letter() -> None:
    play = Playbook()
    play >> Said(EVENTS, '{"type":"A","x":"\udcff"}') << unreadable("MALFORMED_EVENT")


def test_a_dead_letter_says_why_and_where_from() -> None:
    play = Playbook()
    play >> Said(EVENTS, "{", headers={"trace": "x"}, offset=7) << unreadable("MALFORMED_EVENT")

    letter = play.emit("dead-letters")
    about = {name.removeprefix("holdshort-dead-letter-"): text for name, text in letter["headers"].items()}
    assert letter["value"] == "{"
    assert about == {
        "trace": "x",
        "topic": EVENTS,
        "partition": "0",
        "offset": "7",
        "timestamp": str(play.at),
        "service": "gatekeeper",
        "code": "MALFORMED_EVENT",
        "detail": "not a JSON object with a string type",
        "attempts": "0",
    }


def test_an_unreadable_event_changes_nothing() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.starts("r1"))
    before = play.state()

    play >> Said(EVENTS, "{") << unreadable("MALFORMED_EVENT")

    assert play.state() == before
    play >> agent.says() << passed()


def test_what_is_nested_deeper_than_any_parser_agrees_on_is_a_dead_letter() -> None:
    """Between 250 and 1,024 levels one library reads what another cannot: a poison pill."""
    play = Playbook()
    for depth in (252, 500, 900, 990, 1000, 1023, 1024, 5000):
        deep = '{"type":"A","x":' + "[" * depth + "]" * depth + "}"
        play >> Said(EVENTS, deep) << unreadable("MALFORMED_EVENT")


def test_what_is_nested_less_deep_is_read() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.starts("r1"))
    deep = '{"type":"A","runId":"r1","x":' + "[" * 240 + "]" * 240 + "}"
    play >> Said(EVENTS, deep) << passed(shown=["A"])
