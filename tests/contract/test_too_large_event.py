"""Row *too large* of contract 2: any other event over the limit."""

from tests.expected import passed, violated
from tests.playbook import Playbook, client, pause_of, question, run_of, sdk

HUGE = "x" * 1024 * 1024


def test_it_is_a_dead_letter_and_not_shown() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.says(HUGE, run="r1") << violated("TOO_LARGE", emitted=["dead-letters"], dead=["TOO_LARGE"])


def test_the_run_goes_on_and_its_lease_is_renewed() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.says(HUGE, run="r1") << violated("TOO_LARGE")
    assert run_of(play).seen_at == play.at
    play >> sdk.starts("r1") << passed(shown=["RUN_STARTED"])


def test_the_context_is_incomplete_until_both_snapshots_come() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.says(HUGE, run="r1") << violated("TOO_LARGE")
    play(sdk.event("MESSAGES_SNAPSHOT", messages=[]), sdk.interrupts("r1", "a"))
    assert not pause_of(play).context.complete


def test_each_of_them_is_needed() -> None:
    for snapshot in ("MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"):
        play = Playbook()
        play(client.asks("r1"), sdk.starts("r1"))
        play >> sdk.says(HUGE, run="r1") << violated("TOO_LARGE")
        play(sdk.event(snapshot))
        assert run_of(play).messages_changed is (snapshot == "STATE_SNAPSHOT")
        assert run_of(play).state_changed is (snapshot == "MESSAGES_SNAPSHOT")


def test_with_both_snapshots_after_it_the_context_is_whole_again() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.says(HUGE, run="r1") << violated("TOO_LARGE")
    play(sdk.event("MESSAGES_SNAPSHOT", messages=[]), sdk.event("STATE_SNAPSHOT"), sdk.interrupts("r1", "a"))
    assert pause_of(play).context.complete


def test_a_snapshot_over_the_limit_is_not_pointed_at() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.event("STATE_SNAPSHOT", snapshot=HUGE) << violated("TOO_LARGE")
    assert run_of(play).state is None
    assert run_of(play).state_changed


def test_a_result_over_the_limit_marks_its_interrupt_attempted_all_the_same() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.interrupts("r1", question("a", toolCallId="c")))
    play(client.resumes("r2", a=True), sdk.starts("r2"))
    play >> sdk.results("c", run="r2").adding(content=HUGE) << violated("TOO_LARGE")
    assert pause_of(play).attempted == ("a",)
