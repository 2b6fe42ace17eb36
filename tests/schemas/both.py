"""Gate and router on one partition, record by record: all that they write, without a broker and a clock.

    both = Both(rules())
    both.asks("r1")
    both.interrupts("r1", question("a", reason="payments:refund"))
    both.decides("payments", resume=[approved("a")])
    both.logs["receipts.payments"]

Every record comes a second after the last. What either writes is read by the other at once, as on Kafka.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from holdshort.contract.messages import ADMISSION, GENERATION, RUN
from holdshort.contract.routes import Route, RouteTable
from holdshort.contract.rules import AgentRules, Limits, Rules
from holdshort.contract.state import ThreadState
from holdshort.gatekeeper.decider import Gate
from holdshort.router.decider import RouterDecider
from holdshort.router.gathering import Gathering
from holdshort.stream.decider import Context, Step
from holdshort.stream.records import Output, Record, RecordPlace, TopicPartition

START_MS = 1_796_040_000_000
SECOND = 1000
TEAMS = ("payments", "security", "client", "unrouted")
ROUTES = (
    Route(name="refunds", team="payments", reason="payments:*"),
    Route(name="transfers", team="payments", tools=frozenset({"transfer_money"})),
    Route(name="access", team="security", reason="security:*"),
    Route(name="small-talk", team="security", reason="chat:*", answer_by="anyone"),
)


def rules(**changes: Any) -> Rules:
    """Two agents, two teams; `routes=()` for plain AG-UI."""
    agents = {"default": AgentRules(), "legacy": AgentRules(legacy_interrupts=True)}
    given = {"agents": agents, "routes": RouteTable(ROUTES), "partitions": 1, **changes}
    return Rules(**given)


def few_pauses(most: int) -> Rules:
    return rules(limits=Limits(open_pauses=most))


def question(id_: str, **members: Any) -> dict[str, Any]:
    """An interrupt's descriptor."""
    return {"id": id_, "reason": "payments:refund", **members}


def approved(id_: str, **members: Any) -> dict[str, Any]:
    """An entry that answers yes."""
    return {"interruptId": id_, "status": "resolved", "payload": {"approved": True}, **members}


def cancelled(id_: str) -> dict[str, Any]:
    return {"interruptId": id_, "status": "cancelled"}


