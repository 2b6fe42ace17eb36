"""Row *anything else* of contract 2: passed on as it came; what people will judge is kept."""

import pytest
from tests.expected import ignored, opened, passed
from tests.playbook import Playbook, Said, agent, client, pause_of, question, run_of, sdk

from holdshort.contract.state import Pointer, ToolCall


def running() -> Playbook:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    return play


def test_it_passes_byte_for_byte() -> None:
    play = running()
    raw = ' {"type": "RAW", "n": 1.0e2, "runId": "r1", "x": null} '
    verdict = play.verdict(sdk.says(run="r1").but(value=raw))

    assert verdict.kind == "passed"
    assert verdict.emits[0].value == raw.encode()


def test_its_own_headers_are_kept_but_for_ours_and_traces() -> None:
    play = running()
    headers = {"mine": "1", "traceparent": "2", "tracestate": "3", "baggage": "4", "holdshort-code": "5"}
    play >> agent.says(run="r1").but(headers={"holdshort-run": "r1", **headers}) << passed()
    assert play.emit("events")["headers"] == {"mine": "1", "holdshort-run": "r1"}


def test_the_first_event_of_a_run_is_preceded_by_a_run_started_of_ours() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.says(run="r1") << passed(shown=["RUN_STARTED", "TEXT_MESSAGE_CONTENT"], under=["r1"])
    play >> sdk.says(run="r1") << passed(shown=["TEXT_MESSAGE_CONTENT"])


def test_unknown_types_pass() -> None:
    play = running()
    play >> sdk.event("RUN_PAUSED_SOMEHOW") << passed(shown=["RUN_PAUSED_SOMEHOW"])
    play >> sdk.event("") << passed(shown=[""])


def test_a_text_delta_changes_no_state_but_the_first() -> None:
    play = running()
    play(sdk.says(run="r1"))
    before = play.state()
    play >> sdk.says(run="r1") << passed()
    assert play.state() == before


# -- snapshots ----------------------------------------------------------------------------------------------


def test_pointers_to_the_last_snapshots_are_kept() -> None:
    play = running()
    play(sdk.event("MESSAGES_SNAPSHOT").but(offset=5), sdk.event("MESSAGES_SNAPSHOT").but(offset=6))
    play(sdk.event("STATE_SNAPSHOT").but(offset=7))

    run = run_of(play)
    assert (run.messages, run.state) == (
        Pointer("agent-events.default", 0, 6),
        Pointer("agent-events.default", 0, 7),
    )
    assert not run.messages_changed
    assert not run.state_changed


def test_what_changes_messages_or_state_after_them_is_marked() -> None:
    play = running()
    play(sdk.event("MESSAGES_SNAPSHOT"), sdk.event("STATE_SNAPSHOT"), sdk.event("STEP_STARTED"))
    assert not run_of(play).messages_changed
    assert not run_of(play).state_changed
    play(sdk.event("STATE_DELTA", delta=[]))
    assert not run_of(play).messages_changed
    assert run_of(play).state_changed
    play(sdk.says(run="r1"))
    assert run_of(play).messages_changed


# -- tool calls ---------------------------------------------------------------------------------------------


def test_names_and_arguments_of_tool_calls_are_kept() -> None:
    play = running()
    play(sdk.calls("c", "pay"), sdk.argues("c", '{"eur":'), sdk.calls("d", "mail"), sdk.argues("c", "5}"))
    assert run_of(play).calls == (ToolCall("c", "pay", '{"eur":5}'), ToolCall("d", "mail", ""))


def test_a_call_that_has_its_result_is_not_kept() -> None:
    play = running()
    play(sdk.calls("c", "pay"), sdk.calls("d", "mail"), sdk.results("c"))
    assert [call.call_id for call in run_of(play).calls] == ["d"]


def test_chunks_begin_a_call_and_go_on_with_it() -> None:
    play = running()
    play(
        sdk.event("TOOL_CALL_CHUNK", toolCallId="c", toolCallName="pay", delta="{"),
        sdk.event("TOOL_CALL_CHUNK", toolCallId="c", delta='"a"'),
        sdk.event("TOOL_CALL_CHUNK", delta=":1}"),
    )
    assert run_of(play).calls == (ToolCall("c", "pay", '{"a":1}'),)


