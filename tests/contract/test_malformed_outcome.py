"""Row *malformed outcome* of contract 2: RUN_FINISHED whose outcome breaks 2.1 or is too large."""

from tests.expected import admitted, opened, violated
from tests.playbook import Playbook, agent, client, question, sdk

EMPTY = {"type": "interrupt", "interrupts": []}


def test_the_client_gets_run_error_in_its_place_and_the_run_has_ended() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    (
        play
        >> sdk.finishes("r1", EMPTY)
        << violated("INVALID_OUTCOME", shown=["RUN_ERROR"], under=["r1"], dead=["INVALID_OUTCOME"])
    )

    assert play.events()[0]["code"] == "INVALID_OUTCOME"
    assert play.state().run is None
    assert play.state().ended[0].outcome == "invalid"
    play >> client.asks("r2") << admitted()


def test_a_pause_it_answered_is_settled_because_its_answer_was_used() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    play >> sdk.finishes("r2", EMPTY) << violated("INVALID_OUTCOME", settled=1, generation=None, open=[])

    (gone,) = play.state().gone
    assert (gone.how, gone.answered_by, gone.outcome) == ("settled", "r2", "invalid")


def test_a_closing_run_makes_clients_forget_what_was_answered() -> None:
    """AG-UI clients keep what they think is open across RUN_ERROR."""
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    assert play.pending() == {"a"}
    (
        play
        >> sdk.finishes("r2", EMPTY)
        << violated("INVALID_OUTCOME", shown=["RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"], settled=1)
    )

    closing = play.events()[2]
    assert closing["runId"].startswith("hs-")
    assert "outcome" not in closing
    assert closing["metadata"]["holdshort"] == {"generation": play.nth(1), "outcome": "settled"}
    assert play.pending() == set()


def test_without_a_pause_nothing_needs_closing() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.finishes("r1", EMPTY) << violated("INVALID_OUTCOME", shown=["RUN_STARTED", "RUN_ERROR"])


def test_an_outside_run_that_only_ends_badly_is_told_too() -> None:
    play = Playbook()
    (
        play
        >> agent.finishes("x", EMPTY)
        << violated("INVALID_OUTCOME", shown=["RUN_STARTED", "RUN_ERROR"], under=["x"])
    )
    assert play.state().ended[0].run_id == "x"


def test_an_interrupt_outcome_over_the_event_limit_opens_nothing() -> None:
    play = Playbook()
    play(agent.starts("r1"))
    (
        play
        >> agent.interrupts("r1", "a").adding(x="x" * 1024 * 1024)
        << violated("TOO_LARGE", shown=["RUN_ERROR"], dead=["TOO_LARGE"], generation=None)
    )


def test_the_whole_record_counts_not_its_value_alone() -> None:
    play = Playbook()
    play(agent.starts("r1"))
    (
        play
        >> agent.interrupts("r1", "a").but(headers={"note": "x" * 1024 * 1024})
        << violated("TOO_LARGE", shown=["RUN_ERROR"], generation=None)
    )


def test_too_many_interrupts_open_nothing() -> None:
    play = Playbook()
    play(agent.starts("r1"))
    play >> agent.interrupts("r1", *[f"a{n}" for n in range(65)]) << violated("TOO_LARGE", generation=None)


def test_what_is_wrong_with_the_shape_is_told_before_what_is_too_large() -> None:
    play = Playbook()
    play(agent.starts("r1"))
    play >> agent.interrupts("r1", *["a"] * 65) << violated("INVALID_OUTCOME")


def test_descriptors_over_their_limit_open_nothing() -> None:
    play = Playbook()
    play(agent.starts("r1"))
    huge = question("a", message="x" * 256 * 1024)
    play >> agent.interrupts("r1", huge) << violated("TOO_LARGE", generation=None)


def test_the_error_never_holds_what_the_agent_wrote() -> None:
    play = Playbook()
    play(agent.starts("r1"))
    (
        play
        >> agent.finishes("r1", {"type": "interrupt", "interrupts": ["secret"]})
        << violated("INVALID_OUTCOME")
    )

    assert "secret" not in str(play.events())
    play >> agent.interrupts("r2", "a") << opened("a")
