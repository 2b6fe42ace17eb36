"""Row *other past answer* of contract 3: the same with another batch."""

from tests.expected import abandoned, opened, refused
from tests.playbook import Playbook, agent, cancelled, client, sdk, team

CONFLICT = refused("RESUME_CONFLICT")


def answered() -> Playbook:
    play = Playbook()
    play(agent.interrupts("r1", "a", "b"), client.resumes("r2", a=True, b=cancelled), sdk.finishes("r2"))
    return play


def test_another_payload_status_or_coverage_is_a_conflict() -> None:
    play = answered()
    play >> client.resumes("r9", a=False, b=cancelled) << CONFLICT
    play >> client.resumes("r9", a=True, b=True) << CONFLICT
    play >> client.resumes("r9", a=True) << CONFLICT
    play >> client.resumes("r9", a=1, b=cancelled) << CONFLICT


def test_it_is_a_conflict_whatever_is_open_now() -> None:
    play = answered()
    play(client.asks("r3"))
    play >> sdk.interrupts("r3", "a", "b") << opened("a", "b", generation=2)
    play >> client.resumes("r9", a=False, b=False).echoing(1) << refused("RESUME_CONFLICT", open=["a", "b"])
    assert [one["id"] for one in play.error()["open"]] == ["a", "b"]


def test_it_is_a_conflict_while_a_run_is_in_flight_too() -> None:
    play = answered()
    play(client.asks("r3"))
    play >> client.resumes("r9", a=False, b=False) << CONFLICT


def test_an_answer_to_a_pause_that_was_superseded_is_a_conflict() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> agent.interrupts("r1", "b") << opened("b", superseded=1)
    play >> client.resumes("r9", a=True).echoing(1) << refused("RESUME_CONFLICT", open=["b"])


def test_an_id_of_nothing_gone_beside_it_is_unknown_instead() -> None:
    play = answered()
    play >> client.resumes("r9", a=True, z=True) << refused("UNKNOWN_INTERRUPT_ID")


def test_an_answer_without_a_canonical_form_is_not_that_of_a_pause_nobody_answered() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> team.abandons(1) << abandoned(1)
    play >> client.resumes("r2", a=2**60) << CONFLICT


def test_numbers_that_have_no_canonical_form_are_never_the_same_batch() -> None:
    play = answered()
    play >> client.resumes("r9", a=2**60, b=cancelled) << CONFLICT
    play >> client.resumes("r9", a=2**60, b=cancelled) << CONFLICT
