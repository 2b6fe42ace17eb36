"""Row *interrupted run runs on* of contract 2: whatever else the run says whose pause is there."""

import pytest
from tests.expected import ignored, settled
from tests.playbook import Playbook, agent, cancelled, client, pause_of, question, run_of, sdk

from holdshort.contract.state import Context, Pointer

UNSEEN = ignored(emitted=[], open=["a"], generation=1)


def paused(**members: object) -> Playbook:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), sdk.calls("c", "pay"))
    play(sdk.interrupts("r1", question("a", toolCallId="c", **members)))
    return play


def test_nothing_it_says_is_shown() -> None:
    play = paused()
    play >> sdk.says(run="r1") << UNSEEN
    play >> sdk.starts("r1") << UNSEEN
    play >> sdk.fails("r1") << UNSEEN
    play >> sdk.beats("r1") << UNSEEN


@pytest.mark.parametrize("outcome", [None, {"type": "success"}, {"type": "cancelled"}, {"type": "novel"}])
def test_a_success_would_make_clients_forget_what_is_open(outcome: object) -> None:
    play = paused()
    play >> sdk.finishes("r1", outcome) << UNSEEN
    assert play.pending() == {"a"}


def test_a_malformed_outcome_is_a_dead_letter_too() -> None:
    play = paused()
    (
        play
        >> sdk.interrupts("r1")
        << ignored(code="INVALID_OUTCOME", emitted=["dead-letters"], open=["a"], generation=1)
    )


def test_a_malformed_outcome_while_resuming_is_a_dead_letter_too() -> None:
    play = paused()
    play(client.resumes("r2", a=True))
    (
        play
        >> sdk.interrupts("r1")
        << ignored(code="INVALID_OUTCOME", emitted=["dead-letters"], status="resuming")
    )


def test_everything_of_it_is_ignored_while_resuming() -> None:
    play = paused()
    play(client.resumes("r2", a=True))
    unseen = ignored(emitted=[], status="resuming", generation=1)

    play >> sdk.interrupts("r1", question("a", toolCallId="c")) << unseen
    play >> sdk.interrupts("r1", "z") << unseen
    play >> sdk.finishes("r1") << unseen
    play >> sdk.fails("r1") << unseen
    play >> sdk.says(run="r1") << unseen
    play >> sdk.finishes("r2") << settled(1)


def test_its_tool_calls_are_kept_in_the_pause() -> None:
    play = paused()
    play >> sdk.calls("d", "mail") << UNSEEN
    play >> sdk.argues("d", "{}") << UNSEEN

    assert [(call.call_id, call.name, call.args) for call in pause_of(play).calls] == [
        ("c", "pay", ""),
        ("d", "mail", "{}"),
    ]


def test_a_run_that_answers_starts_with_the_calls_kept_since() -> None:
    play = paused()
    play(sdk.calls("d", "mail"), client.resumes("r2", a=True))

    assert [call.name for call in run_of(play).calls] == ["pay", "mail"]


def snapshot_taken() -> Playbook:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), sdk.interrupts("r1", "a"))
    assert pause_of(play).context.complete
    return play


def test_its_snapshots_are_kept_in_the_pause() -> None:
    play = snapshot_taken()
    play >> sdk.event("MESSAGES_SNAPSHOT", messages=[]).but(offset=40) << UNSEEN
    play >> sdk.event("STATE_SNAPSHOT", snapshot={}).but(offset=50) << UNSEEN

    events = "agent-events.default"
    assert pause_of(play).context == Context(
        input=Pointer("inputs", 0, 0),
        messages=Pointer(events, 0, 40),
        state=Pointer(events, 0, 50),
        complete=True,
    )


def test_what_follows_the_snapshots_makes_them_incomplete() -> None:
    play = snapshot_taken()
    play(sdk.event("MESSAGES_SNAPSHOT", messages=[]))
    assert pause_of(play).context.complete

    play >> sdk.says(run="r1") << UNSEEN

    assert not pause_of(play).context.complete


def test_a_context_that_was_incomplete_stays_so() -> None:
    """A change of state that no snapshot holds is not known again by a snapshot of messages."""
    play = Playbook()
    play(client.asks("r1"), sdk.event("STATE_DELTA", delta=[]), sdk.interrupts("r1", "a"))

    play >> sdk.event("MESSAGES_SNAPSHOT", messages=[]) << UNSEEN
    assert not pause_of(play).context.complete


def test_an_event_over_the_limit_makes_the_context_incomplete() -> None:
    play = snapshot_taken()
    play >> sdk.says("x" * 1024 * 1024, run="r1") << UNSEEN
    assert not pause_of(play).context.complete


def test_a_result_marks_its_interrupt_attempted() -> None:
    play = paused()
    play >> sdk.results("c") << UNSEEN
    assert pause_of(play).attempted == ("a",)
    assert pause_of(play).calls == ()

    play >> sdk.results("c") << UNSEEN
    assert pause_of(play).attempted == ("a",)


def test_a_result_while_resuming_marks_its_interrupt_attempted() -> None:
    play = paused()
    play(client.resumes("r2", a=True))
    play >> sdk.results("c") << ignored(emitted=[], status="resuming")
    assert pause_of(play).attempted == ("a",)


def test_nothing_but_a_result_marks_it() -> None:
    play = paused()
    for said in (sdk.argues("c", "{}"), sdk.calls("c", "pay"), sdk.event("TOOL_CALL_END", toolCallId="c")):
        play >> said << UNSEEN
    assert pause_of(play).attempted == ()


def test_results_for_blank_calls_mark_nothing() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", question("a", toolCallId=" ")))
    play >> sdk.results(" ") << UNSEEN
    assert pause_of(play).attempted == ()


def test_an_event_of_which_nothing_is_kept_changes_nothing() -> None:
    play = paused()
    play(sdk.says(run="r1"))
    before = play.state()
    play >> sdk.says(run="r1") << UNSEEN
    assert play.state() == before


def test_it_does_not_disturb_the_answer() -> None:
    play = paused()
    play(sdk.finishes("r1"), client.resumes("r2", a=cancelled))
    play >> agent.says(run="r1") << ignored(emitted=[])
    play >> sdk.finishes("r2") << settled(1)
