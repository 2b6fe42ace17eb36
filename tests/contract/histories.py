"""Generated histories: several threads and agents, everything that can go wrong on the way, in any order.

A history is written while it is judged, so that what comes next can be about what is there: every choice is
a byte, taken modulo the choices there are. Inputs are written before they are judged, so that some lie in
the log already when a question opens.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st
from tests.playbook import START_MS, question, rules

from holdshort.contract.rules import AgentRules, Limits, Rules
from holdshort.contract.state import NOTHING, ThreadState
from holdshort.gatekeeper.transcript import Line, Transcript

T = TypeVar("T")

THREADS = ("t", "u", "v")
RUNS = ("r0", "r1", "r2")
IDS = ("a", "b", "c")
MINUTE_MS = 60_000
AGENTS = {
    "default": AgentRules(),
    "plain": AgentRules(),
    "strange": AgentRules(foreign_run_ids=True),
    "legacy": AgentRules(legacy_interrupts=True),
}
ECHOING = ("default", "strange", "legacy")
STEPS = st.binary(min_size=12, max_size=12)
HISTORIES = st.one_of(
    st.lists(STEPS, min_size=1, max_size=12), st.lists(STEPS, min_size=30, max_size=80)
)  # a short one is what a failure shrinks to


def strict_rules() -> Rules:
    """Rules under which everything happens now and then: sealed pauses, events over the limit, forgetting."""
    limits = Limits(open_pauses=1, event=2_000, remembered=3)
    return rules(agents=AGENTS, limits=limits, unaddressed_reuse="refuse")


def plain_rules() -> Rules:
    return rules(agents=AGENTS)


class Step(NamedTuple):
    """One record, judged; `answer` is None where time passed."""

    record: Line | None
    before: ThreadState
    after: ThreadState
    answer: dict[str, Any] | None
    said: list[dict[str, Any]]


class Choice:
    """A source of choices."""

    def __init__(self, source: bytes) -> None:
        self.source = iter(source)

    def of(self, *options: T) -> T:
        return options[next(self.source, 0) % len(options)]

    def number(self, below: int) -> int:
        return next(self.source, 0) % below


class Written(NamedTuple):
    """An input in the log that is not judged yet."""

    line: dict[str, Any]
    judged_at_step: int


class History:
    """What has been written and judged so far."""

    def __init__(self, given: Rules) -> None:
        self.gate = Transcript(given)
        self.lines: list[dict[str, Any]] = []
        self.at = START_MS
        self.step = 0
        self.waiting: deque[Written] = deque()
        self.inputs_written = 0
        self.inputs: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.admissions: list[tuple[str, str, str, str]] = []

    def play(self, source: list[bytes]) -> Iterator[Step]:
        """Every step of the history that those choices make, and what is still waiting at its end."""
        for choices in source:
            yield from self.go(choices, self._next)
        while self.waiting:
            yield self._judge(self.waiting.popleft().line)

    def go(self, choices: bytes, make: Callable[[Choice], Iterator[Step]]) -> Iterator[Step]:
        """One step, and what was waiting for it."""
        self.step += 1
        choice = Choice(choices)
        self.at += choice.of(1, 0, 1000, 7)
        yield from make(choice)
        while self.waiting and self.waiting[0].judged_at_step <= self.step:
            yield self._judge(self.waiting.popleft().line)

    def state(self, thread: str) -> ThreadState:
        return self.gate.threads.get(thread.encode(), NOTHING)

    def _next(self, choice: Choice) -> Iterator[Step]:
        make = choice.of(
            self._nothing, self._event, self._answer, self._event, self._input, self._answer, self._event,
            self._again, self._planted,
            self._abandon, self._time, self._event, self._answer, self._event,
        )  # fmt: skip
        yield from make(choice, choice.of("t", *THREADS))

    def _nothing(self, _: Choice, __: str) -> Iterator[Step]:
        """A step that does nothing, which is what steps that do not matter shrink to."""
        yield from ()

    # -- judging --------------------------------------------------------------------------------------------

    def _judge(self, line: dict[str, Any]) -> Step:
        line = {**line, "inputs_end": self.inputs_written}
        self.lines.append(line)
        before = dict(self.gate.threads)
        said = self.gate.play(line)
        if "topic" not in line:
            return Step(None, NOTHING, NOTHING, None, said)
        key = str(line["key"]).encode()
        record = Line(line["topic"], 0, line.get("offset", 0), key, None, (), line["at"])
        step = Step(record, before.get(key, NOTHING), self.gate.threads.get(key, NOTHING), said[0], said)
        self._remember(line, said[0])
        return step

    def _remember(self, line: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        for emit in answer["emits"]:
            if emit["topic"].startswith("runs."):
                agent, headers = emit["topic"].removeprefix("runs."), emit["headers"]
                admitted = (line["key"], agent, headers["holdshort-run"], headers["holdshort-admission"])
                self.admissions.append(admitted)

    # -- inputs ---------------------------------------------------------------------------------------------

    def _write(self, choice: Choice, said: dict[str, Any]) -> Iterator[Step]:
        """Inputs are written now and judged in their order, perhaps some steps later."""
        if said["topic"] != "inputs":
            yield self._judge({**said, "at": self.at})
            return
        line = {**said, "at": self.at - choice.of(0, 0, 0, 5000), "offset": self.inputs_written}
        self.inputs_written += 1
        self.inputs.append(said)
        self.waiting.append(Written(line, self.step + choice.of(0, 0, 0, 0, 0, 1, 3)))

    def _input(self, choice: Choice, thread: str) -> Iterator[Step]:
        value: dict[str, Any] = {"threadId": thread, "runId": choice.of(*RUNS), "messages": []}
        odd: list[dict[str, Any]] = [{"resume": []}, {"forwardedProps": {"command": {"resume": 1}}}, {"x": 1}]
        value |= choice.of({}, {}, *odd)
        headers = {"holdshort-agent": choice.of(*AGENTS, "nobody")}
        yield from self._write(choice, {"topic": "inputs", "key": thread, "value": value, "headers": headers})

    def _answer(self, choice: Choice, thread: str) -> Iterator[Step]:
        state = self.state(thread)
        pauses = [*((state.pause,) if state.pause else ()), *state.gone]
        asked = choice.of(*pauses[:1], *pauses[:1], *pauses[:1], *pauses) if pauses else None
        ids = (
            choice.of(asked.ids, asked.ids, asked.ids, asked.ids[1:], (*asked.ids, "z"), asked.ids * 2)
            if asked
            else ("a",)
        )
        entries = [self._entry(choice, id_, asked.generation if asked else 0) for id_ in ids]
        value: dict[str, Any] = {"threadId": thread, "resume": entries}
        if choice.of(False, False, True) and asked:
            value["parentRunId"] = asked.run_id
        if choice.of(False, False, True):
            value["runId"] = choice.of("hs-0", "hs-1", "hs-2")
            headers = {"holdshort-generation": choice.of(*[asked.generation if asked else 0] * 4, 5)}
            said = {"topic": "resumes", "key": thread, "value": value, "headers": headers}
        else:
            value["runId"] = choice.of(*RUNS)
            said = {"topic": "inputs", "key": thread, "value": value}
        yield from self._write(choice, said)

    def _entry(self, choice: Choice, id_: str, generation: int) -> dict[str, Any]:
        entry: dict[str, Any] = {"interruptId": id_, "status": choice.of("resolved", "resolved", "cancelled")}
        entry |= choice.of({"payload": True}, {"payload": True}, {}, {"payload": None}, {"payload": 2**60})
        if choice.of(False, True, True):
            entry["metadata"] = {"holdshort:binding": {"generation": generation}}
        return entry

    def _abandon(self, choice: Choice, thread: str) -> Iterator[Step]:
        headers = choice.of(address(self.state(thread)), {"holdshort-generation": 5}, {"holdshort-run": "r0"})
        said = {
            "topic": "resumes",
            "key": thread,
            "value": {"threadId": thread, "runId": "hs-end"},
            "headers": {"holdshort-action": "abandon", **headers},
        }
        yield from self._write(choice, said)

    def _again(self, choice: Choice, _: str) -> Iterator[Step]:
        """What was written before is written again, byte for byte."""
        if choice.of(True, False) and self.inputs:
            yield from self._write(choice, choice.of(*self.inputs[-5:]))
        elif self.events:
            yield self._judge({**choice.of(*self.events[-5:]), "at": self.at})

    # -- agents ---------------------------------------------------------------------------------------------

    def _event(self, choice: Choice, thread: str) -> Iterator[Step]:
        agent, names = self._speaker(choice, thread)
        if agent not in ECHOING:
            names.pop("holdshort-admission", None)
        event = self._says(choice, thread, names.get("holdshort-run", "r0"))
        line = {"topic": f"agent-events.{agent}", "key": thread, "value": event, "headers": names}
        self.events.append(line)
        yield self._judge({**line, "at": self.at})

    def _speaker(self, choice: Choice, thread: str) -> tuple[str, dict[str, str]]:
        """Whose event it is: mostly of the run in flight, else of the pause's, of the past, or of nobody."""
        state, past = self.state(thread), [one for one in self.admissions if one[0] == thread]
        owner = choice.of(*[state.run or state.pause] * 5, state.pause, None)
        if owner is not None:
            names = {"holdshort-run": owner.run_id}
            if owner.admission is not None:
                names["holdshort-admission"] = str(owner.admission)
            return owner.agent, names
        if choice.of(True, False) and past:
            _, agent, run, admission = choice.of(*past)
            return agent, {"holdshort-run": run, "holdshort-admission": admission}
        return choice.of("plain", "default", "strange"), choice.of(
            {"holdshort-run": "x"}, {}, {"holdshort-run": "r0"}
        )

    def _planted(self, choice: Choice, thread: str) -> Iterator[Step]:
        """Somebody answers what is not asked yet: the answer lies in the log when the question opens."""
        ids = IDS[: choice.number(3) + 1]
        entries = [{"interruptId": id_, "status": "resolved", "payload": True} for id_ in ids]
        value = {"threadId": thread, "runId": "planted", "resume": entries}
        line = {"topic": "inputs", "key": thread, "value": value, "at": self.at}
        self.waiting.append(Written({**line, "offset": self.inputs_written}, self.step))
        self.inputs_written += 1
        agent, names = self._speaker(choice, thread)
        event = self._interrupt(choice, thread, names.get("holdshort-run", "r0"), ids)
        said = {"topic": f"agent-events.{agent}", "key": thread, "value": event, "headers": names}
        yield self._judge({**said, "at": self.at})

    def _interrupt(self, choice: Choice, thread: str, run: str, ids: Sequence[str]) -> dict[str, Any]:
        asked = [question(id_, toolCallId="call", **choice.of({}, {}, {"n": 1})) for id_ in ids]
        outcome = {"type": "interrupt", "interrupts": asked}
        return {"type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": outcome}

    def _says(self, choice: Choice, thread: str, run: str) -> dict[str, Any]:
        ends = {"type": "RUN_FINISHED", "threadId": thread, "runId": run}
        interrupt = self._interrupt(choice, thread, run, IDS[: choice.number(3) + 1])
        return choice.of(
            interrupt,
            {"type": "RUN_STARTED", "threadId": thread, "runId": run},
            ends,
            ends,
            {"type": "RUN_ERROR", "message": "x"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"},
            interrupt,
            {"type": "TOOL_CALL_START", "toolCallId": "call", "toolCallName": "pay"},
            {"type": "TOOL_CALL_RESULT", "toolCallId": "call", "messageId": "m", "content": "x"},
            {**ends, "outcome": {"type": "interrupt", "interrupts": []}},
            {"type": "CUSTOM", "name": "holdshort:heartbeat", "value": None},
            {"type": "CUSTOM", "name": "on_interrupt", "value": "sure?"},
            {"type": "STATE_SNAPSHOT", "snapshot": "x" * choice.of(1, 3000)},
            {**ends, "result": "x" * choice.of(1, 3000)},
        )

    def _time(self, choice: Choice, _: str) -> Iterator[Step]:
        self.at += choice.of(1, 1, 5, 16, 30, 25 * 60) * MINUTE_MS
        yield self._judge({"at": self.at})


def address(state: ThreadState) -> dict[str, Any]:
    """What an abandon must name."""
    if state.pause is not None:
        return {"holdshort-generation": state.pause.generation}
    if state.run is None:
        return {}
    if state.run.admission is not None:
        return {"holdshort-admission": str(state.run.admission)}
    return {"holdshort-run": state.run.run_id}


Promise = Callable[[History, Step], None]
