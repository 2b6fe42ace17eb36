"""The promises of contract 8, kept in every history that can be generated.

`HOLDSHORT_TEST_PROFILE=thorough` searches for longer.
"""

import random
from collections import defaultdict
from typing import Any

import msgspec
import orjson
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.histories import HISTORIES, History, Step, address, plain_rules, strict_rules
from tests.readers import ENDS, Reader

from holdshort.contract.rules import Rules, World
from holdshort.contract.state import NOTHING, ThreadState
from holdshort.contract.thread import bounded, decide, evolve, next_due
from holdshort.contract.verdicts import Verdict
from holdshort.gatekeeper.transcript import Line, Transcript

RULES = st.sampled_from([plain_rules(), strict_rules()])
CHANGES_NOTHING = ("refused", "duplicate", "replayed", "unreadable")
FAR = 10**12


def verdict_on(history: History, record: Line) -> tuple[Verdict, ThreadState]:
    """What would be said of one more record, and the state after it; the history does not go on."""
    state = history.gate.threads.get(record.key, NOTHING)
    world = World(clock=record.timestamp)
    verdict = decide(state, record, record.timestamp, world, history.gate.rules)
    return verdict, evolve(state, verdict.changes)


def one_more(history: History, topic: str, thread: str, value: Any, **headers: Any) -> Line:
    told = tuple((f"holdshort-{name}", str(text).encode()) for name, text in headers.items())
    return Line(topic, 0, FAR, thread.encode(), orjson.dumps(value), told, history.at + 1)


def of_inputs(step: Step) -> bool:
    return step.record is not None and step.record.topic in ("inputs", "resumes")


# -- what is refused, and what is admitted ------------------------------------------------------------------


@given(source=HISTORIES, given_rules=RULES)
def test_a_refused_input_changes_nothing_but_the_refusal(source: list[bytes], given_rules: Rules) -> None:
    for step in History(given_rules).play(source):
        if step.answer is None or not of_inputs(step) or step.answer["verdict"] not in CHANGES_NOTHING:
            continue
        after = step.after
        if after.pause is not None and step.before.pause is not None:
            pause = msgspec.structs.replace(after.pause, refusal=step.before.pause.refusal)
            after = msgspec.structs.replace(after, pause=pause)
        assert after == step.before
        assert step.after == step.before or (step.record and step.record.topic == "resumes")


@given(source=HISTORIES, given_rules=RULES)
def test_no_unanswered_pause_is_passable(source: list[bytes], given_rules: Rules) -> None:
    history = History(given_rules)
    for step in history.play(source):
        if step.answer is None or step.answer["verdict"] != "admitted":
            continue
        value = history.lines[-1]["value"]
        (emit,) = step.answer["emits"]
        assert emit["value"] == value
        assert step.before.run is None
        if step.before.pause is not None:
            answered = [entry["interruptId"] for entry in value["resume"]]
            assert sorted(answered) == sorted(step.before.pause.ids)
            assert emit["topic"] == f"runs.{step.before.pause.agent}"
            assert not step.before.pause.sealed


@given(source=HISTORIES, given_rules=RULES)
def test_no_answer_is_admitted_for_a_pause_that_its_author_cannot_have_seen(
    source: list[bytes], given_rules: Rules
) -> None:
    """Below the inputs end, or for another generation than it says, a batch never counts."""
    history = History(given_rules)
    opened_when: dict[tuple[str, int], int] = {}
    for step in history.play(source):
        line = history.lines[-1]
        pause = step.before.pause
        if step.after.pause is not None and step.answer is not None:
            opened_when.setdefault((line["key"], step.after.pause.generation), history.inputs_written)
        if step.answer is None or step.answer["verdict"] != "admitted" or pause is None:
            continue
        if line["topic"] == "inputs":
            assert line["offset"] >= opened_when[line["key"], pause.generation]
        for entry in line["value"]["resume"]:
            binding = entry.get("metadata", {}).get("holdshort:binding", {})
            assert binding.get("generation", pause.generation) == pause.generation


