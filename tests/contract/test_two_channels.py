"""Row *two channels* of contract 3: frameworks differ in which of two answers they obey."""

from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from tests.expected import admitted, opened, quietly_refused, refused
from tests.playbook import Playbook, agent, client, pause_of, sdk, team

CONFLICT = refused("CONFLICTING_CHANNELS")
NAMES = ["resume", "interruptEvent"]


def props(**command: Any) -> dict[str, Any]:
    return {"command": command, "mine": 1}


@pytest.mark.parametrize("name", NAMES)
def test_beside_a_resume_it_is_refused(name: str) -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> client.resumes("r2", a=False).adding(forwardedProps=props(**{name: True})) << CONFLICT
    assert play.error()["problems"][0]["path"] == f"/forwardedProps/command/{name}"


@pytest.mark.parametrize("name", NAMES)
def test_without_a_pause_it_is_an_approval_planted_before_the_question(name: str) -> None:
    play = Playbook()
    play >> client.asks("r1", forwardedProps=props(**{name: True})) << CONFLICT
    play >> client.resumes("r2", a=1).adding(forwardedProps=props(**{name: True})) << CONFLICT


@pytest.mark.parametrize("value", [None, False, 0, "", {}, []])
def test_it_is_judged_by_presence_never_by_truth(value: Any) -> None:
    play = Playbook()
    play >> client.asks("r1", forwardedProps=props(resume=value)) << CONFLICT


def test_both_are_told() -> None:
    play = Playbook()
    play >> client.asks("r1", forwardedProps=props(interruptEvent=1, resume=2)) << CONFLICT
    assert [problem["path"] for problem in play.error()["problems"]] == [
        "/forwardedProps/command/resume",
        "/forwardedProps/command/interruptEvent",
    ]


@pytest.mark.parametrize(
    "spelt",
    [
        {"forwarded_props": {"command": {"resume": True}}},
        {"forwardedProps": {}, "forwarded_props": {"command": {"interruptEvent": True}}},
        {"ForwardedProps": {"command": {"resume": True}}},
        {"forwardedProps": {"Command": {"resume": True}}},
        {"forwardedProps": {"command": {}, "COMMAND": {"resume": True}}},
    ],
)
def test_however_an_agents_parser_lets_it_be_spelt(spelt: dict[str, Any]) -> None:
    """The Python models read forwarded_props, Go any case, LangGraph's adapter lowers what is inside."""
    play = Playbook()
    play >> client.asks("r1", **spelt) << CONFLICT
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> client.resumes("r2", a=False).adding(**spelt) << CONFLICT


def test_the_python_models_do_read_it_so() -> None:
    said = {"threadId": "t", "runId": "r", "messages": [], "forwarded_props": {"command": {"resume": True}}}
    assert RunAgentInput.model_validate(said).forwarded_props == {"command": {"resume": True}}


@pytest.mark.parametrize(
    "forwarded", [{}, None, [], "x", {"command": None}, {"command": "resume"}, {"command": {"goto": "x"}}]
)
def test_other_forwarded_props_are_nobodys_business(forwarded: Any) -> None:
    play = Playbook()
    play >> client.asks("r1", forwardedProps=forwarded) << admitted()


def test_forwarded_props_are_never_edited() -> None:
    play = Playbook()
    play >> client.asks("r1", forwardedProps={"command": {"goto": "x"}}) << admitted()
    assert play.emit("runs.default")["value"]["forwardedProps"] == {"command": {"goto": "x"}}


def test_an_answer_from_the_router_must_not_have_it_either() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    both = team.resumes("hs-1", a=True).adding(forwardedProps=props(resume=True))
    play >> both << quietly_refused("CONFLICTING_CHANNELS")
    assert pause_of(play).refusal is not None


def test_a_run_that_was_not_gated_may_be_answered_so() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.pauses_legacy("sure?"), sdk.finishes("r1"))
    play >> client.asks("r2", forwardedProps=props(resume=True)) << admitted()
