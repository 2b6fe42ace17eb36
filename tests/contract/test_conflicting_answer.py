"""Row *conflicting answer* of contract 3: the pause is RESUMING, another batch for its interrupts."""

from tests.expected import quietly_refused, refused, replayed, settled
from tests.playbook import Playbook, agent, cancelled, client, pause_of, resolved, sdk, team, without_payload

CONFLICT = refused("RESUME_CONFLICT", status="resuming")


def resuming() -> Playbook:
    play = Playbook()
    play(agent.interrupts("r1", "a", "b"), client.resumes("r2", a=None, b=cancelled))
    return play


def test_another_batch_is_a_conflict() -> None:
    play = resuming()
    play >> client.resumes("r9", a=True, b=cancelled) << CONFLICT
    play >> client.resumes("r9", a=None, b=None) << CONFLICT


def test_a_part_of_it_is_another_batch() -> None:
    play = resuming()
    play >> client.resumes("r9", a=None) << CONFLICT


def test_an_absent_payload_is_another_than_null_here() -> None:
    play = resuming()
    play >> client.resumes("r9", a=without_payload, b=cancelled) << CONFLICT


def test_the_same_batch_is_only_told_to_wait() -> None:
    play = resuming()
    play >> client.resumes("r9", b=cancelled, a=None) << refused("THREAD_BUSY", status="resuming")
    assert play.error()["answeredBy"] == "r2"


def test_metadata_does_not_make_it_another_batch() -> None:
    play = resuming()
    play >> client.resumes("r9", a=resolved(None, mine=1), b=cancelled) << refused("THREAD_BUSY")


def test_ids_that_are_not_the_pauses_are_not_about_it() -> None:
    play = resuming()
    play >> client.resumes("r9", a=True, z=True) << refused("THREAD_BUSY")


def test_what_is_being_answered_is_not_listed_as_open() -> None:
    play = resuming()
    play >> client.resumes("r9", a=True, b=True) << CONFLICT
    assert play.error()["open"] == []


def test_the_answer_that_was_first_counts() -> None:
    play = resuming()
    play >> client.resumes("r9", a=True, b=True) << CONFLICT
    play >> sdk.finishes("r2") << settled(1)
    play >> client.resumes("r9", a=True, b=True) << refused("RESUME_CONFLICT")
    play >> client.resumes("r9", a=None, b=cancelled) << replayed()


def test_the_routers_batch_learns_of_it_in_the_pause() -> None:
    play = resuming()
    play >> team.resumes("hs-1", a=True, b=True) << quietly_refused("RESUME_CONFLICT", emitted=[])
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert (refusal.run_id, refusal.code) == ("hs-1", "RESUME_CONFLICT")