# -- what is in flight, and how it ends ---------------------------------------------------------------------


@given(source=HISTORIES, given_rules=RULES)
def test_no_admitted_input_stays_unanswered(source: list[bytes], given_rules: Rules) -> None:
    """Whenever a run ends its end is shown, and every run ends, if only because its lease does."""
    history = History(given_rules)
    for step in history.play(source):
        run = step.before.run
        if step.answer is not None and run is not None and step.after.run is None:
            ends = [
                emit["headers"]["holdshort-run"]
                for emit in step.answer["emits"]
                if emit["topic"] == "events" and emit["value"]["type"] in ENDS
            ]
            assert run.run_id in ends
    for answer in history.gate.play({"at": history.at + 10**7}):
        assert answer["verdict"] == "lost"
        assert answer["emits"][-1]["value"]["type"] == "RUN_ERROR"
    assert all(state.run is None for state in history.gate.threads.values())


@given(source=HISTORIES, given_rules=RULES)
def test_there_is_no_thread_that_nobody_can_free(source: list[bytes], given_rules: Rules) -> None:
    history = History(given_rules)
    for step in history.play(source):
        if step.record is None or step.record.key is None or step.after.empty:
            continue
        thread, state = step.record.key.decode(), step.after
        if state.run is None and state.pause is None:
            continue
        names = {name.removeprefix("holdshort-"): text for name, text in address(state).items()}
        value = {"threadId": thread, "runId": "hs-free"}
        verdict, after = verdict_on(
            history, one_more(history, "resumes", thread, value, action="abandon", **names)
        )
        assert verdict.kind == "settled"
        assert after.run is None
        assert after.pause is None


@given(source=HISTORIES, given_rules=RULES)
def test_a_pause_is_resuming_exactly_while_a_run_answers_it(source: list[bytes], given_rules: Rules) -> None:
    history = History(given_rules)
    for _ in history.play(source):
        for state in history.gate.threads.values():
            if state.pause is not None:
                assert (state.pause.status == "resuming") == (state.run is not None)
                if state.run is not None:
                    assert state.run.answers == state.pause.generation
            elif state.run is not None:
                assert state.run.answers is None


@given(source=HISTORIES, given_rules=RULES)
def test_a_generation_is_never_used_again(source: list[bytes], given_rules: Rules) -> None:
    history = History(given_rules)
    last: dict[Any, int] = defaultdict(int)
    for step in history.play(source):
        if step.answer is not None and step.answer["verdict"] == "opened":
            key = history.lines[-1]["key"]
            assert step.answer["generation"] > last[key]
            last[key] = step.answer["generation"]


# -- replays ------------------------------------------------------------------------------------------------


@given(source=HISTORIES, given_rules=RULES)
def test_a_replay_of_what_is_in_flight_is_harmless_at_any_moment(
    source: list[bytes], given_rules: Rules
) -> None:
    history = History(given_rules)
    admitted: dict[tuple[str, str], dict[str, Any]] = {}
    for step in history.play(source):
        line = history.lines[-1]
        if step.answer is not None and step.answer["verdict"] == "admitted":
            place = (
                f"{line['topic']}/0/{step.answer['emits'][0]['headers']['holdshort-admission'].split('/')[2]}"
            )
            admitted[line["key"], place] = line
        for (thread, place), original in admitted.items():
            run = history.state(thread).run
            if run is None or str(run.admission) != place:
                continue
            headers = {
                name.removeprefix("holdshort-"): text for name, text in original.get("headers", {}).items()
            }
            again = one_more(history, original["topic"], thread, original["value"], **headers)
            again = again._replace(value=orjson.dumps(original["value"]))
            verdict, after = verdict_on(history, again)
            assert verdict.kind in ("duplicate", "refused")
            assert not [emit for emit in verdict.emits if emit.topic.startswith("runs.")]
            assert after.run == run


