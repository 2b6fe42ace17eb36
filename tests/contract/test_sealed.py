"""Row *sealed* of contract 3: the pause was opened beyond the limit of open pauses."""

from tests.expected import abandoned, admitted, opened, quietly_refused, refused, replayed
from tests.playbook import Playbook, agent, client, pause_of, sdk, team

from holdshort.contract.rules import Limits

SEALED = refused("TOO_MANY_PAUSES", open=[], status="open")


def sealed() -> Playbook:
    play = Playbook(limits=Limits(open_pauses=0))
    play >> agent.interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES", generation=1)
    return play


def test_every_input_is_refused() -> None:
    play = sealed()
    play >> client.asks("r2") << SEALED
    play >> client.asks("r3", resume=[]) << SEALED
    play >> client.resumes("r4", a=True) << SEALED
    play >> client.resumes("r5", a=True).echoing(1) << SEALED


def test_it_is_not_retryable() -> None:
    play = sealed()
    play >> client.resumes("r2", a=True) << SEALED
    assert play.error()["retryable"] is False
    assert play.error()["open"] == []


def test_a_late_repetition_of_the_input_that_led_to_it_is_not_retryable_either() -> None:
    play = Playbook(limits=Limits(open_pauses=0))
    play(client.asks("r1"))
    play >> sdk.interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES")
    play >> client.asks("r1").but(at=play.at - 1) << replayed("TOO_MANY_PAUSES")
    assert play.error()["retryable"] is False


def test_the_router_learns_of_it_in_the_pause() -> None:
    play = sealed()
    play >> team.resumes("hs-1", a=True) << quietly_refused("TOO_MANY_PAUSES", emitted=[])
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert refusal.code == "TOO_MANY_PAUSES"


def test_abandon_ends_it() -> None:
    play = sealed()
    play >> team.abandons(1) << abandoned(1)
    play >> client.asks("r2") << admitted()
