"""Row *answered twice* of contract 3: the same interrupt twice in one batch."""

from typing import Any

import pytest
from tests.expected import opened, quietly_refused, refused
from tests.playbook import Answer, Playbook, agent, cancelled, client, pause_of, resolved, team


def twice(*answers: Answer) -> list[dict[str, Any]]:
    return [answer.entry("a") for answer in answers]


@pytest.mark.parametrize(
    "batch",
    [
        twice(resolved(True), resolved(True)),
        twice(resolved(False), resolved(True)),
        twice(cancelled, resolved(True)),
        twice(cancelled, cancelled, cancelled),
    ],
)
def test_it_is_refused_whatever_the_answers_are(batch: list[dict[str, Any]]) -> None:
    """Deny then approve executed the tool on pydantic-ai, and passed the reference client."""
    play = Playbook()
    play >> agent.interrupts("r1", "a", "b") << opened("a", "b")
    rest = [resolved(True).entry("b")]
    (
        play
        >> client.asks("r2", resume=[*batch, *rest])
        << refused("DUPLICATE_INTERRUPT_ID", about=["a"], open=["a", "b"])
    )


def test_all_of_them_are_told() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a", "b"))
    batch = [resolved(n).entry(id_) for n, id_ in enumerate(["b", "a", "a", "b"])]
    play >> client.asks("r2", resume=batch) << refused("DUPLICATE_INTERRUPT_ID", about=["b", "a"])


def test_from_resumes_it_is_refused_too() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    batch = twice(resolved(False), resolved(True))
    play >> team.resumes("hs-1").adding(resume=batch) << quietly_refused("DUPLICATE_INTERRUPT_ID")
    assert pause_of(play).refusal is not None
