"""Row *forget* (decisions/0002): an operator has a thread forgotten, what is open included."""

from tests.expected import (
    Expected,
    abandoned,
    admitted,
    duplicate,
    forgotten,
    ignored,
    opened,
    refused,
    violated,
)
from tests.playbook import Playbook, agent, cancelled, client, pause_of, sdk, team

from holdshort.contract.state import NOTHING

STALE = Expected("refused", "STALE_BINDING", emitted=[])


def test_what_ran_and_what_was_asked_is_remembered_no_more() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.finishes("r2"))
    assert play.state().gone

    play >> team.forgets() << forgotten(None, code=None, emitted=[])
    assert play.state().empty


def test_an_open_pause_is_abandoned_and_its_client_told() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    told = ["RUN_STARTED", "RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"]
    play >> team.forgets(1) << forgotten(1, code="ABANDONED", shown=told)

    assert play.events()[1]["code"] == "ABANDONED"
    assert play.pending() == set()
    assert play.state().empty


def test_run_and_pause_end_together() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    told = ["RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"]
    play >> team.forgets(1) << forgotten(1, code="ABANDONED", shown=told)
    assert play.state().empty


def test_a_run_alone_is_named_by_its_admission() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> team.forgets().having(admission="inputs/0/7") << STALE
    stop = team.forgets().having(admission="inputs/0/0")
    play >> stop << forgotten(None, code="ABANDONED", shown=["RUN_ERROR"], under=["r1"])
    assert play.state().empty


def test_a_question_that_its_author_has_not_seen_is_not_forgotten() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> team.forgets() << STALE
    play >> team.forgets(7) << STALE
    play >> team.forgets().having(generation="x") << STALE
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert refusal.code == "STALE_BINDING"
    play >> client.resumes("r2", a=True) << admitted()


def test_a_run_that_its_author_has_not_seen_is_not_forgotten() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> team.forgets() << STALE
    play >> team.forgets(1) << STALE
    assert play.state().run is not None


def test_what_is_over_already_is_not_taken_for_what_was_meant() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"))
    play >> team.forgets().having(admission="inputs/0/0") << STALE
    play >> team.forgets(1) << STALE
    assert play.state().ended


def test_a_repeated_forget_is_a_duplicate() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> team.forgets(1) << forgotten(1)
    play >> team.forgets(1) << duplicate
    play >> team.forgets() << duplicate


def test_an_input_of_before_is_new_again() -> None:
    play = Playbook()
    asked = client.asks("r1")
    play(asked, sdk.finishes("r1"))
    play >> team.forgets() << forgotten()
    play >> asked.but(after=-1) << admitted()


def test_an_answer_of_before_answers_nothing() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> team.forgets(1) << forgotten(1)
    play >> client.resumes("r2", a=True) << refused("UNKNOWN_INTERRUPT_ID")
    play >> client.resumes("r3", a=cancelled).echoing(1) << refused("UNKNOWN_INTERRUPT_ID")


def test_an_answer_of_before_does_not_fit_the_next_question() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    before = play.state().generation
    play >> team.forgets(1) << forgotten(1)
    play >> agent.interrupts("r3", "a") << opened("a")
    assert play.state().generation > before
    play >> client.resumes("r4", a=True).echoing(1) << refused("STALE_BINDING")


def test_what_its_agent_still_says_of_a_forgotten_run_is_not_shown() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> team.forgets().having(admission="inputs/0/0") << forgotten(code="ABANDONED")
    play >> sdk.says("r1") << ignored()
    play >> sdk.interrupts("r1", "a") << violated("STALE_RUN", emitted=["dead-letters"])
    assert play.state() == NOTHING


def test_a_client_cannot_have_a_thread_forgotten() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> team.forgets(1).but(topic="inputs").adding(runId="r2") << refused("PENDING_INTERRUPTS")
    play >> team.abandons(1) << abandoned(1)