@given(source=HISTORIES, given_rules=RULES)
def test_an_addressed_answer_never_answers_another_question(source: list[bytes], given_rules: Rules) -> None:
    """A batch that answered a pause, said again with its binding, is not forwarded once that is gone."""
    history = History(given_rules)
    batches: dict[tuple[str, int], Any] = {}
    for step in history.play(source):
        line = history.lines[-1]
        if step.answer is not None and step.answer["verdict"] == "admitted" and step.before.pause is not None:
            batches[line["key"], step.before.pause.generation] = line["value"]["resume"]
        for (thread, generation), resume in batches.items():
            if generation not in [gone.generation for gone in history.state(thread).gone]:
                continue
            binding = {"metadata": {"holdshort:binding": {"generation": generation}}}
            bound = [entry | binding for entry in resume]
            value = {"threadId": thread, "runId": "again", "resume": bound}
            verdict, after = verdict_on(history, one_more(history, "inputs", thread, value))
            assert verdict.kind in ("replayed", "refused")
            assert after == history.state(thread)


@given(source=HISTORIES, given_rules=RULES)
def test_an_event_of_a_past_run_said_again_opens_ends_and_shows_nothing(
    source: list[bytes], given_rules: Rules
) -> None:
    """For agents that echo; the others are not safe against repeats of their own events."""
    history = History(given_rules)
    for step in history.play(source):
        if step.record is None:
            continue
        for line in history.events[-6:]:
            echo, thread = line["headers"].get("holdshort-admission"), line["key"]
            state = history.state(thread)
            alive = [owner.admission for owner in (state.run, state.pause) if owner is not None]
            alive += [ended.admission for ended in state.ended[:1] if ended.lost is not None]
            if echo is None or echo in [str(one) for one in alive]:
                continue
            headers = {name.removeprefix("holdshort-"): text for name, text in line["headers"].items()}
            verdict, after = verdict_on(
                history, one_more(history, line["topic"], thread, line["value"], **headers)
            )
            assert [emit for emit in verdict.emits if emit.topic == "events"] == []
            assert after.run == state.run
            assert (after.pause and after.pause.generation) == (state.pause and state.pause.generation)


# -- what clients see ---------------------------------------------------------------------------------------


@given(source=HISTORIES, given_rules=RULES)
def test_whatever_an_agent_does_what_is_shown_is_well_framed(source: list[bytes], given_rules: Rules) -> None:
    reader = Reader()
    for step in History(given_rules).play(source):
        for answer in step.said:
            reader.read(answer["emits"])


@given(source=HISTORIES, given_rules=RULES)
def test_a_client_that_reads_everything_agrees_with_the_gate_whenever_the_thread_is_quiet(
    source: list[bytes], given_rules: Rules
) -> None:
    reader, history = Reader(), History(given_rules)
    for step in history.play(source):
        for answer in step.said:
            reader.read(answer["emits"])
        for key, state in history.gate.threads.items():
            if state.run is None:
                expected = set(state.pause.ids) if state.pause else set()
                assert reader.pending.get((key or b"").decode(), set()) == expected


@given(source=HISTORIES, given_rules=RULES)
def test_nothing_is_shown_under_the_id_of_the_run_in_flight_but_that_run(
    source: list[bytes], given_rules: Rules
) -> None:
    for step in History(given_rules).play(source):
        run = step.before.run
        if run is None or step.answer is None or not of_inputs(step) or step.answer["verdict"] == "settled":
            continue
        shown = [emit for emit in step.answer["emits"] if emit["topic"] == "events"]
        assert run.run_id not in [emit["headers"]["holdshort-run"] for emit in shown]


# -- restoring, and what must make no difference ------------------------------------------------------------


def replayed_on(given_rules: Rules, lines: list[dict[str, Any]], *, restoring: bool) -> list[Any]:
    gate = Transcript(given_rules)
    answers = []
    for line in lines:
        answers.append(gate.play(line))
        if restoring:
            for key, state in list(gate.threads.items()):
                gate.keep(key, msgspec.json.decode(msgspec.json.encode(state), type=ThreadState))
    return answers


