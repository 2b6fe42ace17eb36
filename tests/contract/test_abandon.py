"""Row *abandon* of contract 3: the way out when an agent can no longer resume or end."""

from tests.expected import abandoned, admitted, ignored, lost, opened, refused, replayed
from tests.playbook import Playbook, agent, client, later, sdk, team


def test_an_open_pause_ends_and_nothing_is_forwarded() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> team.abandons(1) << abandoned(1, generation=None, open=[], emitted=["events"] * 4, status=None)

    (gone,) = play.state().gone
    assert (gone.how, gone.outcome, gone.answered_by) == ("abandoned", "abandoned", None)
    play >> client.asks("r2") << admitted()


def test_clients_are_told_and_forget_what_was_open() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    assert play.pending() == {"a"}
    (
        play
        >> team.abandons(1)
        << abandoned(1, shown=["RUN_STARTED", "RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"])
    )

    begun, error, started, finished = play.events()
    assert begun["runId"] == play.got["under"][0] == "r1"
    assert error["code"] == "ABANDONED"
    assert started["runId"].startswith("hs-")
    assert "outcome" not in finished
    assert finished["metadata"]["holdshort"] == {"generation": play.nth(1), "outcome": "abandoned"}
    assert play.pending() == set()


def test_run_and_pause_end_together() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    (
        play
        >> team.abandons(1)
        << abandoned(1, shown=["RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"], generation=None)
    )

    assert play.state().run is None
    assert play.state().ended[0].outcome == "abandoned"
    (gone,) = play.state().gone
    assert gone.answered_by == "r2"
    play >> sdk.finishes("r2") << ignored(emitted=[])


def test_a_run_alone_ends_without_a_closing_run() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    (
        play
        >> team.abandons().having(admission="inputs/0/0")
        << abandoned(None, shown=["RUN_ERROR"], under=["r1"])
    )
    play >> client.asks("r2") << admitted()


def test_a_run_not_shown_as_running_is_started_first() -> None:
    play = Playbook()
    play(client.asks("r1"))
    (
        play
        >> team.abandons().having(admission="inputs/0/0")
        << abandoned(None, shown=["RUN_STARTED", "RUN_ERROR"], under=["r1"])
    )


def test_an_abandoned_question_is_not_answered_later() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> team.abandons(1) << abandoned(1)
    play >> client.resumes("r2", a=True) << refused("RESUME_CONFLICT")
    play(client.asks("r3"), sdk.interrupts("r3", "b"))
    play >> client.resumes("r4", a=True).echoing(1) << refused("RESUME_CONFLICT", open=["b"])


def test_the_answer_that_was_abandoned_is_replayed_as_that() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))
    play >> team.abandons(1) << abandoned(1)
    play >> client.resumes("r3", a=True) << replayed(shown=["RUN_STARTED", "RUN_FINISHED"])
    assert play.events()[1]["metadata"]["holdshort"]["outcome"] == "abandoned"


def test_the_interrupted_run_cannot_open_it_again() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"))
    play >> team.abandons(1) << abandoned(1)
    play >> sdk.interrupts("r1", "a") << ignored(emitted=[], generation=None)


def test_a_lost_run_does_not_come_back_after_its_pause_was_abandoned() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    play >> later(minutes=16) << lost(open=["a"])
    play >> team.abandons(1) << abandoned(1)
    play >> sdk.finishes("r2") << ignored(emitted=[])


def test_a_resume_beside_the_action_is_ignored() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    both = team.resumes("hs-1", a=True).having(action="abandon")
    play >> both << abandoned(1, emitted=["events"] * 4)


def test_the_agent_need_not_be_configured_any_more() -> None:
    play = Playbook(agents=["another"], default_agent=None)
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> client.resumes("r2", a=True) << refused("UNKNOWN_AGENT")
    play >> team.abandons(1) << abandoned(1)
