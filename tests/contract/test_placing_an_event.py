"""Whose event it is (contract 2): by echo, by header, by the id in the value, or by none."""

import pytest
from tests.expected import admitted, ignored, lost, opened, passed, reopened, settled, violated
from tests.playbook import Playbook, agent, client, later, run_of, sdk

from holdshort.contract.rules import AgentRules

FOREIGN_IDS = {"default": AgentRules(foreign_run_ids=True)}


# -- named by the admission echo alone where there is one ---------------------------------------------------


def test_an_echo_names_the_run_whatever_the_ids_say() -> None:
    play = Playbook()
    play >> client.asks("r1") << admitted()
    play >> sdk.starts("r1").adding(runId="its-own").having(run="r1") << passed(under=["r1"])
    play >> sdk.says(run="r1").adding(runId="its-own") << passed(under=["r1"])


def test_an_echo_wins_over_a_header_that_names_the_run_in_flight() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"), client.asks("r2"), sdk.starts("r2"))

    play >> agent.says(run="r2").but(echo="inputs/0/0") << ignored(emitted=[])


def test_an_echo_of_nothing_known_is_unknown_though_the_id_is_in_flight() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.starts("r1").but(echo="inputs/0/99") << violated("STALE_RUN")


@pytest.mark.parametrize("echo", ["inputs/0", "inputs/0/x", "inputs/0/00", "inputs/0/-0", "x", "inputs/0/0 "])
def test_an_echo_that_cannot_be_read_is_of_no_run(echo: str) -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.starts("r1").but(echo=echo) << violated("STALE_RUN")


def test_an_echo_of_nothing_known_is_not_of_the_pause_either() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"))

    play >> agent.interrupts("r1", "b").but(echo="inputs/0/99") << violated("STALE_RUN", open=["a"])


def test_an_echo_alone_names_a_run() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.fails(None).but(echo="inputs/0/99") << violated("STALE_RUN")


def test_a_blank_echo_is_none() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.starts("r1").having(admission=" ") << passed(under=["r1"])


def test_an_echo_in_an_idle_thread_is_never_an_outside_run() -> None:
    play = Playbook()
    play >> agent.starts("r1").but(echo="inputs/0/0") << violated("STALE_RUN", shown=[])


# -- else by the header, else by the id in the value --------------------------------------------------------


def test_the_header_names_the_run_before_the_value_does() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.starts("other").having(run="r1") << passed(under=["r1"])


def test_the_value_names_the_run_where_there_is_no_header() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.starts("r1").but(headers={}) << passed(under=["r1"])


def test_a_blank_header_is_none() -> None:
    play = Playbook()
    play(client.asks("r1"))

    play >> agent.starts("r1").having(run="  ") << passed(under=["r1"])


def test_what_is_shown_says_which_run_it_was_taken_for() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> agent.starts("other").having(run="r1") << passed()

    assert play.emit("events")["headers"]["holdshort-run"] == "r1"
    assert play.emit("events")["value"]["runId"] == "other"


def test_a_header_that_is_no_text_names_no_run_that_is_known() -> None:
    play = Playbook()
    play(client.asks("r1"))
    assert play.verdict(agent.starts("r1"), ("holdshort-run", b"\xff")).code == "STALE_RUN"
    assert play.verdict(agent.starts("r1"), ("holdshort-admission", b"\xff/0/0")).code == "STALE_RUN"


# -- events that name no run --------------------------------------------------------------------------------


def test_an_event_that_names_no_run_is_of_the_run_in_flight_once_it_has_started() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.starts("r1"))

    play >> agent.says(run=None) << passed(under=["r1"])
    play >> agent.fails(None) << passed(under=["r1"])
    assert play.state().run is None


def test_before_its_start_is_read_a_nameless_event_is_of_the_run_before() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.starts("r1"), agent.finishes("r1"), client.asks("r2"))

    play >> agent.fails(None) << ignored(emitted=[])
    assert run_of(play).run_id == "r2"


def test_a_nameless_error_before_the_answering_run_starts_does_not_reopen_the_pause() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))

    play >> agent.fails(None) << ignored(status="resuming", emitted=[])


def test_with_no_run_in_flight_a_nameless_event_is_of_nobody() -> None:
    play = Playbook()
    play >> agent.fails(None) << ignored(emitted=[])
    play(agent.interrupts("r1", "a"))
    play >> agent.fails(None) << ignored(emitted=[], open=["a"])


def test_a_nameless_event_does_not_bring_back_a_lost_run() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.starts("r1"))
    play >> later(minutes=16) << lost()

    play >> agent.says(run=None) << ignored(emitted=[])
    assert play.state().run is None


# -- ids that are used again --------------------------------------------------------------------------------


def copilotkit(play: Playbook) -> None:
    """A resume that reuses the interrupted run's id, to an agent that does not echo."""
    play(agent.starts("r1"), agent.interrupts("r1", "a"), client.resumes("r1", a=True))


def test_a_reused_id_means_the_earlier_run_until_the_newer_has_started() -> None:
    play = Playbook()
    copilotkit(play)

    play >> agent.finishes("r1") << ignored(status="resuming", emitted=[])
    play >> agent.says(run="r1") << ignored(status="resuming", emitted=[])


def test_a_run_started_under_a_reused_id_means_the_newer() -> None:
    play = Playbook()
    copilotkit(play)

    play >> agent.starts("r1") << passed(under=["r1"], status="resuming")
    play >> agent.finishes("r1") << settled(1)