def test_a_chunk_of_no_known_call_is_only_a_change() -> None:
    play = running()
    play(sdk.event("TOOL_CALL_CHUNK", delta="x"), sdk.event("TOOL_CALL_CHUNK", toolCallId="z", delta="x"))
    assert run_of(play).calls == ()
    assert run_of(play).messages_changed


def test_chunks_may_name_their_call_every_time() -> None:
    play = running()
    named = {"toolCallId": "c", "toolCallName": "pay"}
    play(*[sdk.event("TOOL_CALL_CHUNK", **named, delta=delta) for delta in ("{", '"a":1', "}")])
    assert run_of(play).calls == (ToolCall("c", "pay", '{"a":1}'),)


def test_a_chunk_with_a_name_but_no_id_begins_nothing() -> None:
    play = running()
    play(sdk.event("TOOL_CALL_CHUNK", toolCallName="pay", delta="{}"))
    assert run_of(play).calls == ()


def test_arguments_of_which_a_part_is_no_text_are_not_shown_in_part() -> None:
    play = running()
    play(sdk.calls("c", "pay"), sdk.argues("c", "{}"))
    play >> sdk.event("TOOL_CALL_ARGS", toolCallId="c", delta=5) << passed()
    play >> sdk.event("TOOL_CALL_ARGS", toolCallId="c") << passed()
    assert run_of(play).calls == (ToolCall("c", "pay", None),)


@pytest.mark.parametrize(
    "change",
    [
        sdk.calls("d", "mail"),
        sdk.event("TOOL_CALL_START"),
        sdk.argues("c", "{}"),
        sdk.argues("z", "{}"),
        sdk.event("TOOL_CALL_CHUNK", delta="x"),
        sdk.results("c"),
        sdk.results("z"),
        sdk.calls("n" * 100_000, "mail"),
    ],
)
def test_whatever_is_said_of_a_call_changes_the_messages(change: Said) -> None:
    play = running()
    play(sdk.calls("c", "pay"), sdk.event("MESSAGES_SNAPSHOT"), change)
    assert run_of(play).messages_changed


def test_a_call_without_a_usable_id_or_name_is_not_kept() -> None:
    play = running()
    for members in ({"toolCallId": "c"}, {"toolCallName": "pay"}, {"toolCallId": " ", "toolCallName": "pay"}):
        play >> sdk.event("TOOL_CALL_START", **members) << passed()
    play >> sdk.event("TOOL_CALL_ARGS", toolCallId="c", delta=5) << passed()
    assert run_of(play).calls == ()


def test_a_call_that_starts_again_begins_anew_in_its_place() -> None:
    play = running()
    play(sdk.calls("c", "pay"), sdk.argues("c", "{}"), sdk.calls("d", "mail"), sdk.calls("c", "refund"))
    assert run_of(play).calls == (ToolCall("c", "refund", ""), ToolCall("d", "mail", ""))


def test_a_result_in_the_answering_run_marks_the_interrupt_attempted() -> None:
    play = running()
    play(sdk.calls("c", "pay"), sdk.interrupts("r1", question("a", toolCallId="c"), question("b")))
    play(client.resumes("r2", a=True, b=True), sdk.starts("r2"))
    play >> sdk.results("c", run="r2") << passed(status="resuming")
    assert pause_of(play).attempted == ("a",)


def test_an_answering_run_that_shows_nothing_first_marks_it_too() -> None:
    play = running()
    play(sdk.calls("c", "pay"), sdk.interrupts("r1", question("a", toolCallId="c")))
    play(client.resumes("r2", a=True))
    play >> sdk.results("c", run="r2") << passed(shown=["RUN_STARTED", "TOOL_CALL_RESULT"])
    assert pause_of(play).attempted == ("a",)


def test_nothing_of_a_passed_event_reaches_another_runs_state() -> None:
    play = running()
    play >> sdk.interrupts("r1", "a") << opened("a")
    play >> sdk.says(run="r1") << ignored(emitted=[])
