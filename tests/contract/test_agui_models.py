"""What the gate shows, and lets pass to agents, read by AG-UI's own Python models."""

from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter
from tests.playbook import Playbook, Said, agent, cancelled, client, later, question, sdk, team

from holdshort.contract.routes import Route, RouteTable
from holdshort.contract.rules import Limits

EVENTS: TypeAdapter[Any] = TypeAdapter(Event)

OPENS = agent.interrupts("r1", question("a", responseSchema={"type": "boolean"}, toolCallId="c"), "b")
SCENES: dict[str, list[Said | Any]] = {
    "opened": [OPENS],
    "said again": [OPENS, OPENS],
    "refused": [OPENS, client.resumes("r2", a=1)],
    "busy": [client.asks("r1"), client.asks("r2")],
    "settled": [OPENS, client.resumes("r2", a=True, b=1), sdk.finishes("r2")],
    "replayed": [
        OPENS,
        client.resumes("r2", a=True, b=1),
        sdk.finishes("r2"),
        client.resumes("r3", a=True, b=1),
    ],
    "answered elsewhere": [
        OPENS,
        client.resumes("r2", a=True, b=1),
        sdk.finishes("r2"),
        client.resumes("r3", a=cancelled),
    ],
    "replayed while open": [client.asks("r0"), sdk.interrupts("r0", "a"), client.asks("r0").but(after=-1)],
    "abandoned": [OPENS, team.abandons(1)],
    "forgotten": [OPENS, team.forgets(1)],
    "malformed": [OPENS, client.resumes("r2", a=True, b=1), sdk.interrupts("r2")],
    "lost": [OPENS, client.resumes("r2", a=True, b=1), later(minutes=16)],
    "miskeyed": [client.asks("r1").but(key="u")],
    "unreadable": [client.asks("r1").but(value='{"threadId":"t","runId":"r1","x":NaN}')],
    "over the limit": [agent.starts("r1"), agent.finishes("r1").adding(result="x" * 1024 * 1024)],
}


def shown(scene: list[Said | Any], **changes: Any) -> list[Any]:
    """Every event that the scene shows, read."""
    play = Playbook(**changes)
    read = []
    for said in scene:
        play.unchecked.clear()
        _ = play >> said
        emits = [emit for answer in play.unchecked for emit in answer["emits"]]
        read += [EVENTS.validate_python(emit["value"]) for emit in emits if emit["topic"] == "events"]
    return read


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_what_is_shown_is_agui(scene: list[Said | Any]) -> None:
    assert shown(scene)


def test_what_is_shown_of_reserved_and_sealed_pauses_is_agui() -> None:
    routes = RouteTable([Route(name="r", team="x", reason="test:question")])
    assert shown([OPENS, client.resumes("r2", a=True, b=1)], routes=routes)
    assert shown([OPENS, client.asks("r2")], limits=Limits(open_pauses=0))


def test_an_open_interrupt_is_read_with_its_bindings() -> None:
    *_, finished = shown([OPENS])
    first = finished.outcome.interrupts[0]
    assert (first.id, first.tool_call_id, first.response_schema) == ("a", "c", {"type": "boolean"})
    assert set(first.metadata) == {"holdshort:binding", "tanstack:interruptBinding"}


def test_what_agents_get_is_a_run_agent_input() -> None:
    play = Playbook()
    play(OPENS)
    _ = play >> client.resumes("r2", a=True, b=cancelled).adding(state={}, forwardedProps={})
    (emit,) = play.unchecked[0]["emits"]
    read = RunAgentInput.model_validate(emit["value"])
    assert read.resume is not None
    assert [entry.interrupt_id for entry in read.resume] == ["a", "b"]
