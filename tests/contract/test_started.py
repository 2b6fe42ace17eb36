"""Row *started* of contract 2: RUN_STARTED of the current or an outside run."""

from tests.expected import ignored, lost, passed
from tests.playbook import Playbook, agent, client, later, run_of, sdk


def test_run_started_of_the_run_in_flight_passes_as_it_came() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.starts("r1").adding(custom=[1.0]) << passed(shown=["RUN_STARTED"], under=["r1"])

    assert play.events() == [{"type": "RUN_STARTED", "threadId": "t", "runId": "r1", "custom": [1.0]}]
    assert run_of(play).started


def test_an_outside_run_is_in_flight_from_its_run_started_on() -> None:
    play = Playbook()
    play >> agent.starts("x") << passed(shown=["RUN_STARTED"], under=["x"])

    run = run_of(play)
    assert (run.run_id, run.agent, run.admission, run.admitted_at) == ("x", "default", None, play.at)


def test_what_an_outside_run_says_before_is_not_shown() -> None:
    play = Playbook()
    play >> agent.says(run="x") << ignored(emitted=[])
    play >> agent.calls("c", "pay", run="x") << ignored(emitted=[])
    play >> agent.beats("x") << ignored(emitted=[])
    assert play.state().empty


def test_of_a_run_already_shown_as_running_it_is_ignored() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.starts("r1") << ignored(emitted=[])


def test_the_agents_own_is_ignored_after_ours() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.says(run="r1") << passed(shown=["RUN_STARTED", "TEXT_MESSAGE_CONTENT"])
    assert not run_of(play).started

    play >> sdk.starts("r1") << ignored(emitted=[])
    assert run_of(play).started


def test_over_the_limit_it_has_its_effect_and_the_client_gets_ours() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.starts("r1").adding(x="x" * 1024 * 1024) << passed(shown=["RUN_STARTED"], dead=["TOO_LARGE"])

    assert "x" not in play.events()[0]
    assert run_of(play).started


def test_after_it_was_lost_the_runs_own_run_started_begins_it_anew() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> later(minutes=16) << lost(shown=["RUN_ERROR"])
    play >> sdk.starts("r1") << passed(shown=["RUN_STARTED"])
