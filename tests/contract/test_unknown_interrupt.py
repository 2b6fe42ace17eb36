"""Row *unknown interrupt* of contract 3: OPEN; an id that is not open."""

from tests.expected import opened, quietly_refused, refused
from tests.playbook import Playbook, agent, cancelled, client, sdk, team


def open_ab() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", "a", "b") << opened("a", "b")
    return play


def test_an_unknown_id_beside_a_complete_answer_is_refused() -> None:
    play = open_ab()
    play >> client.resumes("r2", a=True, b=True, c=True) << refused("UNKNOWN_INTERRUPT_ID", about=["c"])


def test_unknown_ids_alone_are_refused_and_all_told() -> None:
    play = open_ab()
    play >> client.resumes("r2", c=True, d=cancelled) << refused("UNKNOWN_INTERRUPT_ID", about=["c", "d"])


def test_ids_are_compared_as_they_are() -> None:
    play = open_ab()
    play >> client.resumes("r2", {"A": 1, "b": 1}) << refused("UNKNOWN_INTERRUPT_ID", about=["A"])
    play >> client.resumes("r2", {"a ": 1, "b": 1}) << refused("UNKNOWN_INTERRUPT_ID", about=["a "])


def test_an_id_of_a_pause_that_is_gone_is_unknown_unless_it_is_addressed() -> None:
    play = open_ab()
    play(client.resumes("r2", a=True, b=True))
    play >> sdk.interrupts("r2", "c") << opened("c", settled=1)
    play >> client.resumes("r3", a=True, b=True) << refused("UNKNOWN_INTERRUPT_ID", about=["a", "b"])


def test_from_resumes_it_is_refused_too() -> None:
    play = open_ab()
    play >> team.resumes("hs-1", a=1, b=1, c=1) << quietly_refused("UNKNOWN_INTERRUPT_ID", about=["c"])


def test_a_flood_of_them_is_answered_in_an_event_that_can_be_written() -> None:
    play = open_ab()
    flood = {f"x{n}": True for n in range(7000)}
    play >> client.resumes("r2", flood) << refused("UNKNOWN_INTERRUPT_ID")
    assert len(play.error()["problems"]) == 64
