"""Row *run id in use* of contract 3: the run id is in flight."""

from tests.expected import admitted, opened, quietly_refused, settled
from tests.playbook import Playbook, agent, client, pause_of, sdk, team

IN_USE = quietly_refused("RUN_ID_IN_USE", emitted=["dead-letters"], dead=["RUN_ID_IN_USE"])


def test_it_is_refused_by_dead_letter_only() -> None:
    """Anything shown under that run id would reach the rightful caller."""
    play = Playbook()
    play >> client.asks("r1") << admitted()
    play >> client.asks("r1", other=1) << IN_USE
    play >> client.resumes("r1", a=True) << IN_USE


def test_it_changes_nothing() -> None:
    play = Playbook()
    play(client.asks("r1"))
    before = play.state()
    play >> client.asks("r1", other=1) << IN_USE
    assert play.state() == before


def test_under_the_id_of_an_outside_run_it_is_refused_too() -> None:
    play = Playbook()
    play(agent.starts("x"))
    play >> client.asks("x") << IN_USE


def test_the_id_of_the_interrupted_run_is_free_to_resume_with() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> client.resumes("r1", a=True) << admitted()
    play >> sdk.finishes("r1") << settled(1)


def test_from_resumes_it_is_told_in_the_pause_too() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"), team.resumes("hs-1", a=True))
    play >> team.resumes("hs-1", a=False) << IN_USE
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert refusal.code == "RUN_ID_IN_USE"