@given(source=HISTORIES, given_rules=RULES)
def test_restoring_equals_having_run(source: list[bytes], given_rules: Rules) -> None:
    history = History(given_rules)
    said = [step.said for step in history.play(source)]
    assert replayed_on(given_rules, history.lines, restoring=True) == said


@given(source=HISTORIES, given_rules=RULES)
def test_judging_again_says_the_same(source: list[bytes], given_rules: Rules) -> None:
    history = History(given_rules)
    said = [step.said for step in history.play(source)]
    assert replayed_on(given_rules, history.lines, restoring=False) == said


def odder(line: dict[str, Any]) -> dict[str, Any]:
    """The line with its entries in another order, and with members that nobody knows."""
    value = dict(line.get("value") or {})
    if "topic" not in line:
        return line
    if isinstance(value.get("resume"), list):
        value["resume"] = [{**entry, "unknown": [1]} for entry in reversed(value["resume"])]
    if isinstance(value.get("outcome"), dict):
        asked = [{**one, "unknown": {"x": 1}} for one in value["outcome"]["interrupts"]]
        value["outcome"] = {"unknown": 1, **value["outcome"], "interrupts": asked}
    return {**line, "value": {"unknown": None, **value}}


def gist(answers: list[Any]) -> list[Any]:
    compared = ("verdict", "code", "generation", "status", "open", "settled", "superseded")
    return [[{name: one[name] for name in compared} for one in answer] for answer in answers]


@given(source=HISTORIES)
def test_entry_order_and_unknown_fields_change_nothing(source: list[bytes]) -> None:
    history = History(plain_rules())
    said = [step.said for step in history.play(source)]
    odd = replayed_on(plain_rules(), [odder(line) for line in history.lines], restoring=False)
    assert gist(odd) == gist(said)


@given(source=HISTORIES, given_rules=RULES)
def test_deadlines_always_lead_on(source: list[bytes], given_rules: Rules) -> None:
    """A deadline that fires is over: no thread fires the same one for ever."""
    history = History(given_rules)
    for _ in history.play(source):
        pass
    history.gate.play({"at": history.at + 10**10})
    assert all(next_due(state, given_rules) is None for state in history.gate.threads.values())
    assert all(state.pause is not None for state in history.gate.threads.values())


# -- the generator itself -----------------------------------------------------------------------------------


def test_the_histories_reach_every_verdict_and_most_codes() -> None:
    """A search that never gets anywhere proves nothing."""
    seen: set[str] = set()

    chance = random.Random(1)
    for number in range(800):
        history = History((plain_rules(), strict_rules())[number % 2])
        for step in history.play([chance.randbytes(12) for _ in range(chance.randint(1, 80))]):
            for answer in step.said:
                seen.update((answer["verdict"], str(answer["code"])))
    verdicts = {
        "passed", "opened", "ignored", "settled", "reopened", "lost", "violated", "admitted", "refused",
        "duplicate", "replayed",
    }  # fmt: skip
    codes = {
        "ABANDONED", "RUN_LOST", "STALE_BINDING", "THREAD_BUSY", "PENDING_INTERRUPTS", "RESUME_CONFLICT",
        "PARTIAL_RESUME", "UNKNOWN_INTERRUPT_ID", "DUPLICATE_INTERRUPT_ID", "TOO_MANY_PAUSES", "TOO_LARGE",
        "INVALID_OUTCOME", "FOREIGN_RUN", "STALE_RUN", "RUN_ID_IN_USE", "CONFLICTING_CHANNELS",
        "UNKNOWN_AGENT", "INVALID_PAYLOAD",
    }  # fmt: skip
    assert verdicts | codes <= seen, (verdicts | codes) - seen


def test_a_pause_whose_inputs_end_is_asked_late_is_bounded_only_once() -> None:
    state = ThreadState()
    assert bounded(state, 5) is state
