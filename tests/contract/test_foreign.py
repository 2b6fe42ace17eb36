"""Row *foreign* of contract 2: the thread has a run or a pause of another agent."""

from tests.expected import opened, passed, violated
from tests.playbook import Agent, Playbook, agent, client

other = Agent("other")
FOREIGN = violated("FOREIGN_RUN", emitted=["dead-letters"], dead=["FOREIGN_RUN"])


def both() -> Playbook:
    return Playbook(agents=["default", "other"])


def test_an_event_while_another_agent_runs_is_a_dead_letter_and_not_shown() -> None:
    play = both()
    play(client.asks("r1"), agent.starts("r1"))

    play >> other.starts("x") << FOREIGN
    play >> other.says(run="x") << FOREIGN
    play >> other.says(run=None) << FOREIGN


def test_an_interrupt_outcome_of_another_agent_does_not_touch_the_pause() -> None:
    play = both()
    play >> agent.interrupts("r1", "a") << opened("a")
    before = play.state()

    play >> other.interrupts("r1", "b") << FOREIGN

    assert play.state() == before


def test_another_agent_cannot_speak_for_the_run_by_echoing_its_admission() -> None:
    play = both()
    play(client.asks("r1"))
    play >> other.starts("r1").but(echo="inputs/0/0") << FOREIGN
    play(agent.starts("r1"), agent.interrupts("r1", "a"))
    play >> other.interrupts("r1", "b").but(echo="inputs/0/0") << FOREIGN
    play >> other.interrupts("r1", "a").but(echo="inputs/0/0") << FOREIGN


def test_another_agent_cannot_speak_for_a_past_run_either() -> None:
    play = both()
    play(client.asks("r1"), agent.finishes("r1"))
    play >> other.finishes("r1").but(echo="inputs/0/0") << violated("STALE_RUN")


def test_another_agents_heartbeat_renews_nothing() -> None:
    play = both()
    play(client.asks("r1"), agent.starts("r1"))
    before = play.state()

    play >> other.beats("r1") << FOREIGN

    assert play.state() == before


def test_once_the_thread_is_idle_another_agent_may_run_there() -> None:
    play = both()
    play(client.asks("r1"), agent.finishes("r1"))

    play >> other.starts("x") << passed(under=["x"])


def test_an_agent_that_is_not_configured_is_as_foreign_as_any() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> Agent("stranger").says(run="r1") << FOREIGN
