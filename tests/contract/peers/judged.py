"""What the gate and a producer say of the same input, each asked for real."""

import time
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
from tests.contract.peers.peer import Peer
from tests.contract.peers.situations import Asked, Scene, Situation
from tests.contract.peers.streams import Streams
from tests.playbook import rules

from holdshort.contract.inputs import INPUTS, ROWS
from holdshort.contract.messages import parse_object
from holdshort.contract.replies import Case
from holdshort.contract.rules import World
from holdshort.contract.state import NOTHING, ThreadState
from holdshort.gatekeeper.transcript import Line, Transcript

SECOND: Final = 1000


class Verdict(NamedTuple):
    """What was said: `took` it, `refused` it, or `repeated` what it had said; and that in words."""

    kind: str
    words: str


@dataclass
class Gate:
    """A gate, and what it showed: the producer's events go through it as its agent's."""

    began: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    ahead: float = 0
    now: int = 0
    shown: list[list[dict[str, Any]]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    streams: Streams = field(default_factory=Streams)
    _run: dict[str, str] = field(default_factory=dict)
    row: str = ""
    _transcript: Transcript = field(default_factory=lambda: Transcript(rules()))

    def open(self, thread: str) -> list[str]:
        """The ids of the interrupts that are there, whether or not a run is at their answer."""
        pause = self._transcript.threads.get(thread.encode(), NOTHING).pause
        return list(pause.ids) if pause else []

    def put(self, thread: str, body: str) -> dict[str, Any]:
        """The answer to an input."""
        self.shown.append([])
        before = self._transcript.threads.get(thread.encode(), NOTHING)
        offset = self._transcript.ends[INPUTS, 0]
        (self.last,) = self._play({"topic": INPUTS, "key": thread, "value": body})
        written = body.encode(errors="surrogatepass")
        self.row = self._row_of(Line(INPUTS, 0, offset, thread.encode(), written, (), self.at), before)
        for emit in self.last["emits"]:
            if emit["topic"].startswith("runs."):
                names = ("holdshort-run", "holdshort-admission")
                self._run = {name: emit["headers"][name] for name in names}
        return self.last

    def _row_of(self, record: Line, before: ThreadState) -> str:
        """The row of the contract that decided: the first that has something to say of the record."""
        value = parse_object(record.value)
        if self.last["verdict"] == "unreadable" or value is None:
            return "unreadable input"
        world = World(clock=self.at, open_pauses=0, open_bytes=0)
        case = Case(before, record, self.at, world, self._transcript.rules, value)
        row, verdict = next((row, said) for row in ROWS if (said := row(case)) is not None)
        assert verdict.kind == self.last["verdict"]
        name = row.__name__.replace("_", " ")
        return "other past answer" if (name, verdict.kind) == ("past answer", "refused") else name

    def say(self, thread: str, events: list[dict[str, Any]]) -> None:
        """What the agent says of the run that was admitted last."""
        said = {"topic": "agent-events.default", "key": thread, "headers": self._run}
        for event in events:
            self._play({**said, "value": event})

    @property
    def at(self) -> int:
        """The append time of the last record, in ms."""
        return self.began + self.now + round(self.ahead * SECOND)

    def _play(self, line: dict[str, Any]) -> list[dict[str, Any]]:
        self.now += SECOND
        answers = self._transcript.play({**line, "at": self.at})
        for answer in answers:
            self.shown[-1] += [emit["value"] for emit in answer["emits"] if emit["topic"] == "events"]
            self.streams.read(answer["emits"])
        return answers


class Exchange(NamedTuple):
    """An input, and what the producer said when it was given it; None while it is still at it."""

    body: str
    events: list[dict[str, Any]] | None


@dataclass
class Judgement:
    """One situation, played to its end: what came before, the input, and the verdicts on it."""

    given: list[Exchange]
    body: str
    row: str
    ours: Verdict
    theirs: Verdict
    gate: Gate


def judge(situation: Situation, producer: Peer) -> Judgement:
    """Put the situation to the gate and to the producer; the producer's thread is a new one."""
    producer.ask({"do": "begin", "script": situation.script})
    gate, scene, given = Gate(), Scene("t", []), list[Exchange]()
    for number, move in enumerate(situation.given):
        in_flight = situation.in_flight and number == len(situation.given) - 1
        given.append(_exchange(gate, producer, scene, written(move(scene)), in_flight=in_flight))
    if situation.seconds_later:
        gate.ahead = situation.seconds_later
        producer.ask({"do": "advance", "seconds": str(situation.seconds_later)})
    body = written(situation.move(scene))
    ours = our_verdict(gate.put(scene.thread, body))
    told = producer.ask({"do": "post", "body": body})
    theirs = their_verdict(told, scene)
    if situation.in_flight:
        _, *rest = producer.ask({"do": "release"})["events"]
        gate.say(scene.thread, rest)
    elif ours.kind == "took":
        gate.say(scene.thread, told["events"])
    return Judgement(given, body, gate.row, ours, theirs, gate)


def _exchange(gate: Gate, producer: Peer, scene: Scene, body: str, *, in_flight: bool) -> Exchange:
    """An input that gate and producer take, and what comes of it."""
    run = orjson.loads(body)["runId"]
    answer = gate.put(scene.thread, body)
    assert answer["verdict"] == "admitted", answer
    if in_flight:
        producer.ask({"do": "start", "body": body})
        gate.say(scene.thread, [{"type": "RUN_STARTED", "threadId": scene.thread, "runId": run}])
        return Exchange(body, None)
    events = producer.ask({"do": "post", "body": body})["events"]
    gate.say(scene.thread, events)
    outcome = gate.shown[-1][-1].get("outcome") or {}
    if outcome.get("type") == "interrupt":
        scene.pauses.append(Asked(run, outcome["interrupts"]))
    return Exchange(body, events)


def written(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


# -- verdicts in words --------------------------------------------------------------------------------------

OUR_KINDS: Final = {
    "admitted": "took",
    "replayed": "repeated",
    "duplicate": "repeated",
    "refused": "refused",
    "unreadable": "refused",
}


def our_verdict(answer: dict[str, Any]) -> Verdict:
    words = answer["verdict"] if answer["code"] is None else f"{answer['verdict']} `{answer['code']}`"
    return Verdict(OUR_KINDS[answer["verdict"]], words)


def their_verdict(told: dict[str, Any], scene: Scene) -> Verdict:
    """A producer takes an input if its model is asked, a tool runs, or its outcome is another than before."""
    if told["status"] != 200:
        return Verdict("refused", f"HTTP {told['status']}")
    last, did = told["events"][-1], told["acted"] or told["model_calls"]
    acted = [f"runs `{tool}`" for tool in told["acted"]]
    if last["type"] == "RUN_ERROR":
        error = f"`{last['code']}`" if last.get("code") else "RUN_ERROR without a code"
        return Verdict("took" if did else "refused", ", ".join([*acted, error]))
    outcome = last.get("outcome") or {"type": "none"}
    kind = outcome["type"]
    if kind == "interrupt":
        open_before = {one["id"] for one in scene.pauses[-1].interrupts} if scene.pauses else set()
        again = {one["id"] for one in outcome["interrupts"]} <= open_before
        kind = "asks again" if again else "asks anew"
    took = bool(did) or kind == "cancelled"
    answered = [] if acted or not did else ["the model goes on"]
    return Verdict("took" if took else "repeated", ", ".join([*acted, *answered, kind]))
