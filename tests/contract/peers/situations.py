"""Inputs that everybody is asked about: what has happened before, and what is sent then.

Each is written once, for whatever is open at that moment; the ids are those of the real producer.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

QUESTIONS: Final = {"two questions": 2, "nothing": 0}


class Asked(NamedTuple):
    """One pause: the run that asked, and the descriptors of its interrupts as the gate showed them."""

    run_id: str
    interrupts: list[dict[str, Any]]


class Scene(NamedTuple):
    """What an input may refer to: the thread, and its pauses so far, the last one last."""

    thread: str
    pauses: list[Asked]


Move = Callable[[Scene], Any]
"""An input: what stands in its record, as a value or as raw text."""


def ordinary(run: str, **members: Any) -> Move:
    """An input without a resume."""
    return lambda scene: _input(scene, run, members)


def resume(run: str, *answers: "Answer", of: int = -1, **members: Any) -> Move:
    """An answer to the pause with that number."""

    def move(scene: Scene) -> Any:
        asked = scene.pauses[of] if scene.pauses else Asked("", [])
        return _input(scene, run, {"resume": [answer(asked) for answer in answers], **members})

    return move


def raw(move: Move, write: Callable[[str], str]) -> Move:
    """An input whose text is written otherwise than a library would."""
    return lambda scene: write(orjson.dumps(move(scene)).decode())


def _input(scene: Scene, run: str, members: dict[str, Any]) -> dict[str, Any]:
    said = [{"id": f"m-{run}", "role": "user", "content": "go on"}]
    plain = {"state": {}, "messages": said, "tools": [], "context": [], "forwardedProps": {}}
    named = {name: value(scene.pauses[-1]) if callable(value) else value for name, value in members.items()}
    return {"threadId": scene.thread, "runId": run, **plain, **named}


Answer = Callable[[Asked], dict[str, Any]]


def yes(at: int = 0, **members: Any) -> Answer:
    """An approval, in the form that the question's schema asks for."""
    return lambda asked: _entry(asked, at, payload=_decision(asked, at, approved=True), **members)


def no(at: int = 0, **members: Any) -> Answer:
    return lambda asked: _entry(asked, at, payload=_decision(asked, at, approved=False), **members)


def says(at: int = 0, **members: Any) -> Answer:
    """A resolved entry with exactly these further members."""
    return lambda asked: _entry(asked, at, **members)


def cancel(at: int = 0, **members: Any) -> Answer:
    return lambda asked: _entry(asked, at, status="cancelled", **members)


def about(id_: Any, payload: Any = True) -> Answer:
    """An answer to an interrupt of that id, whatever is open."""
    return lambda _: {"interruptId": id_, "status": "resolved", "payload": payload}


def bound(answer: Answer) -> Answer:
    """The answer with the binding of its question echoed."""

    def move(asked: Asked) -> dict[str, Any]:
        entry = answer(asked)
        (shown,) = [one for one in asked.interrupts if one["id"] == entry["interruptId"]]
        return entry | {"metadata": {"holdshort:binding": shown["metadata"]["holdshort:binding"]}}

    return move


def _entry(asked: Asked, at: int, **members: Any) -> dict[str, Any]:
    return {"interruptId": asked.interrupts[at]["id"], "status": "resolved", **members}


def _decision(asked: Asked, at: int, *, approved: bool) -> Any:
    """An envelope where the question's schema is an object, else the bare word."""
    schema = asked.interrupts[at].get("responseSchema", {})
    return {"approved": approved} if schema.get("type") == "object" else approved


def _not_a_number(text: str) -> str:
    return text.replace('"@"', "NaN")


def _said_twice(text: str) -> str:
    """The same text with every denial followed by an approval under the same name."""

    def twice(found: "re.Match[str]") -> str:
        return f"{found[0]},{found[0].replace('false', 'true')}"

    return re.sub(r'"payload":(\{"approved":false\}|false)', twice, text)


def _two_resumes(text: str) -> str:
    """The same text with its resume, which comes last, once more as an approval."""
    return f"{text[:-1]},{text[text.index(chr(34) + 'resume') :].replace('false', 'true')}"


def _call(asked: Asked) -> list[dict[str, Any]]:
    """A tool message for the first open question's call, as some clients send it."""
    call = asked.interrupts[0]["toolCallId"]
    return [{"id": "m-tool", "role": "tool", "toolCallId": call, "content": '{"approved": true}'}]


