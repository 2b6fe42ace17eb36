"""Transcripts as tests: `>>` a record, `<<` what the gate must say of it.

    play = Playbook()
    play >> agent.starts("r1")
    play >> agent.interrupts("r1", "a", "b") << opened("a", "b")
    play >> client.resumes("r2", a=True) << refused("PARTIAL_RESUME", about=["b"])
    play >> client.resumes("r3", a=True, b=cancelled) << admitted()

It drives the very code that production runs. A record without `<<` prepares the scene and must go well.
Every record comes a second after the last, in thread "t", to or from agent "default"; `.but(...)` changes
anything about a record, `.adding(...)` its value. Pauses are counted from 1: `generation=2`, `settled=1`.
After every record the state is written and read back, so that each test also tests restoring; and what is
shown must be well framed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import orjson
from tests.expected import Expected
from tests.readers import Reader

from holdshort.contract.rules import AgentRules, Rules
from holdshort.contract.state import NOTHING, Pause, Run, ThreadState
from holdshort.contract.thread import decide
from holdshort.contract.verdicts import Verdict
from holdshort.gatekeeper.transcript import Transcript

START: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
START_MS: Final = int(START.timestamp() * 1000)
SECOND: Final = 1000
MOST_BYTES: Final = 2 * 1024 * 1024
WENT_WELL: Final = ("admitted", "passed", "opened", "ignored", "settled", "reopened", "lost")


def moment(seconds: float) -> str:
    """The time so many seconds after the first record could have come."""
    return (START + timedelta(seconds=seconds)).isoformat()


def rules(**changes: Any) -> Rules:
    """The default rules on one partition; `agents` may be names, or names with their rules."""
    agents = changes.pop("agents", None)
    if agents is not None:
        agents = agents if isinstance(agents, Mapping) else {name: AgentRules() for name in agents}
        changes["agents"] = agents
    return Rules(**{"partitions": 1, **changes})


# -- records ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nth:
    """The generation of the thread's n-th pause, known only when the record is played."""

    number: int


@dataclass(frozen=True)
class Said:
    """One record; None means the transcript's own default. `after` is in seconds since the last record."""

    topic: str
    value: Any = None
    key: str | None = "t"
    headers: Mapping[str, Any] = field(default_factory=dict)
    echo: bool | str = False
    after: float = 1
    at: Any = None
    offset: int | None = None
    partition: int | None = None
    clock: Any = None
    inputs_end: int | None = None

    def but(self, **fields: Any) -> "Said":
        return replace(self, **fields)

    def adding(self, **members: Any) -> "Said":
        """The record with more members in its value."""
        return replace(self, value={**self.value, **members})

    def having(self, **headers: Any) -> "Said":
        """The record with more headers: `run=` is `holdshort-run`."""
        named = {f"holdshort-{name.replace('_', '-')}": value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **named})

    def padded(self, size: int) -> "Said":
        """The record with spaces after its value, so that it has that many bytes in all."""
        raw = orjson.dumps(self.value).decode()
        rest = sum(len(name) + len(str(value)) for name, value in self.headers.items())
        return replace(self, value=raw + " " * (size - len(raw) - rest - len(self.key or "")))

    def echoing(self, number: int, **members: Any) -> "Said":
        """A resume of which every entry echoes the binding of the n-th pause."""
        binding = {"generation": Nth(number), **members}
        entries = [
            {**entry, "metadata": {**entry.get("metadata", {}), "holdshort:binding": binding}}
            for entry in self.value["resume"]
        ]
        return self.adding(resume=entries)


@dataclass(frozen=True)
class Passes:
    """Time that passes without a record."""

    seconds: float


def later(*, seconds: float = 0, minutes: float = 0, hours: float = 0) -> Passes:
    return Passes(seconds + 60 * minutes + 3600 * hours)


@dataclass(frozen=True)
class Answer:
    """One entry of a resume, without its id."""

    status: str
    members: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, interrupt_id: str) -> dict[str, Any]:
        return {"interruptId": interrupt_id, "status": self.status, **self.members}


cancelled: Final = Answer("cancelled")
without_payload: Final = Answer("resolved")


def resolved(payload: Any, **metadata: Any) -> Answer:
    return Answer("resolved", {"payload": payload, **({"metadata": metadata} if metadata else {})})