class Both:
    """Everything that was written, by topic, and the state of either service."""

    def __init__(self, given: Rules | None = None) -> None:
        self.gate = Gate(given or rules())
        self.router = RouterDecider(self.gate.rules, TEAMS)
        self.logs: dict[str, list[Record]] = defaultdict(list)
        self.threads: dict[bytes, ThreadState] = {}
        self.gatherings: dict[bytes, Gathering] = {}
        self.rows: dict[bytes, Record] = {}
        self.now = START_MS

    # -- what people and agents write ----------------------------------------------------------------------

    def asks(self, run: str, *, thread: str = "t", **members: Any) -> None:
        """An input of a client."""
        self.write("inputs", _input(thread, run, members), thread)

    def resumes(self, run: str, generation: int | None, *, thread: str = "t", **members: Any) -> None:
        """An input by the way of router and operators."""
        headers = {} if generation is None else {GENERATION: str(generation)}
        self.write("resumes", _input(thread, run, members), thread, headers)

    def abandons(self, *, thread: str = "t") -> None:
        """An operator ends the pause."""
        self._ends("abandon", thread)

    def forgets(self, *, thread: str = "t") -> None:
        """An operator has all of a paused thread forgotten."""
        self._ends("forget", thread)

    def _ends(self, action: str, thread: str) -> None:
        generation = self.threads[thread.encode()].generation
        headers = {"holdshort-action": action, GENERATION: str(generation)}
        self.write("resumes", _input(thread, "hs-end", {}), thread, headers)

    def event(
        self, type_: str, run: str, *, thread: str = "t", agent: str = "default", **members: Any
    ) -> None:
        """An event of an agent that echoes what its run was admitted by, if the run is in flight."""
        state = self.threads.get(thread.encode())
        running = state.run if state else None
        headers = {RUN: run}
        if running is not None and running.run_id == run and running.admission is not None:
            headers[ADMISSION] = str(running.admission)
        self.write(f"agent-events.{agent}", {"type": type_, **members}, thread, headers)

    def starts(self, run: str, **where: Any) -> None:
        self.event("RUN_STARTED", run, runId=run, **where)

    def finishes(self, run: str, **where: Any) -> None:
        self.event("RUN_FINISHED", run, runId=run, **where)

    def interrupts(self, run: str, *questions: dict[str, Any], **where: Any) -> None:
        outcome = {"type": "interrupt", "interrupts": list(questions)}
        self.event("RUN_FINISHED", run, runId=run, outcome=outcome, **where)

    def calls(self, run: str, call: str, tool: str, args: str) -> None:
        self.event("TOOL_CALL_START", run, toolCallId=call, toolCallName=tool)
        self.event("TOOL_CALL_ARGS", run, toolCallId=call, delta=args)

    def decides(self, team: str, *, thread: str = "t", by: str | None = None, **members: Any) -> None:
        """A decision of a team: our form if it says `v`, else bare AG-UI; `by` is a principal."""
        headers = {"holdshort-principal": by} if by is not None else None
        self.write(f"decisions.{team}", {"threadId": thread, **members}, thread, headers)

    def forwarded(self, thread: str = "t") -> str:
        """The run id of the batch that the router has sent."""
        run_id = self.gatherings[thread.encode()].forwarded
        assert run_id is not None
        return run_id

    # -- how it works --------------------------------------------------------------------------------------

    def write(
        self, topic: str, value: Any, thread: str | bytes | None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Append one record; a value that is bytes stays as it is."""
        self.now += SECOND
        raw = value if isinstance(value, bytes) or value is None else orjson.dumps(value)
        key = thread.encode() if isinstance(thread, str) else thread
        told = tuple((name, one.encode()) for name, one in (headers or {}).items())
        waiting = deque([self._append(topic, key, raw, told)])
        while waiting:
            waiting += self._read(waiting.popleft())

    def passes(self, seconds: float) -> None:
        """Let time pass: what is due fires."""
        self.now += round(seconds * SECOND)
        while waiting := deque([*self._gate_fires(), *self._router_fires()]):
            while waiting:
                waiting += self._read(waiting.popleft())

    def _gate_fires(self) -> Iterator[Record]:
        for key in list(self.threads):
            while (state := self.threads.get(key)) and (due := self.gate.mark(state).due) and due <= self.now:
                step = self.gate.fire(key, state, self._context(due))
                yield from self._gate_wrote(key, step)

    def _router_fires(self) -> Iterator[Record]:
        """What is due by the router, if it has read all that the teams have decided."""
        for key in list(self.gatherings):
            while (state := self.gatherings.get(key)) and (due := state.due) and due <= self.now:
                yield from self._router_wrote(key, self._fire(key, state, due))

    def _fire(self, key: bytes, state: Gathering, due: int) -> Step[Gathering]:
        rows = {"pending": self.rows.get(key)}
        step = self.router.fire(key, state, self._context(due, rows=rows))
        if step.wanted:
            fetched = {place: self._fetch(*place) for place in step.wanted}
            step = self.router.fire(key, state, self._context(due, fetched, rows))
        assert not step.wanted, "it wanted records twice"
        return step

    def crashes(self) -> None:
        """Both services are gone, and are back with what they had written."""
        gate, router = Gate(self.gate.rules), RouterDecider(self.router.rules, TEAMS)
        gate.notes, router.notes = dict(self.gate.notes), dict(self.router.notes)
        threads = {key: self.gate.encode(key, state) for key, state in self.threads.items()}
        gatherings = {key: self.router.encode(key, state) for key, state in self.gatherings.items()}
        self.gate, self.router = gate, router
        self.threads = {key: gate.decode(value) for key, value in threads.items()}
        self.gatherings = {key: router.decode(value) for key, value in gatherings.items()}
        for value in threads.values():
            gate.counted(0, gate.mark_of(value), +1)
        for value in gatherings.values():
            router.counted(0, router.mark_of(value), +1)

    def _append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> Record:
        log = self.logs[topic]
        log.append(Record(topic, 0, len(log), key, value, headers, self.now))
        return log[-1]

    def _read(self, record: Record) -> list[Record]:
        if any(record.topic in rank for rank in self.gate.ranks):
            state = self.threads.get(record.key or b"")
            step = self.gate.decide(state, record, self._context(record.timestamp))
            return self._gate_wrote(record.key, step)
        if record.topic == "pending" or record.topic.startswith("decisions."):
            return self._router_wrote(record.key, self._route(record))
        return []

    def _context(
        self,
        now: int,
        fetched: Mapping[RecordPlace, Record | None] | None = None,
        rows: Mapping[str, Record | None] | None = None,
    ) -> Context:
        return Context(0, now, self.now, fetched or {}, rows or {})

    def _gate_wrote(self, key: bytes | None, step: Step[ThreadState]) -> list[Record]:
        written = self._outputs(step.outputs)
        before = self.threads.pop(key or b"", None)
        after = step.state
        if after is not None and self.gate.wants_end(after):
            after = self.gate.with_end(after, len(self.logs["inputs"]))
        if after is not None:
            self.threads[key or b""] = after
        if after is not before and key is not None:
            for state, times in ((before, -1), (after, +1)):
                if state is not None:
                    self.gate.counted(0, self.gate.mark(state), times)
            value = None if after is None else self.gate.encode(key, after)
            written.append(self._append("pending", key, value))
        return written

    def _route(self, record: Record) -> Step[Gathering]:
        key = record.key or b""
        if record.topic == "pending":
            self.rows[key] = record
        state, rows = self.gatherings.get(key), {"pending": self.rows.get(key)}
        step = self.router.decide(state, record, self._context(record.timestamp, rows=rows))
        if step.wanted:
            fetched = {place: self._fetch(*place) for place in step.wanted}
            step = self.router.decide(state, record, self._context(record.timestamp, fetched, rows))
        return step

    def _fetch(self, where: TopicPartition, offset: int) -> Record | None:
        log = self.logs[where.topic]
        return log[offset] if offset < len(log) else None

    def _router_wrote(self, key: bytes | None, step: Step[Gathering]) -> list[Record]:
        written = self._outputs(step.outputs)
        before, after = self.gatherings.get(key or b""), step.state
        if after is before or key is None:
            return written
        for state, times in ((before, -1), (after, +1)):
            if state is not None:
                self.router.counted(0, self.router.mark(state), times)
        if after is None:
            del self.gatherings[key]
        else:
            self.gatherings[key] = after
        value = None if after is None else self.router.encode(key, after)
        written.append(self._append("gathering", key, value))
        return written

    def _outputs(self, outputs: Sequence[Output]) -> list[Record]:
        return [self._append(one.topic, one.key, one.value, one.headers) for one in outputs]


def _input(thread: str, run: str, members: Mapping[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {}}
    return {"threadId": thread, "runId": run, **empty, **members}
