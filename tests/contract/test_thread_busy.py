"""Row *thread busy* of contract 3: a run in flight."""

from tests.expected import admitted, quietly_refused, refused
from tests.playbook import Client, Playbook, agent, client, pause_of, sdk, team

BUSY = refused("THREAD_BUSY")


def test_an_input_while_a_run_is_in_flight_is_refused() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> client.asks("r2") << BUSY
    play >> sdk.finishes("r1")
    play >> client.asks("r2") << admitted()


def test_it_is_retryable() -> None:
    play = Playbook()
    play(client.asks("r1"))
    for said in (client.asks("r2"), client.asks("r3", resume=[]), client.asks("r4", resume=None)):
        play >> said << BUSY
        assert play.error()["retryable"] is True


def test_a_resume_is_not_for_the_question_may_be_another_by_then() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> client.resumes("r2", a=True) << BUSY
    assert play.error()["retryable"] is False


def test_the_run_that_answers_is_named() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"), client.resumes("r1", a=True))
    play >> client.asks("r2") << BUSY
    assert play.error()["answeredBy"] == "r1"
    assert play.error()["open"] == []


def test_a_run_that_answers_nothing_is_not_named() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> client.asks("r2") << BUSY
    assert "answeredBy" not in play.error()


def test_an_outside_run_makes_the_thread_busy_too() -> None:
    play = Playbook()
    play(agent.starts("x"))
    play >> client.asks("r1") << BUSY


def test_another_thread_is_not_busy() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> Client("u").asks("r1") << admitted()


def test_from_resumes_it_is_told_in_the_pause() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"), client.resumes("r1", a=True))
    play >> team.resumes("hs-1", a=True) << quietly_refused("THREAD_BUSY", emitted=[])
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert refusal.code == "THREAD_BUSY"