def entries(answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of a resume: each id with its payload, or with an Answer."""
    made = {id_: one if isinstance(one, Answer) else resolved(one) for id_, one in answers.items()}
    return [answer.entry(id_) for id_, answer in made.items()]


def question(id_: str, **members: Any) -> dict[str, Any]:
    """An interrupt's descriptor."""
    return {"id": id_, "reason": "test:question", **members}


def _input(topic: str, run: str, thread: str, **members: Any) -> Said:
    value = {"threadId": thread, "runId": run, "messages": [], "tools": [], "context": [], **members}
    return Said(topic, value, thread)


@dataclass(frozen=True)
class Client:
    """Whoever writes to `inputs`."""

    thread: str = "t"

    def asks(self, run: str, **members: Any) -> Said:
        """An ordinary input."""
        return _input("inputs", run, self.thread, **members)

    def resumes(self, run: str, answers: Mapping[str, Any] | None = None, **by_id: Any) -> Said:
        """An answer to everything open: each id with its payload, or with an Answer."""
        return _input("inputs", run, self.thread, resume=entries({**(answers or {}), **by_id}))


@dataclass(frozen=True)
class Team:
    """Whoever writes to `resumes`: the router, or an operator."""

    thread: str = "t"

    def resumes(
        self, run: str, answers: Mapping[str, Any] | None = None, *, generation: int = 1, **by_id: Any
    ) -> Said:
        said = _input("resumes", run, self.thread, resume=entries({**(answers or {}), **by_id}))
        return said.having(generation=Nth(generation))

    def abandons(self, generation: int | None = None, run: str = "hs-end") -> Said:
        """An abandon of the n-th pause, or (without) of the run that `.having(...)` names."""
        return self._ends("abandon", generation, run)

    def forgets(self, generation: int | None = None, run: str = "hs-end") -> Said:
        """A forget: of a thread with the n-th pause, the run that `.having(...)` names, or neither."""
        return self._ends("forget", generation, run)

    def _ends(self, action: str, generation: int | None, run: str) -> Said:
        said = _input("resumes", run, self.thread).having(action=action)
        return said if generation is None else said.having(generation=Nth(generation))


@dataclass(frozen=True)
class Agent:
    """An agent; with `echo` it names its runs as the SDK does, else by the run id in the event."""

    name: str = "default"
    thread: str = "t"
    echo: bool = False

    def _says(self, type_: str, run: str | None, **members: Any) -> Said:
        value = {"type": type_, **members}
        said = Said(f"agent-events.{self.name}", value, self.thread, echo=self.echo)
        return said.having(run=run) if run else said

    def _ends(self, run: str, outcome: Any) -> Said:
        end = {} if outcome is None else {"outcome": outcome}
        return self._says("RUN_FINISHED", run, threadId=self.thread, runId=run, **end)

    def starts(self, run: str) -> Said:
        return self._says("RUN_STARTED", run, threadId=self.thread, runId=run)

    def says(self, text: str = "hello", run: str | None = "r1") -> Said:
        return self._says("TEXT_MESSAGE_CONTENT", run, messageId="m", delta=text)

    def event(self, type_: str, run: str | None = "r1", **members: Any) -> Said:
        return self._says(type_, run, **members)

    def calls(self, call: str, tool: str, run: str | None = "r1") -> Said:
        return self._says("TOOL_CALL_START", run, toolCallId=call, toolCallName=tool)

    def argues(self, call: str, delta: str, run: str | None = "r1") -> Said:
        return self._says("TOOL_CALL_ARGS", run, toolCallId=call, delta=delta)

    def results(self, call: str, run: str | None = "r1") -> Said:
        return self._says("TOOL_CALL_RESULT", run, toolCallId=call, messageId="m", content="done")

    def beats(self, run: str = "r1") -> Said:
        return self._says("CUSTOM", run, name="holdshort:heartbeat", value=None)

    def pauses_legacy(self, value: Any, run: str = "r1") -> Said:
        return self._says("CUSTOM", run, name="on_interrupt", value=value)

    def interrupts(self, run: str, *questions: str | dict[str, Any]) -> Said:
        asked = [question(one) if isinstance(one, str) else one for one in questions]
        return self._ends(run, {"type": "interrupt", "interrupts": asked})

    def finishes(self, run: str, outcome: Any = None) -> Said:
        return self._ends(run, outcome)

    def fails(self, run: str | None) -> Said:
        return self._says("RUN_ERROR", run, message="it broke")


agent: Final = Agent()
sdk: Final = Agent(echo=True)
client: Final = Client()
team: Final = Team()


# -- the playbook -------------------------------------------------------------------------------------------


class Playbook:
    """A gate, what it was told, and what it said."""

    def __init__(self, given: Rules | None = None, **changes: Any) -> None:
        self.transcript = Transcript(given or rules(**changes))
        self.reader = Reader()
        self.said: list[str] = []
        self.unchecked: list[dict[str, Any]] = []
        self.got: dict[str, Any] = {}
        self.at = START_MS
        self._admissions: dict[tuple[Any, str], str] = {}
        self._generations: dict[str | None, list[int]] = {}

    def __rshift__(self, said: Said | Passes) -> "Playbook":
        """Play a record, or let time pass; the last record must have gone well if nobody looked at it."""
        self._unexpected()
        line, told = self._line(said)
        self.said.append(f"   >> {told}")
        answers = self.transcript.play(line)
        thread = said.key if isinstance(said, Said) else "t"
        self._restore()
        self.unchecked = [self._understood(answer, thread) for answer in answers]
        for answer in answers:
            self.reader.read(answer["emits"])
        self._remember(thread, answers)
        return self

    def __lshift__(self, expected: Expected) -> "Playbook":
        """What the gate must have said; of several answers (when time passes) the next."""
        if not self.unchecked:
            raise AssertionError(self._text("nothing more was said"))
        self.got = self.unchecked.pop(0)
        differences = expected.differences(self.got)
        self.said.append((" x " if differences else "   ") + f"<< {_told(self.got)}")
        if differences:
            raise AssertionError(self._text(*differences))
        return self

    def __call__(self, *said: Said | Passes) -> "Playbook":
        """Play several records, all of which must go well."""
        for one in said:
            _ = self >> one
        self._unexpected()
        return self

    def verdict(self, said: Said, *headers: tuple[str, bytes]) -> Verdict:
        """The verdict on a record that is not played, for what only bytes show."""
        line, _ = self._line(said)
        record = self.transcript._record(line)
        record = record._replace(headers=(*record.headers, *headers))
        world = self.transcript._world(record, line)
        state = self.state(record.key.decode() if record.key else "")
        return decide(state, record, record.timestamp, world, self.transcript.rules)

    @property
    def silent(self) -> bool:
        """Whether nothing more was said than was looked at."""
        return not self.unchecked

    def state(self, thread: str = "t") -> ThreadState:
        return self.transcript.threads.get(thread.encode(), NOTHING)

    def pending(self, thread: str = "t") -> set[str]:
        """The interrupts that a client which reads everything holds open."""
        return self.reader.pending.get(thread, set())

    def nth(self, number: int, thread: str | None = "t") -> int:
        """The generation of the thread's n-th pause; one that never was for a number beyond."""
        known = self._generations.get(thread, [])
        return known[number - 1] if 0 < number <= len(known) else 10**15 + number

    def events(self) -> list[Any]:
        """The values shown by the answer last looked at."""
        return [emit["value"] for emit in self.got["emits"] if emit["topic"] == "events"]

    def error(self) -> dict[str, Any]:
        """`metadata.holdshort` of the RUN_ERROR shown by the answer last looked at."""
        found: dict[str, Any] = self.events()[1]["metadata"]["holdshort"]
        return found

    def emit(self, topic: str) -> dict[str, Any]:
        """The one record emitted to that topic by the answer last looked at."""
        (found,) = [emit for emit in self.got["emits"] if emit["topic"] == topic]
        return dict(found)

    # -- how it works ---------------------------------------------------------------------------------------

    def _line(self, said: Said | Passes) -> tuple[dict[str, Any], str]:
        if isinstance(said, Passes):
            self.at += round(said.seconds * SECOND)
            return {"at": self.at}, f"{said.seconds:g} seconds pass"
        self.at += round(said.after * SECOND)
        line = {
            "topic": said.topic,
            "at": self.at if said.at is None else said.at,
            "value": self._resolved(said.value, said.key),
            "key": said.key,
            "headers": self._headers(said),
        }
        optional = {name: getattr(said, name) for name in ("offset", "partition", "clock", "inputs_end")}
        line |= {name: value for name, value in optional.items() if value is not None}
        return line, f"{said.topic} {str(line['value'])[:300]} {line['headers'] or ''}"

    def _headers(self, said: Said) -> dict[str, Any]:
        headers = {name: self._resolved(value, said.key) for name, value in said.headers.items()}
        if said.echo:
            run = (said.key, str(headers.get("holdshort-run")))
            headers["holdshort-admission"] = said.echo if said.echo is not True else self._admissions[run]
        return headers

    def _resolved(self, value: Any, thread: str | None) -> Any:
        match value:
            case Nth(number):
                return self.nth(number, thread)
            case dict():
                return {name: self._resolved(one, thread) for name, one in value.items()}
            case list():
                return [self._resolved(one, thread) for one in value]
            case _:
                return value

    def _restore(self) -> None:
        """Go on from what the changelog would hold; it must be the same, and must fit in a record."""
        for key, state in list(self.transcript.threads.items()):
            written = msgspec.json.encode(state)
            assert len(written) < MOST_BYTES, self._text("the state does not fit in a record")
            restored = msgspec.json.decode(written, type=ThreadState)
            assert msgspec.json.encode(restored) == written
            self.transcript.keep(key, restored)

    def _remember(self, thread: str | None, answers: Iterable[Mapping[str, Any]]) -> None:
        """What an agent is told to echo, for agents that do."""
        for emit in (emit for answer in answers for emit in answer["emits"]):
            if emit["topic"].startswith("runs."):
                run = emit["headers"]["holdshort-run"]
                self._admissions[thread, run] = emit["headers"]["holdshort-admission"]

    def _understood(self, answer: Mapping[str, Any], thread: str | None) -> dict[str, Any]:
        """The answer with pauses counted from 1, and what it emits in a word."""
        known = self._generations.setdefault(thread, [])
        if answer["generation"] not in (None, *known):
            known.append(answer["generation"])
        for emit in answer["emits"]:
            assert _size(emit) < MOST_BYTES, self._text("an emit does not fit in a record")
        counted = ("generation", "settled", "superseded")
        return {
            **answer,
            **{name: known.index(answer[name]) + 1 if answer[name] in known else None for name in counted},
            "about": [problem["interruptId"] for problem in answer["problems"]],
            "emitted": [emit["topic"] for emit in answer["emits"]],
            "shown": [emit["value"]["type"] for emit in answer["emits"] if emit["topic"] == "events"],
            "under": list(_runs(answer["emits"])),
            "dead": [
                emit["headers"]["holdshort-dead-letter-code"]
                for emit in answer["emits"]
                if emit["topic"] == "dead-letters"
            ],
        }

    def _unexpected(self) -> None:
        unlooked = [answer for answer in self.unchecked if answer["verdict"] not in WENT_WELL]
        if unlooked:
            raise AssertionError(self._text(f"said, and nobody looked: {_told(unlooked[0])}"))

    def _text(self, *faults: str) -> str:
        return "\n".join(["", *self.said, *(f"      {fault}" for fault in faults)])


def pause_of(play: Playbook, thread: str = "t") -> Pause:
    """The pause that is there."""
    pause = play.state(thread).pause
    assert pause is not None
    return pause


def run_of(play: Playbook, thread: str = "t") -> Run:
    """The run in flight."""
    run = play.state(thread).run
    assert run is not None
    return run


def _size(emit: Mapping[str, Any]) -> int:
    value = emit["value"]
    written = value.encode() if isinstance(value, str) else orjson.dumps(value)
    return len(written) + sum(len(name) + len(one) for name, one in emit["headers"].items())


def _runs(emits: Iterable[dict[str, Any]]) -> dict[str, None]:
    return {emit["headers"]["holdshort-run"]: None for emit in emits if emit["topic"] == "events"}


def _told(got: Mapping[str, Any]) -> str:
    words = [got["verdict"], got["code"], got["status"], f"open {got['open']}" if got["open"] else None]
    words += [f"{name} {got[name]}" for name in ("generation", "settled", "superseded") if got[name]]
    words += [f"shows {got['shown']} of {got['under']}" if got["shown"] else None]
    words += [f"emits {got['emitted']}" if got["emitted"] else None]
    return " ".join(word for word in words if word)
