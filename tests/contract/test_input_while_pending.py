"""Row *input while pending* of contract 3: OPEN; no resume or an empty one, whatever side door it tries."""

from typing import Any

import pytest
from tests.expected import opened, refused
from tests.playbook import Playbook, agent, client

PENDING = refused("PENDING_INTERRUPTS", open=["a", "b"], about=["a", "b"])


def open_ab() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", "a", "b") << opened("a", "b")
    return play


@pytest.mark.parametrize("members", [{}, {"resume": None}, {"resume": []}])
def test_an_input_that_answers_nothing_is_refused(members: dict[str, Any]) -> None:
    play = open_ab()
    play >> client.asks("r2", **members) << PENDING


@pytest.mark.parametrize(
    "members",
    [
        {"forwardedProps": {"command": {"resume": True}}},
        {"forwardedProps": {"command": {"interruptEvent": "a"}}},
        {"messages": [{"role": "tool", "toolCallId": "c", "content": '{"approved":true}'}]},
        {"forwardedProps": {"resume": [{"interruptId": "a", "status": "resolved"}]}},
        {"parentRunId": "r1"},
        {"Resume": [{"interruptId": "a", "status": "resolved"}]},
    ],
)
def test_no_side_door_lets_it_past(members: dict[str, Any]) -> None:
    play = open_ab()
    play >> client.asks("r2", **members) << PENDING


def test_the_open_interrupts_are_in_the_errors_metadata_as_they_were_shown() -> None:
    play = open_ab()
    shown_then = play.events()[-1]["outcome"]["interrupts"]
    play >> client.asks("r2") << PENDING
    assert play.error()["open"] == shown_then
    assert play.error()["generation"] == play.nth(1)


def test_it_does_not_say_to_try_again() -> None:
    play = open_ab()
    play >> client.asks("r2") << PENDING
    assert play.error()["retryable"] is False


def test_it_changes_nothing() -> None:
    play = open_ab()
    before = play.state()
    play >> client.asks("r2") << PENDING
    assert play.state() == before
    assert play.pending() == {"a", "b"}
