"""W6: pauses to people and back: gate, router and broker together, from a pause to its run with the answer.

Threads begin as users begin them, with an input; the agent shows its conversation before it pauses, so that
the router has a context to send. A team decides only what it has read, and names what it saw.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from tests.bench.subject import Subject

from holdshort.cli.bench.agent import Agent
from holdshort.cli.bench.drain import Told, counting
from holdshort.cli.bench.exact import Fact, fact_of
from holdshort.cli.bench.gate import Figures, Measured
from holdshort.cli.bench.latency import Phase
from holdshort.cli.bench.load import FIRST, Keyed, key_of, paused, run_of, started, thread_of
from holdshort.cli.bench.wire import MeasureAgainError, Reader, Wire

TEAM: Final = "payments"
OURS: Final = b"hs-"  # how the run ids of the router begin
ANSWERED: Final = [Fact("RUN_STARTED", OURS), Fact("RUN_FINISHED", OURS)]
SETTLE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much: so many threads to warm up, each rate for `seconds`, so many decisions at one moment."""

    warm_up: int
    rates: Sequence[int]
    seconds: float
    at_once: int

    def count(self, rate: int) -> int:
        return max(1, int(rate * self.seconds))

    @property
    def threads(self) -> int:
        return self.warm_up + sum(self.count(rate) for rate in self.rates) + self.at_once


class Names(NamedTuple):
    """The topics of the team, and of the router."""

    approvals: str
    decisions: str
    receipts: str

    @classmethod
    def of(cls, wire: Wire) -> "Names":
        prefix = wire.topics.inputs.removesuffix("inputs")
        return cls(*(f"{prefix}{kind}.{TEAM}" for kind in ("approvals", "decisions", "receipts")))


def people(gate: Subject, wire: Wire, load: Load, told: Told) -> Measured:
    """Medians and tails at each rate, and the rates at which pauses and decisions are worked off."""
    desk = Desk(gate, wire, told)
    gate.start()
    desk.drained(range(load.warm_up))
    figures: Figures = {}
    first = load.warm_up
    for rate in load.rates:
        numbers = range(first, first + load.count(rate))
        figures |= desk.at_rate(numbers, rate)
        first = numbers.stop
    figures |= desk.drained(range(first, load.threads))
    if (memory := gate.spent().memory_mb) is not None:
        figures["memory MB"] = memory
    problems = desk.settled(load.threads)
    gate.stop()
    return Measured(figures, problems)


class Desk:
    """Users, agent and team of the load."""

    def __init__(self, gate: Subject, wire: Wire, told: Told) -> None:
        self._gate = gate
        self._wire = wire
        self._told = told
        self._names = Names.of(wire)
        self._sender = wire.sender()
        self._agent = Agent(self._sender, wire.topics.agent_events)
        self._asked: dict[int, Mapping[str, Any]] = {}

    # -- measuring -----------------------------------------------------------------------------------------

    def at_rate(self, threads: range, rate: int) -> Figures:
        """From the agent's pause to the team's approval, and from the decision to the agent's run."""
        self._begun(threads)
        self._told(f"pauses at {rate:,} a second")
        phase = Phase(self._gate, self._wire, f"{rate}/s approval", rate)
        events = [_pausing(thread) for thread in threads]
        topics, names = self._wire.topics, self._names
        figures = phase.measured(threads, events, topics.agent_events, names.approvals, self._sees)
        self._told(f"decisions at {rate:,} a second")
        phase = Phase(self._gate, self._wire, f"{rate}/s decision", rate)
        records = [[self._decision(thread)] for thread in threads]
        return figures | phase.measured(
            threads, records, names.decisions, topics.runs, _answered, self._agent
        )

    def drained(self, threads: range) -> Figures:
        """All pauses as fast as they come; when all are asked, all decisions at one moment.

        Their rates count from the first record of the agent's, and from that moment, to the last that came.
        """
        self._begun(threads)
        count, topics, names = len(threads), self._wire.topics, self._names
        with self._wire.reader(names.approvals) as reader:
            reader.skip()
            self._told(f"{count:,} pauses")
            asked = time.monotonic()
            self._wire.fill(topics.agent_events, (one for thread in threads for one in _pausing(thread)))
            opened = self._until(reader, threads, self._sees) - asked
        decisions = [self._decision(thread) for thread in threads]
        with self._wire.reader(topics.runs) as reader:
            reader.skip()
            before = self._gate.spent()
            self._told(f"{count:,} decisions")
            visible = self._wire.fill_together(names.decisions, decisions)
            decided = self._until(reader, threads, _answered, self._agent) - visible
            spent = self._gate.spent().since(before)
        return {
            "pauses/s": count / opened,
            "decisions/s": count / decided,
            **spent.figures(count, "decisions"),
        }

    def _until(
        self,
        reader: Reader,
        threads: range,
        thread: Callable[[Any], int | None],
        agent: Agent | None = None,
    ) -> float:
        """The moment at which what was waited for had come of every thread."""
        came: set[int] = set()
        last = time.monotonic()
        while len(came) < len(threads):
            messages, now = reader.take(), time.monotonic()
            for message in messages:
                whose = thread(message)
                if whose is not None and whose in threads:
                    came.add(whose)
                    if agent is not None:
                        agent.run(message)
            last = now if messages else last
            self._gate.check()
            if now - last > SETTLE_S:
                raise MeasureAgainError(
                    f"{len(came):,} of {len(threads):,} came, then none for {SETTLE_S:g} s"
                )
        return last

    # -- what people do ------------------------------------------------------------------------------------

    def _begun(self, threads: range) -> None:
        """Users have sent their inputs, and the agent has been given them."""
        self._told(f"{len(threads):,} inputs")
        with self._wire.reader(self._wire.topics.runs) as reader:
            reader.skip()
            self._wire.fill(self._wire.topics.inputs, ((key_of(one), _input(one)) for one in threads))
            reader.until(len(threads), self._gate.check, counting(self._told, "inputs", len(threads)))

    def _sees(self, message: Any) -> int | None:
        """The team reads an approval."""
        value = message.value()
        if value is None:
            return None
        asked = orjson.loads(value)
        thread = thread_of(asked["threadId"].encode())
        self._asked[thread] = asked
        return thread

    def _decision(self, thread: int) -> Keyed:
        asked = self._asked.pop(thread)
        interrupt = asked["interrupt"]["id"]
        entry = {"interruptId": interrupt, "status": "resolved", "payload": {"approved": True}}
        decision = {
            "v": 1,
            "decisionId": f"d-{thread}",
            "threadId": asked["threadId"],
            "generation": asked["generation"],
            "resume": [entry],
            "decidedBy": "ann",
            "seen": {interrupt: asked["digest"]},
        }
        return key_of(thread), orjson.dumps(decision)

    # -- the exact check -----------------------------------------------------------------------------------

    def settled(self, threads: int) -> list[str]:
        """Everything once, and nothing else, of every thread; what is not so."""
        self._sender.flush()
        with self._wire.reader(self._wire.topics.events) as events:
            wanted = threads * len(_events(0))
            events.until(wanted, self._gate.check, counting(self._told, "events", wanted))
        with self._wire.reader(self._names.approvals) as approvals:
            approvals.until(2 * threads, self._gate.check, counting(self._told, "approvals", 2 * threads))
        self._told("reading it all again")
        return problems(self._wire, threads)


