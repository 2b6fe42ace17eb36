"""Row *said again* of contract 2: the interrupted run's outcome once more, with the same descriptors."""

from tests.expected import admitted, ignored, opened, passed, settled
from tests.playbook import Playbook, agent, client, moment, pause_of, question, sdk

from holdshort.contract.rules import Limits

AGAIN = ignored(shown=["RUN_STARTED", "RUN_FINISHED"], under=["r1"], open=["a", "b"], generation=1)


def test_the_same_outcome_again_opens_nothing_new() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a", "b") << opened("a", "b", generation=1)
    play >> agent.interrupts("r1", "a", "b") << AGAIN


def test_it_is_shown_with_the_open_binding_and_first_seen_times_stay() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a", "b") << opened("a", "b")
    first = play.events()[-1]["outcome"]
    before = play.state()

    play >> agent.interrupts("r1", "a", "b") << AGAIN

    assert play.events()[-1]["outcome"] == first
    assert play.state() == before


def test_it_is_preceded_by_a_run_started_of_ours_since_that_run_is_over_for_clients() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), sdk.interrupts("r1", "a", "b"))

    play >> sdk.interrupts("r1", "a", "b") << AGAIN
    assert play.events()[0] == {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r1",
        "protocolVersion": "1.0",
    }


def test_another_expiry_is_not_another_question() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", expiresAt=moment(60))) << opened("a")
    first = bytes(pause_of(play).interrupts[0].descriptor)

    (
        play
        >> agent.interrupts("r1", question("a", expiresAt=moment(99)))
        << ignored(shown=["RUN_STARTED", "RUN_FINISHED"], open=["a"])
    )

    assert bytes(pause_of(play).interrupts[0].descriptor) == first


def test_the_order_of_members_does_not_count() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", {"id": "a", "reason": "x", "metadata": {"m": 1, "n": 2}}) << opened("a")
    (
        play
        >> agent.interrupts("r1", {"metadata": {"n": 2, "m": 1}, "reason": "x", "id": "a"})
        << ignored(shown=["RUN_STARTED", "RUN_FINISHED"])
    )


def test_the_answer_stays_the_same_afterwards() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> client.resumes("r2", a=True).but(inputs_end=0) << admitted()
    play >> sdk.fails("r2")
    play >> agent.interrupts("r1", "a") << ignored(shown=["RUN_STARTED", "RUN_FINISHED"])

    play >> client.resumes("r3", a=True) << admitted()
    play >> sdk.finishes("r3") << settled(1)


def test_while_resuming_it_is_not_shown() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))

    play >> agent.interrupts("r1", "a") << ignored(emitted=[], status="resuming")


def test_a_sealed_pause_said_again_is_not_shown() -> None:
    play = Playbook(limits=Limits(open_pauses=0))
    play >> agent.interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES")

    play >> agent.interrupts("r1", "a") << ignored(emitted=[], status="open")


def test_a_member_the_agent_adds_to_its_event_is_shown_as_it_says_it_now() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    (
        play
        >> agent.interrupts("r1", "a").adding(result={"n": 1})
        << ignored(shown=["RUN_STARTED", "RUN_FINISHED"])
    )
    assert play.events()[1]["result"] == {"n": 1}


def test_content_of_another_run_is_passed_on_around_it() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=1), sdk.starts("r2"))
    play >> sdk.says(run="r2") << passed(under=["r2"])
