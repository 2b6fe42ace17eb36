"""Row *echo of the past* of contract 2: events of a past run of this agent."""

from tests.expected import abandoned, admitted, ignored, lost, opened, passed, settled
from tests.playbook import Playbook, agent, client, later, pause_of, question, sdk, team


def test_events_of_a_run_that_has_ended_are_not_shown() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), sdk.finishes("r1"))

    play >> sdk.says(run="r1") << ignored(emitted=[])
    play >> sdk.starts("r1") << ignored(emitted=[])
    play >> sdk.fails("r1") << ignored(emitted=[])
    play >> sdk.interrupts("r1", "a") << ignored(emitted=[], open=[], generation=None)


def test_a_redelivered_outcome_of_a_settled_pause_opens_nothing() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"), client.resumes("r2", a=1), sdk.finishes("r2"))

    play >> sdk.interrupts("r1", "a") << ignored(emitted=[], generation=None)


def test_nothing_is_kept_of_it() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"), client.asks("r2"), sdk.starts("r2"))
    before = play.state()

    play >> sdk.calls("c", "pay", run="r1") << ignored()

    assert play.state() == before


def test_a_result_for_an_open_interrupts_call_marks_it_attempted() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.interrupts("r1", question("a", toolCallId="c")))
    play(client.resumes("r2", a=True), sdk.fails("r2"))

    play >> sdk.results("c", run="r2") << ignored(emitted=[])

    assert pause_of(play).attempted == ("a",)


def test_a_result_for_another_call_marks_nothing() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", question("a", toolCallId="c"), "b"))
    play(client.resumes("r2", a=True, b=True), sdk.fails("r2"))

    play >> sdk.results("d", run="r2") << ignored()

    assert pause_of(play).attempted == ()


def test_a_result_of_another_agents_past_run_marks_nothing() -> None:
    play = Playbook(agents=["default", "other"])
    play(client.asks("r1").having(agent="other"), sdk.finishes("r1").but(topic="agent-events.other"))
    play(client.asks("r2"), sdk.interrupts("r2", question("a", toolCallId="c")))

    play >> sdk.results("c", run="r1").but(topic="agent-events.other") << ignored(emitted=[])

    assert pause_of(play).attempted == ()


def test_it_is_past_rather_than_foreign_while_another_agent_runs() -> None:
    play = Playbook(agents=["default", "other"])
    play(client.asks("r1"), agent.finishes("r1"), client.asks("r2").having(agent="other"))

    play >> agent.says(run="r1") << ignored(emitted=[])


def test_an_abandoned_run_is_past() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> team.abandons().having(admission="inputs/0/0") << abandoned()

    play >> sdk.says(run="r1") << ignored(emitted=[])


def test_a_lost_run_is_past_once_something_newer_was_admitted() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> later(minutes=16) << lost()
    play >> client.asks("r2") << admitted()

    play >> sdk.finishes("r1") << ignored(emitted=[])
    play >> sdk.finishes("r2") << passed()


def test_the_superseded_outcome_again_is_said_differently_not_past() -> None:
    """The run is still the interrupted one: what it says last is what is asked."""
    play = Playbook()
    play(agent.interrupts("r1", "a"), agent.interrupts("r1", "b"))

    play >> agent.interrupts("r1", "a") << opened("a", superseded=2)
    play >> client.resumes("r2", a=1) << admitted()
    play >> agent.finishes("r2") << settled(3)