def problems(wire: Wire, threads: int) -> list[str]:
    """Of each thread a run and its answer, the events of both, one receipt, a question that was withdrawn."""
    names, found = Names.of(wire), Counter[str]()
    runs = _by_thread(wire, wire.topics.runs)
    events = _by_thread(wire, wire.topics.events)
    receipts: Counter[int] = Counter()
    for message in wire.everything(names.receipts):
        found["receipts that refuse"] += orjson.loads(message.value())["verdict"] != "accepted"
        receipts[thread_of(message.key())] += 1
    for thread in range(threads):
        first = Fact("input", run_of(thread, FIRST))
        found["runs that are not as they must be"] += runs[thread] != [first, Fact("input", OURS)]
        found["events that are not as they must be"] += events[thread] != _events(thread)
        found["threads without just one receipt"] += receipts[thread] != 1
    approvals = [message.value() is None for message in wire.everything(names.approvals)]
    found["approvals too many, too few or still there"] = abs(approvals.count(False) - threads)
    found["approvals too many, too few or still there"] += abs(approvals.count(True) - threads)
    found["dead letters"] = sum(1 for _ in wire.everything(wire.topics.dead_letters))
    return [f"{what}: {count:,}" for what, count in found.items() if count]


def _by_thread(wire: Wire, topic: str) -> Mapping[int, Sequence[Fact]]:
    """The facts of a topic; of a run of the router's it counts that it is one."""
    facts: dict[int, list[Fact]] = defaultdict(list)
    for message in wire.everything(topic):
        fact = fact_of(message)
        facts[thread_of(message.key())].append(Fact(fact.kind, OURS) if fact.run.startswith(OURS) else fact)
    return facts


def _events(thread: int) -> list[Fact]:
    """What clients see of a thread that was asked, answered and ended."""
    kinds = ("RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED")
    return [*(Fact(kind, run_of(thread, FIRST)) for kind in kinds), *ANSWERED]


# -- records -------------------------------------------------------------------------------------------------


def _message(thread: int) -> Mapping[str, str]:
    return {"id": f"msg-{thread:08d}", "role": "user", "content": "Please refund my order."}


def _input(thread: int) -> bytes:
    return orjson.dumps(
        {
            "threadId": key_of(thread).decode(),
            "runId": run_of(thread, FIRST).decode(),
            "state": {},
            "messages": [_message(thread)],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        }
    )


def _pausing(thread: int) -> list[Keyed]:
    """The agent's first run, from its start to its question."""
    snapshot = orjson.dumps({"type": "MESSAGES_SNAPSHOT", "messages": [_message(thread)]})
    events = (started(thread, run_of(thread, FIRST)), snapshot, paused(thread))
    return [(key_of(thread), event) for event in events]


def _answered(message: Any) -> int | None:
    """Whose batch it is that the agent is given; None for a run that a user began."""
    return thread_of(message.key()) if fact_of(message).run.startswith(OURS) else None


def titled(load: Load) -> str:
    """How much is done, for results of other sizes are not comparable."""
    rates = ", ".join(f"{rate:,}" for rate in load.rates)
    return f"W6 people, {rates} a second for {load.seconds:g} s each, {load.at_once:,} decisions at once"
