"""Row *partial* of contract 3: OPEN; an open id without an entry (rule 3, cover all open interrupts)."""

from typing import Any

import pytest
from tests.expected import admitted, opened, quietly_refused, refused
from tests.playbook import Playbook, agent, cancelled, client, pause_of, team, without_payload


def open_abc() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", "a", "b", "c") << opened("a", "b", "c")
    return play


def test_a_partial_resume_is_refused_and_what_is_missing_is_told() -> None:
    play = open_abc()
    (
        play
        >> client.resumes("r2", b=True)
        << refused("PARTIAL_RESUME", about=["a", "c"], open=["a", "b", "c"], generation=1)
    )


@pytest.mark.parametrize("payload", [None, False, 0, "", [], {}])
def test_a_payload_is_judged_by_presence_never_by_truth(payload: Any) -> None:
    play = open_abc()
    play >> client.resumes("r2", a=payload, b=payload, c=payload) << admitted()


def test_an_entry_without_a_payload_and_a_cancelled_one_cover_too() -> None:
    play = open_abc()
    play >> client.resumes("r2", a=without_payload, b=cancelled, c=True) << admitted()


def test_it_changes_nothing() -> None:
    play = open_abc()
    before = play.state()
    play >> client.resumes("r2", a=True) << refused("PARTIAL_RESUME")
    assert play.state() == before


def test_parts_are_never_put_together() -> None:
    play = open_abc()
    play >> client.resumes("r2", a=True, b=True) << refused("PARTIAL_RESUME")
    play >> client.resumes("r3", c=True) << refused("PARTIAL_RESUME", about=["a", "b"])


def test_the_router_must_cover_too() -> None:
    play = open_abc()
    play >> team.resumes("hs-1", a=True) << quietly_refused("PARTIAL_RESUME", about=["b", "c"])
    assert pause_of(play).refusal is not None
