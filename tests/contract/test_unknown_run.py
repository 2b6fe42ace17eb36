"""Row *unknown run* of contract 2: of no run that this thread knows."""

from tests.expected import ignored, violated
from tests.playbook import Playbook, agent, client

STALE = violated("STALE_RUN", emitted=["dead-letters"], dead=["STALE_RUN"])


def test_a_lifecycle_event_that_names_its_run_is_a_dead_letter() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.starts("x") << STALE
    play >> agent.finishes("x") << STALE
    play >> agent.interrupts("x", "a") << STALE
    play >> agent.fails("x") << STALE


def test_any_other_event_is_ignored_and_not_shown() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.says(run="x") << ignored(emitted=[])
    play >> agent.calls("c", "pay", run="x") << ignored(emitted=[])
    play >> agent.beats("x") << ignored(emitted=[])


def test_a_lifecycle_event_that_names_no_run_is_ignored() -> None:
    play = Playbook()
    play >> agent.fails(None) << ignored(emitted=[])


def test_it_changes_nothing() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    before = play.state()

    play >> agent.finishes("x") << STALE

    assert play.state() == before
