"""Contract 7: expiry never removes a pause; the memory of runs and pauses ends."""

from tests.expected import abandoned, admitted, ignored, opened, refused, violated
from tests.playbook import (
    Playbook,
    agent,
    cancelled,
    client,
    later,
    moment,
    pause_of,
    question,
    run_of,
    sdk,
    team,
)


def expired() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", expiresAt=moment(60))) << opened("a")
    play(later(hours=48))
    return play


def test_an_expired_interrupt_still_blocks() -> None:
    play = expired()
    assert pause_of(play).ids == ("a",)
    play >> client.asks("r2") << refused("PENDING_INTERRUPTS", open=["a"])
    play >> client.resumes("r2", a=True) << refused("INTERRUPT_EXPIRED")


def test_the_way_past_it_is_cancelled() -> None:
    play = expired()
    play >> client.resumes("r2", a=cancelled) << admitted()


def test_or_abandon() -> None:
    play = expired()
    play >> team.abandons(1) << abandoned(1)


# -- memory -------------------------------------------------------------------------------------------------


def test_a_quiet_threads_state_goes_away() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.finishes("r2"))
    play(later(hours=24, seconds=-1))
    assert not play.state().empty
    play(later(seconds=1))
    assert play.state().empty
    assert play.silent


def test_what_ended_is_remembered_for_a_day_each() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"), later(hours=12), client.asks("r2"), sdk.finishes("r2"))
    play(later(hours=12))
    assert [run.run_id for run in play.state().ended] == ["r2"]


def test_until_then_an_event_of_it_is_an_echo_and_from_then_on_unknown() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"), later(hours=23))
    play >> sdk.finishes("r1") << ignored(emitted=[])
    play(later(hours=2))
    play >> sdk.finishes("r1") << violated("STALE_RUN")


def test_forgetting_touches_neither_the_pause_nor_the_run() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), later(hours=25))
    assert play.state().ended == ()
    assert pause_of(play).ids == ("a",)
    play >> client.resumes("r2", a=True) << admitted()
    assert run_of(play).run_id == "r2"


def test_the_generation_goes_on_while_anything_is_remembered() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), later(hours=25), client.resumes("r2", a=True), sdk.finishes("r2"))
    play(client.asks("r3"))
    play >> sdk.interrupts("r3", "b") << opened("b", generation=2)
    assert play.nth(2) == play.nth(1) + 1


def test_forgetting_says_nothing() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"), later(hours=50))
    assert play.silent
