"""Row *same input late* of contract 3: the input of a run that has ended, written before it had."""

import pytest
from tests.expected import admitted, lost, opened, quietly_refused, refused, replayed
from tests.playbook import Playbook, Said, agent, client, later, sdk, team


def late(play: Playbook, said: Said) -> Said:
    """The record as if it had been written just before the last one."""
    return said.but(at=play.at - 1, after=0)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (sdk.finishes("r1"), "success"),
        (sdk.finishes("r1", {"type": "cancelled"}), "cancelled"),
        (sdk.fails("r1"), "error"),
    ],
)
def test_it_is_not_forwarded_again_and_the_caller_sees_how_it_ended(end: Said, outcome: str) -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), end)
    (
        play
        >> late(play, client.asks("r1"))
        << replayed(emitted=["events", "events"], shown=["RUN_STARTED", "RUN_FINISHED"], under=["r1"])
    )
    assert play.events()[1]["metadata"]["holdshort"] == {"generation": None, "outcome": outcome}


def test_what_is_open_now_is_shown() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.interrupts("r1", "a") << opened("a")
    shown_then = play.events()[1]["outcome"]
    play >> late(play, client.asks("r1")) << replayed(shown=["RUN_STARTED", "RUN_FINISHED"], open=["a"])
    assert play.events()[1]["outcome"] == shown_then


def test_a_late_resume_of_a_run_that_was_lost_is_not_forwarded_again() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"), client.resumes("r1", a=True))
    play >> later(minutes=16) << lost()
    play >> late(play, client.resumes("r1", a=True)).but(at=play.at - 90_000) << replayed(open=["a"])


def test_written_after_the_run_had_ended_it_is_a_new_input() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"))
    play >> client.asks("r1") << admitted()


def test_written_in_the_very_millisecond_of_the_end_it_is_new() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"))
    play >> client.asks("r1").but(after=0) << admitted()


def test_while_another_run_is_in_flight_the_caller_is_told_to_wait() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"), client.asks("r2").but(after=0))
    at = play.at
    play(sdk.starts("r2"), sdk.finishes("r2"), client.asks("r3").but(at=at))
    play >> client.asks("r2").but(at=at) << replayed("THREAD_BUSY", shown=["RUN_STARTED", "RUN_ERROR"])
    assert play.error()["retryable"] is True


def test_under_the_id_of_the_run_in_flight_nothing_is_shown() -> None:
    play = Playbook()
    play(client.asks("r1"))
    at = play.at
    play(sdk.finishes("r1"), client.asks("r1", other=1).but(at=at))
    play >> client.asks("r1").but(at=at) << replayed(emitted=[])


def test_from_resumes_it_is_replayed_too_for_only_refusals_are_not_shown_there() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"), team.resumes("hs-1", a=True), sdk.fails("hs-1"))
    told = replayed(shown=["RUN_STARTED", "RUN_FINISHED"], under=["hs-1"], open=["a"])
    play >> late(play, team.resumes("hs-1", a=True)) << told


def test_a_late_input_with_one_other_byte_is_another_input() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"))
    play >> late(play, client.asks("r1", other=1)) << refused("PENDING_INTERRUPTS")


def test_it_changes_nothing() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"))
    before = play.state()
    play >> late(play, client.asks("r1")) << replayed()
    assert play.state() == before


def test_under_the_run_in_flight_a_refusal_is_not_shown_either() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> client.asks("r1", other=1) << quietly_refused("RUN_ID_IN_USE", dead=["RUN_ID_IN_USE"])
