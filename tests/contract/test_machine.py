"""The promises of contract 8 as a state machine: clients, agents and time move, and the gate crashes.

Two gates judge the same records. One of them crashes between any two: its threads are written as `pending`
has them, forgotten, and read again. Whatever happens, both say the same, and after every move the promises
hold.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.contract.histories import STEPS, THREADS, Choice, History, Step, address, plain_rules, strict_rules
from tests.readers import Reader

from holdshort.contract.pending import decode_head, decode_pending, encode_pending
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import ThreadState
from holdshort.contract.thread import decide, evolve, next_due
from holdshort.gatekeeper.transcript import Line, Transcript

CHANGES_NOTHING = ("refused", "duplicate", "replayed", "unreadable")
SOMEWHERE = st.sampled_from(("t", "t", *THREADS))
Mover = Callable[[Choice, str], Iterator[Step]]


class Gates(RuleBasedStateMachine):
    """A gate that crashes, one that never does, and a client that reads everything."""

    history: History
    steady: Transcript
    reader: Reader

    @initialize(given=st.sampled_from([plain_rules(), strict_rules()]))
    def begin(self, given: Rules) -> None:
        self.history = History(given)
        self.steady = Transcript(given)
        self.reader = Reader()

    # -- what moves -----------------------------------------------------------------------------------------

    @rule(choices=STEPS, thread=SOMEWHERE)
    def an_agent_says_something(self, choices: bytes, thread: str) -> None:
        self._go(choices, thread, self.history._event)

    @rule(choices=STEPS, thread=SOMEWHERE)
    def a_client_asks(self, choices: bytes, thread: str) -> None:
        self._go(choices, thread, self.history._input)

    @rule(choices=STEPS, thread=SOMEWHERE)
    def somebody_answers(self, choices: bytes, thread: str) -> None:
        self._go(choices, thread, self.history._answer)

    @rule(choices=STEPS, thread=SOMEWHERE)
    def somebody_answers_what_is_not_asked_yet(self, choices: bytes, thread: str) -> None:
        self._go(choices, thread, self.history._planted)

    @rule(choices=STEPS, thread=SOMEWHERE)
    def an_operator_abandons(self, choices: bytes, thread: str) -> None:
        self._go(choices, thread, self.history._abandon)

    @rule(choices=STEPS, thread=SOMEWHERE)
    def something_is_said_again(self, choices: bytes, thread: str) -> None:
        self._go(choices, thread, self.history._again)

    @rule(choices=STEPS, thread=SOMEWHERE)
    def time_passes(self, choices: bytes, thread: str) -> None:
        self._go(choices, thread, self.history._time)

    @rule()
    def the_gate_crashes(self) -> None:
        """Nothing is left but the records of `pending`; a thread without anything is a tombstone."""
        gate = self.history.gate
        log = {key: _written(key, state, gate.rules) for key, state in gate.threads.items()}
        gate.threads = {key: decode_pending(value) for key, value in log.items()}
        for key, value in log.items():
            pause, head = gate.threads[key].pause, decode_head(value)
            due = next_due(gate.threads[key], gate.rules)
            assert head.due == (due.at if due else None)
            assert (head.pause.size if head.pause else None) == (pause.size if pause else None)

    def _go(self, choices: bytes, thread: str, make: Mover) -> None:
        for step in self.history.go(choices, lambda choice: make(choice, thread)):
            line = self.history.lines[-1]
            assert self.steady.play(line) == step.said
            self._judged(line, step)
            for answer in step.said:
                self.reader.read(answer["emits"])  # fails where a run is not well framed

    # -- what is promised of every record -------------------------------------------------------------------

    def _judged(self, line: dict[str, Any], step: Step) -> None:
        if step.answer is None:
            return
        if line["topic"] in ("inputs", "resumes"):
            if step.answer["verdict"] in CHANGES_NOTHING:
                assert _without_refusal(step.after) == _without_refusal(step.before)
            if step.answer["verdict"] == "admitted":
                self._admitted(line, step)
        run = step.before.run
        if run is not None and step.after.run is None:
            assert run.run_id in _ends(step.answer)

    def _admitted(self, line: dict[str, Any], step: Step) -> None:
        pause = step.before.pause
        assert step.before.run is None
        if pause is None:
            return
        resume = line["value"]["resume"]
        assert sorted(entry["interruptId"] for entry in resume) == sorted(pause.ids)
        assert line["topic"] == "resumes" or line["offset"] >= (pause.inputs_end or 0)
        for entry in resume:
            echoed = entry.get("metadata", {}).get("holdshort:binding", {})
            assert echoed.get("generation", pause.generation) == pause.generation

    # -- what is promised of every moment -------------------------------------------------------------------

    @invariant()
    def restoring_equals_having_run(self) -> None:
        if hasattr(self, "history"):
            assert self.history.gate.threads == self.steady.threads

    @invariant()
    def a_client_that_reads_everything_agrees(self) -> None:
        for key, state in self._threads():
            if state.run is None:
                open_ = set(state.pause.ids) if state.pause else set()
                assert self.reader.pending.get(key, set()) == open_

    @invariant()
    def a_pause_is_resuming_exactly_while_a_run_answers_it(self) -> None:
        for _, state in self._threads():
            if state.pause is not None:
                answering = state.run is not None and state.run.answers == state.pause.generation
                assert (state.pause.status == "resuming") == answering == (state.run is not None)

    @invariant()
    def every_thread_can_be_freed(self) -> None:
        for key, state in self._threads():
            if state.run is None and state.pause is None:
                continue
            named = {"holdshort-action": "abandon", **address(state)}
            headers = tuple((name, str(text).encode()) for name, text in named.items())
            value = f'{{"threadId":"{key}","runId":"hs-free"}}'.encode()
            record = Line("resumes", 0, 10**9, key.encode(), value, headers, self.history.at + 1)
            verdict = decide(
                state, record, record.timestamp, World(clock=record.timestamp), self.steady.rules
            )
            after = evolve(state, verdict.changes)
            assert (after.run, after.pause) == (None, None)

    @invariant()
    def whatever_is_in_flight_has_a_deadline(self) -> None:
        for _, state in self._threads():
            due = next_due(state, self.steady.rules)
            assert state.run is None or due is not None
            assert not state.empty

    def _threads(self) -> Iterator[tuple[str, ThreadState]]:
        if hasattr(self, "history"):
            for key, state in self.history.gate.threads.items():
                yield (key or b"").decode(), state


def _written(key: bytes | None, state: ThreadState, rules: Rules) -> bytes:
    due = next_due(state, rules)
    return encode_pending((key or b"").decode(), state, due.at if due else None)


def _without_refusal(state: ThreadState) -> ThreadState:
    """The state without what a refused answer leaves in it."""
    if state.pause is None:
        return state
    return msgspec.structs.replace(state, pause=msgspec.structs.replace(state.pause, refusal=None))


def _ends(answer: dict[str, Any]) -> list[str]:
    return [
        emit["headers"]["holdshort-run"]
        for emit in answer["emits"]
        if emit["topic"] == "events" and emit["value"]["type"] in ("RUN_FINISHED", "RUN_ERROR")
    ]


TestGates = Gates.TestCase
TestGates.settings = settings(stateful_step_count=60)