def test_a_reused_id_of_a_remembered_run_means_that_one_until_the_newer_has_started() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.starts("r1"), agent.finishes("r1"), client.asks("r1", again=True))

    play >> agent.finishes("r1") << ignored(emitted=[])
    play >> agent.starts("r1") << passed()
    play >> agent.finishes("r1") << passed()


def test_a_reused_id_of_a_gone_pause_means_that_one_until_the_newer_has_started() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), agent.finishes("r2"))
    play(client.asks("r1"))

    play >> agent.fails("r1") << ignored(emitted=[])
    play >> agent.starts("r1") << passed()


def test_with_an_echo_a_reused_id_is_never_mistaken() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"), client.resumes("r1", a=True))

    play >> sdk.finishes("r1") << settled(1)


# -- agents with run ids of their own -----------------------------------------------------------------------


def test_an_agent_with_foreign_run_ids_must_echo() -> None:
    play = Playbook(agents=FOREIGN_IDS)
    play(client.asks("r1"))

    play >> agent.starts("r1") << ignored(emitted=[])
    play >> sdk.starts("r1") << passed(under=["r1"])


def test_without_an_echo_its_events_name_no_run() -> None:
    play = Playbook(agents=FOREIGN_IDS)
    play(client.asks("r1"), sdk.starts("r1"))

    play >> agent.says(run="whatever") << passed(under=["r1"])


def test_it_cannot_start_a_run_outside_the_gate() -> None:
    play = Playbook(agents=FOREIGN_IDS)
    play >> agent.starts("r1") << ignored(emitted=[])
    assert play.state().empty


# -- the lost run that speaks after all ---------------------------------------------------------------------


def test_a_lost_run_that_is_named_is_in_flight_again() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.starts("r1"))
    play >> later(minutes=16) << lost()

    play >> agent.says(run="r1") << passed(shown=["RUN_STARTED", "TEXT_MESSAGE_CONTENT"])
    assert run_of(play).run_id == "r1"
    assert play.state().ended == ()


def test_the_pause_that_a_lost_run_answered_is_resuming_again() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    play >> later(minutes=16) << lost(status="open", open=["a"])

    play >> sdk.says(run="r2") << passed(status="resuming")
    play >> sdk.finishes("r2") << settled(1)


def test_a_lost_run_may_come_back_only_to_end() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))
    play >> later(minutes=16) << lost()

    play >> sdk.fails("r2") << reopened("a", shown=["RUN_STARTED", "RUN_ERROR"])
    outcomes = [run.outcome for run in play.state().ended]
    assert outcomes == ["error", "interrupt"]


def test_a_lost_run_stays_gone_once_its_pause_is_another() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    play >> later(minutes=16) << lost()
    play >> agent.interrupts("r1", "b") << opened("b", superseded=1)

    play >> sdk.finishes("r2") << ignored(emitted=[], open=["b"])


def test_a_lost_run_stays_gone_once_another_has_ended() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> later(minutes=16) << lost()
    play(client.asks("r2"), sdk.finishes("r2"))

    play >> sdk.finishes("r1") << ignored(emitted=[])


def test_a_lost_run_that_is_named_by_its_id_is_past_while_a_newer_one_is_in_flight() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), agent.starts("r2"))
    play >> later(minutes=16) << lost()
    play(client.resumes("r3", a=True), agent.starts("r3"))

    play >> agent.finishes("r2") << ignored(emitted=[], status="resuming")


def test_beside_a_lost_run_the_earlier_ones_are_past_as_ever() -> None:
    play = Playbook()
    play(client.asks("r1"), agent.finishes("r1"), client.asks("r2"))
    play >> later(minutes=16) << lost()

    play >> agent.starts("r1") << ignored(emitted=[])
    assert play.state().run is None


def test_a_lost_run_of_another_agent_does_not_come_back() -> None:
    play = Playbook(agents=["default", "other"])
    play(client.asks("r1"), agent.starts("r1"))
    play >> later(minutes=16) << lost()

    (
        play
        >> agent.finishes("r1").but(topic="agent-events.other")
        << passed(shown=["RUN_STARTED", "RUN_FINISHED"])
    )
    assert [run.agent for run in play.state().ended] == ["other", "default"]


# -- runs outside the gate ----------------------------------------------------------------------------------


def test_an_outside_run_needs_an_idle_thread() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> agent.starts("x") << violated("STALE_RUN")
    play(agent.starts("r1"), agent.interrupts("r1", "a"))
    play >> agent.starts("x") << violated("STALE_RUN")


def test_an_id_that_is_remembered_is_past_rather_than_outside() -> None:
    play = Playbook()
    play(agent.starts("x"), agent.finishes("x"))

    play >> agent.starts("x") << ignored(emitted=[])


def test_outside_runs_can_be_refused() -> None:
    play = Playbook(outside_runs="refuse")
    play >> agent.starts("x") << violated("STALE_RUN", shown=[])
    play >> agent.says(run="x") << ignored(emitted=[])
    assert play.state().empty


def test_only_runs_of_the_topics_own_agent_are_meant() -> None:
    play = Playbook(agents=["default", "other"])
    play(client.asks("r1"))

    play >> agent.starts("r1").but(topic="agent-events.other") << violated("FOREIGN_RUN")
    assert not run_of(play).started


def test_an_outside_run_with_an_endless_id_is_not_let_in() -> None:
    play = Playbook()
    play >> agent.starts("é" * 257) << violated("TOO_LARGE")
    play >> agent.starts("é" * 256) << passed()


def test_an_outside_run_in_a_thread_with_an_endless_id_is_not_let_in() -> None:
    play = Playbook()
    endless = "t" * 513
    play >> agent.starts("r1").but(key=endless).adding(threadId=endless) << violated("TOO_LARGE")
