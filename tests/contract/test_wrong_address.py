"""Row *wrong address* of contract 3: on `resumes`, what is meant for another pause or run than is there."""

import pytest
from tests.expected import (
    abandoned,
    admitted,
    duplicate,
    opened,
    quietly_refused,
    reopened,
    replayed,
    settled,
)
from tests.playbook import Playbook, agent, client, pause_of, sdk, team

STALE = quietly_refused("STALE_BINDING", emitted=[])


def open_a() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r0", "a") << opened("a")
    return play


# -- resumes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", ["", " ", "x", "-1", "1.0", "1e3", "٣", "9" * 5000])
def test_a_resume_names_the_generation_of_the_pause(generation: str) -> None:
    play = open_a()
    play >> team.resumes("hs-1", a=True).having(generation=generation) << STALE


def test_a_generation_in_other_digits_is_another() -> None:
    play = open_a()
    arabic = str(play.nth(1)).translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))
    play >> team.resumes("hs-1", a=True).having(generation=arabic) << STALE


def test_a_resume_without_a_generation_is_refused() -> None:
    play = open_a()
    play >> team.resumes("hs-1", a=True).but(headers={}) << STALE


def test_a_resume_for_another_generation_is_refused_and_told_in_the_pause() -> None:
    play = open_a()
    play(agent.interrupts("r0", "b"))
    play >> team.resumes("hs-1", b=True, generation=1) << STALE

    refusal = pause_of(play).refusal
    assert refusal is not None
    assert refusal.code == "STALE_BINDING"
    play >> team.resumes("hs-2", b=True, generation=2) << admitted()


def test_a_resume_where_no_pause_is_there_is_refused() -> None:
    play = Playbook()
    play >> team.resumes("hs-1", a=True) << STALE
    assert play.state().empty


def test_the_very_resume_that_settled_a_pause_is_a_duplicate() -> None:
    play = open_a()
    answer = team.resumes("hs-1", a=True)
    play >> answer << admitted()
    play(sdk.finishes("hs-1"))

    play >> answer << duplicate
    play >> team.resumes("hs-2", a=True) << STALE


def test_under_another_generation_it_is_not() -> None:
    play = open_a()
    answer = team.resumes("hs-1", a=True)
    play(answer, sdk.finishes("hs-1"))
    play >> answer.having(generation=7) << STALE


def test_the_very_resume_of_a_pause_that_was_abandoned_settled_nothing() -> None:
    play = open_a()
    answer = team.resumes("hs-1", a=True)
    play(answer)
    play >> team.abandons(1) << abandoned(1)
    play >> answer << STALE


def test_it_stays_a_duplicate_whatever_is_open_now() -> None:
    play = open_a()
    answer = team.resumes("hs-1", a=True)
    play >> answer << admitted()
    play >> sdk.interrupts("hs-1", "a") << opened("a", generation=2, settled=1)

    play >> answer << duplicate


def test_the_very_resume_that_is_with_the_agent_is_a_duplicate() -> None:
    play = open_a()
    answer = team.resumes("hs-1", a=True)
    play >> answer << admitted()
    play >> answer << duplicate


def test_the_very_resume_of_a_run_that_failed_is_a_retry_if_it_was_written_after() -> None:
    play = open_a()
    answer = team.resumes("hs-1", a=True)
    play(answer, sdk.fails("hs-1"))
    play >> answer.but(at=play.at - 1, after=0) << replayed(open=["a"])
    play >> answer << admitted()


# -- abandon ------------------------------------------------------------------------------------------------


def test_an_abandon_that_names_another_generation_is_refused() -> None:
    play = open_a()
    play >> team.abandons(7) << STALE
    play >> team.abandons(1).having(generation="x") << STALE


def test_an_abandon_without_a_generation_is_refused_while_a_pause_is_there() -> None:
    play = open_a()
    play >> team.abandons().having(run="r0") << STALE
    play(client.resumes("r1", a=True))
    (
        play
        >> team.abandons().having(admission="inputs/0/0")
        << quietly_refused("STALE_BINDING", status="resuming")
    )


def test_an_abandon_of_a_run_names_its_admission() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> team.abandons() << STALE
    play >> team.abandons().having(admission="inputs/0/1") << STALE
    play >> team.abandons().having(run="r1") << STALE
    play >> team.abandons().having(admission="inputs/0/0") << abandoned()


def test_an_abandon_of_an_outside_run_names_its_id() -> None:
    play = Playbook()
    play(agent.starts("x"))
    play >> team.abandons() << STALE
    play >> team.abandons().having(run="y") << STALE
    play >> team.abandons().having(admission="inputs/0/0") << STALE
    play >> team.abandons().having(run="x") << abandoned()


def test_an_abandon_of_nothing_is_refused() -> None:
    play = Playbook()
    play >> team.abandons() << STALE
    play >> team.abandons(1) << STALE
    play >> team.abandons().having(run="x") << STALE


def test_a_repeated_abandon_of_a_pause_is_a_duplicate() -> None:
    play = open_a()
    play >> team.abandons(1) << abandoned(1)
    play >> team.abandons(1) << duplicate
    play(client.asks("r1"), sdk.interrupts("r1", "b"))
    play >> team.abandons(1) << duplicate
    play >> team.abandons(2) << abandoned(2)


def test_an_abandon_of_a_pause_that_was_settled_is_no_repetition() -> None:
    play = open_a()
    play(client.resumes("r1", a=True))
    play >> sdk.finishes("r1") << settled(1)
    play >> team.abandons(1) << STALE


def test_a_repeated_abandon_of_a_run_is_a_duplicate() -> None:
    play = Playbook()
    play(client.asks("r1"))
    stop = team.abandons().having(admission="inputs/0/0")
    play >> stop << abandoned()
    play >> stop << duplicate


def test_an_abandon_of_another_run_is_no_repetition() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> team.abandons().having(admission="inputs/0/0") << abandoned()
    play >> team.abandons().having(admission="inputs/0/7") << STALE


def test_it_stays_a_duplicate_when_newer_runs_have_come_and_gone() -> None:
    play = Playbook()
    play(client.asks("r1"))
    stop = team.abandons().having(admission="inputs/0/0")
    play >> stop << abandoned()
    play(client.asks("r2"))
    play >> stop << duplicate
    play(sdk.finishes("r2"))
    play >> stop << duplicate


def test_an_abandon_by_a_client_is_just_an_input() -> None:
    play = Playbook()
    play >> team.abandons(1).but(topic="inputs").adding(runId="r1") << admitted()
    play(sdk.fails("r1"), agent.interrupts("r2", "a"))
    play >> client.resumes("r3", a=True).having(action="abandon") << admitted()
    play >> sdk.fails("r3") << reopened("a")
