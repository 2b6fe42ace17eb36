"""Row *resume of nothing* of contract 3: no pause; any other resume."""

from tests.expected import admitted, duplicate, refused
from tests.playbook import Playbook, agent, client, run_of, sdk

NOTHING = refused("UNKNOWN_INTERRUPT_ID", about=["a"], generation=None)


def test_a_resume_where_nothing_is_open_is_refused() -> None:
    play = Playbook()
    play >> client.resumes("r1", a=True) << NOTHING
    assert play.state().empty


def test_a_binding_does_not_make_it_an_answer() -> None:
    play = Playbook()
    play >> client.resumes("r1", a=True).echoing(3) << NOTHING


def test_ids_of_a_pause_that_is_gone_are_another_matter() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.finishes("r2"))
    play >> client.resumes("r3", b=True) << refused("UNKNOWN_INTERRUPT_ID")
    play >> client.resumes("r3", a=False) << refused("RESUME_CONFLICT")


def test_a_gate_put_before_agents_that_already_pause_lets_it_pass() -> None:
    play = Playbook(cold_resume="forward")
    play >> client.resumes("r1", a=True) << admitted()
    assert run_of(play).answers is None
    play >> client.resumes("r1", a=True) << duplicate


def test_forwarded_it_goes_to_the_agent_that_a_header_names() -> None:
    play = Playbook(cold_resume="forward", agents=["default", "other"])
    play >> client.resumes("r1", a=True).having(agent="other") << admitted(to="other")


def test_forwarding_cold_does_not_let_past_answers_pass() -> None:
    play = Playbook(cold_resume="forward")
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.finishes("r2"))
    play >> client.resumes("r3", a=False) << refused("RESUME_CONFLICT")


def test_a_run_that_was_not_gated_may_be_answered() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.pauses_legacy("sure?"), sdk.finishes("r1"))
    play >> client.resumes("r2", a=True) << admitted()