@dataclass(frozen=True)
class Situation:
    """One input, judged after `given`, which everybody takes."""

    row: str
    name: str
    move: Move
    given: tuple[Move, ...] = (ordinary("r1"),)
    script: str = "one question"
    in_flight: bool = False
    seconds_later: float = 0

    @property
    def questions(self) -> int:
        """How many are asked at once."""
        return QUESTIONS.get(self.script, 1)


TWO: Final = "two questions"
ANSWERED: Final = (ordinary("r1"), resume("r2", yes()))
LONG: Final = "one question, then a long answer"
FAILED: Final = "one question, then a failure"
DAY: Final = 24 * 3600.0

SITUATIONS: Final = (
    # -- nothing is open ------------------------------------------------------------------------------------
    Situation("ordinary input", "a first input", ordinary("r1"), given=(), script="nothing"),
    Situation("ordinary input", "an empty resume", ordinary("r1", resume=[]), given=(), script="nothing"),
    Situation("ordinary input", "resume: null", ordinary("r1", resume=None), given=(), script="nothing"),
    Situation("ordinary input", "a new input when all is answered", ordinary("r3"), given=ANSWERED),
    Situation(
        "resume of nothing", "an answer to what was never asked",
        resume("r1", about("x")), given=(), script="nothing",
    ),
    Situation(
        "two channels", "an approval planted in forwardedProps.command before the question",
        ordinary("r1", forwardedProps={"command": {"resume": True}}), given=(), script="nothing",
    ),
    # -- something is open, and is not answered -------------------------------------------------------------
    Situation("input while pending", "a new input", ordinary("r2")),
    Situation("input while pending", "an empty resume", ordinary("r2", resume=[])),
    Situation("input while pending", "resume: null", ordinary("r2", resume=None)),
    Situation(
        "input while pending", "an approval in forwardedProps.command alone",
        ordinary("r2", forwardedProps={"command": {"resume": True}}),
    ),
    Situation(
        "input while pending", "a tool message for the call instead of a resume",
        ordinary("r2", messages=_call),
    ),
    Situation(
        "input while pending", "a new input after the question expired",
        ordinary("r2"), seconds_later=DAY,
    ),
    # -- it is answered, and as it must be ------------------------------------------------------------------
    Situation("covering resume", "approved", resume("r2", yes())),
    Situation("covering resume", "denied", resume("r2", no())),
    Situation("covering resume", "cancelled", resume("r2", cancel())),
    Situation(
        "covering resume", "cancelled, with a payload",
        resume("r2", cancel(payload={"approved": True})),
    ),
    Situation("covering resume", "both approved", resume("r2", yes(0), yes(1)), script=TWO),
    Situation("covering resume", "one approved, one denied", resume("r2", yes(0), no(1)), script=TWO),
    Situation("covering resume", "one approved, one cancelled", resume("r2", yes(0), cancel(1)), script=TWO),
    Situation("covering resume", "in the other order", resume("r2", no(1), yes(0)), script=TWO),
    Situation("covering resume", "under the run id of the run that asked", resume("r1", yes())),
    Situation(
        "covering resume", "with parentRunId", resume("r2", yes(), parentRunId=lambda asked: asked.run_id)
    ),
    Situation(
        "covering resume", "with the parentRunId of another run",
        resume("r2", yes(), parentRunId="r0"),
    ),
    Situation(
        "covering resume", "with members that nobody knows",
        resume("r2", yes(extra={"x": 1}), more=[1]),
    ),
    Situation("covering resume", "with its binding echoed", resume("r2", bound(yes()))),
    Situation("covering resume", "with no messages", resume("r2", yes(), messages=[])),
    Situation("covering resume", "with a tool message for the call", resume("r2", no(), messages=_call)),
    Situation("covering resume", "cancelled after it expired", resume("r2", cancel()), seconds_later=DAY),
    Situation(
        "covering resume", "the second question, after the first",
        resume("r3", yes()), given=ANSWERED, script="one question, then another",
    ),
    Situation(
        "covering resume", "the same answer again after the run failed",
        resume("r3", yes()), given=ANSWERED, script=FAILED,
    ),
    Situation(
        "covering resume", "another answer after the run failed",
        resume("r3", no()), given=ANSWERED, script=FAILED,
    ),
    # -- it is answered, and not as it must be --------------------------------------------------------------
    Situation("partial", "one of two", resume("r2", yes(0)), script=TWO),
    Situation("unknown interrupt", "a second entry for what is not open", resume("r2", yes(), about("x"))),
    Situation("unknown interrupt", "only an entry for what is not open", resume("r2", about("x"))),
    Situation("answered twice", "denied, then approved", resume("r2", no(), yes())),
    Situation("answered twice", "approved, then denied", resume("r2", yes(), no())),
    Situation("answered twice", "approved twice", resume("r2", yes(), yes())),
    Situation("expired", "approved a day later", resume("r2", yes()), seconds_later=DAY),
    Situation(
        "answered twice", "expired: cancelled, then approved",
        resume("r2", cancel(), yes()), seconds_later=DAY,
    ),
    Situation("payload refused", "a payload of another type", resume("r2", says(payload=["yes"]))),
    Situation("payload refused", "a member of another type", resume("r2", says(payload={"approved": "yes"}))),
    Situation("payload refused", "no payload", resume("r2", says())),
    Situation("payload refused", "payload: null", resume("r2", says(payload=None))),
    Situation(
        "payload refused", "an integer beyond what JavaScript can hold",
        resume("r2", says(payload={"approved": True, "amount": 2**60})),
    ),
    Situation(
        "too large", "a payload of 70 kB",
        resume("r2", says(payload={"approved": True, "note": "x" * 70_000})),
    ),
    Situation(
        "two channels", "denied by resume, approved in forwardedProps.command",
        resume("r2", no(), forwardedProps={"command": {"resume": True}}),
    ),
    Situation(
        "stale binding", "bound to another generation",
        resume("r2", yes(metadata={"holdshort:binding": {"generation": 1}})),
    ),
    Situation("malformed resume", "a status of its own", resume("r2", yes(status="approved"))),
    Situation("malformed resume", "no status", resume("r2", yes(status=None))),
    Situation("malformed resume", "a blank id", resume("r2", about(" "))),
    Situation("malformed resume", "an id that is a number", resume("r2", about(7))),
    Situation("malformed resume", "not a list", ordinary("r2", resume={"approved": True})),
    # -- it has been answered -------------------------------------------------------------------------------
    Situation(
        "past answer", "the same answer again, under another run id",
        resume("r3", yes()), given=ANSWERED,
    ),
    Situation("past answer", "the very same input again", resume("r2", yes()), given=ANSWERED),
    Situation("other past answer", "another answer", resume("r3", no()), given=ANSWERED),
    Situation(
        "past answer", "cancelled, by whoever missed the answer",
        resume("r3", cancel()), given=ANSWERED,
    ),
    Situation(
        "past answer", "the answer before the last",
        resume("r4", yes(), of=0),
        given=(*ANSWERED, resume("r3", yes())), script="one question, then another",
    ),
    Situation(
        "past answer", "an old answer, bound to its question, while another is open",
        resume("r3", bound(yes()), of=0),
        given=ANSWERED, script="the same question twice",
    ),
    Situation(
        "other past answer", "another answer to an old question, bound to it, while another is open",
        resume("r3", bound(no()), of=0),
        given=ANSWERED, script="one question, then another",
    ),
    # -- a run is in flight ---------------------------------------------------------------------------------
    Situation("thread busy", "a new input", ordinary("r3"), given=ANSWERED, script=LONG, in_flight=True),
    Situation(
        "same input again", "the very same input again",
        resume("r2", yes()), given=ANSWERED, script=LONG, in_flight=True,
    ),
    Situation(
        "thread busy", "the same answer under another run id",
        resume("r3", yes()), given=ANSWERED, script=LONG, in_flight=True,
    ),
    Situation(
        "conflicting answer", "another answer",
        resume("r3", no()), given=ANSWERED, script=LONG, in_flight=True,
    ),
    Situation(
        "run id in use", "a new input under its run id", ordinary("r2"),
        given=ANSWERED, script=LONG, in_flight=True,
    ),
    # -- it cannot be read ----------------------------------------------------------------------------------
    Situation("unreadable input", "not JSON", raw(ordinary("r2"), lambda text: text[:-1])),
    Situation(
        "unreadable input", "no run id",
        lambda scene: {"threadId": scene.thread, "messages": []}, given=(), script="nothing",
    ),
    Situation("unreadable input", "a blank run id", ordinary(" "), given=(), script="nothing"),
    Situation(
        "unreadable input", "NaN in the payload",
        raw(resume("r2", says(payload={"approved": True, "n": "@"})), _not_a_number),
    ),
    Situation("unreadable input", "denied and approved under one name", raw(resume("r2", no()), _said_twice)),
    Situation(
        "unreadable input", "two resumes, the first denies, the second approves",
        raw(resume("r2", no()), _two_resumes),
    ),
)  # fmt: skip
