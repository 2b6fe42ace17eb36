"""The playbook itself: what it says when a transcript does not read as the test does."""

import pytest
from tests.expected import admitted, opened, refused
from tests.playbook import Playbook, agent, client, later


def test_a_failing_line_is_marked_in_the_whole_transcript() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> client.resumes("r2", a=True)

    with pytest.raises(AssertionError) as failure:
        play << refused("PARTIAL_RESUME")

    lines = str(failure.value).splitlines()
    assert [line[:5] for line in lines if "<<" in line] == ["   <<", " x <<"[:5]] or "x <<" in lines[4]
    assert any("verdict: expected 'refused'" in line for line in lines)


def test_what_nobody_looked_at_must_have_gone_well() -> None:
    play = Playbook()
    play >> client.resumes("r1", a=True)

    with pytest.raises(AssertionError, match="nobody looked: refused UNKNOWN_INTERRUPT_ID"):
        play >> client.asks("r2")


def test_nothing_more_can_be_looked_at_than_was_said() -> None:
    play = Playbook()
    play >> client.asks("r1") << admitted()

    with pytest.raises(AssertionError, match="nothing more was said"):
        play << admitted()


def test_pauses_are_counted_from_one() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a", generation=1)
    play >> agent.interrupts("r1", "b") << opened("b", generation=2, superseded=1)

    assert play.nth(2) == play.nth(1) + 1


def test_time_that_passes_says_only_what_fires() -> None:
    play = Playbook()
    play >> client.asks("r1") << admitted()
    play >> later(minutes=1)

    assert play.silent
