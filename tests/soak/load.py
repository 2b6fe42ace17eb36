"""Clients and an agent, on plain Kafka clients: threads that pause, wait for their teams, and go on.

A thread has one to three pauses, one after the other, each with questions for one to three teams; now and
then the run that has the answers fails, and people are asked again.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import orjson
from tests.soak.plans import TEAMS

from holdshort.cli.bench.agent import ECHOED
from holdshort.cli.bench.exact import fact_of
from holdshort.cli.bench.wire import Headers, Reader, Sender, Wire
from holdshort.contract.resume import BINDING

AT_ONCE: Final = 400  # threads that are told at the same time
LOOK_S: Final = 0.1
FAILS: Final = 0.03  # of the runs that have answers
OURS: Final = b"hs-"  # how the run ids of the router begin
SCHEMA: Final = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "slip": {"type": "string"}},
    "required": ["approved"],
    "additionalProperties": False,
}


@dataclass
class Thread:
    """One conversation: how many pauses are to come, and the questions of those that were, by generation."""

    name: bytes
    left: int
    asked: dict[int, Mapping[str, str]] = field(default_factory=dict)


class Load:
    """Tells so many pauses; one `step` after the other."""

    def __init__(self, wire: Wire, pauses: int, seed: int) -> None:
        self.threads: dict[bytes, Thread] = {}
        self.over = 0  # pauses that were answered and settled
        self.failed = 0  # runs that had answers and failed
        self.given: Counter[bytes] = Counter()  # runs that the agent was given, by run id
        self.troubles: list[str] = []
        self._pauses = pauses
        self._begun = 0
        self._telling: set[bytes] = set()
        self._seed = seed
        self._random = Random(seed)
        self._topics = wire.topics
        self._sender: Sender = wire.sender(log_level=0)
        self._reader: Reader = wire.reader(wire.topics.events, wire.topics.runs)

    @property
    def opened(self) -> int:
        return sum(len(thread.asked) for thread in self.threads.values())

    @property
    def done(self) -> bool:
        return self._begun == self._pauses and not self._telling

    def close(self) -> None:
        self._sender.flush()
        self._reader.__exit__()

    def step(self, *, held: int = 0) -> bool:
        """Begin what may be begun, but for the last `held` pauses, and react to what came; did anything?"""
        while self._begun < self._pauses - held and len(self._telling) < AT_ONCE:
            self._begin()
        messages = self._reader.take(LOOK_S)
        for message in messages:
            if message.topic() == self._topics.runs:
                self._run(message)
            else:
                self._heard(message)
        return bool(messages)

    # -- clients -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        name = b"t%d" % len(self.threads)
        thread = Thread(name, min(self._random.choice((1, 2, 3)), self._pauses - self._begun))
        self._begun += thread.left
        self.threads[name] = thread
        self._telling.add(name)
        self._ask(thread)

    def _ask(self, thread: Thread) -> None:
        value = {
            "threadId": thread.name.decode(),
            "runId": f"{thread.name.decode()}.{thread.left}",
            "messages": [{"id": "m1", "role": "user", "content": "Please do what you must."}],
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {},
        }
        self._sender.send(self._topics.inputs, (thread.name, orjson.dumps(value)))

    def _heard(self, message: Any) -> None:
        fact, thread = fact_of(message), self.threads[message.key()]
        if fact.kind == "RUN_ERROR":
            event = orjson.loads(message.value())
            if event["code"] != "AGENT_FAILED":
                self.troubles.append(f"{fact.run.decode()} of {thread.name.decode()}: {event}")
        elif fact.kind == "RUN_FINISHED" and fact.run.startswith(OURS):
            self._settled(thread)
        elif fact.kind == "RUN_FINISHED":
            interrupts = orjson.loads(message.value())["outcome"]["interrupts"]
            generation = interrupts[0]["metadata"][BINDING]["generation"]
            thread.asked[generation] = {one["id"]: one["reason"].partition(":")[0] for one in interrupts}

    def _settled(self, thread: Thread) -> None:
        self.over += 1
        thread.left -= 1
        if thread.left:
            self._ask(thread)
        else:
            self._telling.remove(thread.name)

    # -- the agent -----------------------------------------------------------------------------------------

    def _run(self, message: Any) -> None:
        key, value = message.key(), orjson.loads(message.value())
        run = value["runId"]
        self.given[run.encode()] += 1
        headers: Headers = [header for header in message.headers() or () if header[0] in ECHOED]
        ends = self._answered(run) if value.get("resume") else self._paused(run)
        for event in ({"type": "RUN_STARTED"}, ends):
            whole = {"threadId": value["threadId"], "runId": run, **event}
            self._sender.send(self._topics.agent_events, (key, orjson.dumps(whole)), headers)

    def _answered(self, run: str) -> dict[str, Any]:
        if Random(f"{self._seed}/{run}").random() < FAILS:
            self.failed += 1
            return {"type": "RUN_ERROR", "code": "AGENT_FAILED", "message": "the tool did not answer"}
        return {"type": "RUN_FINISHED", "outcome": {"type": "success"}}

    def _paused(self, run: str) -> dict[str, Any]:
        random = Random(f"{self._seed}/{run}")
        teams = random.sample(TEAMS, random.choice((1, 1, 2, 3)))
        interrupts = [
            {
                "id": f"{run}-{team}",
                "reason": f"{team}:change",
                "message": f"May {run} do it, {team}?",
                "responseSchema": SCHEMA,
            }
            for team in teams
        ]
        return {"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": interrupts}}
