"""A verdict in words: what was said, by which row of the contract, what is wrong, what is open now. Pure."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from holdshort.contract.codes import Code
from holdshort.contract.events import read_event
from holdshort.contract.inputs import INPUTS, RESUMES, row_and_verdict
from holdshort.contract.places import place_of
from holdshort.contract.rules import Rules
from holdshort.contract.thread import AGENT_EVENTS
from holdshort.contract.verdicts import Kind, Verdict
from holdshort.gatekeeper.cases import Answered
from holdshort.gatekeeper.transcript import Line, Moment

_SAYS: Final = {
    Kind.PASSED: "It goes on to clients as it came.",
    Kind.OPENED: "The run has paused: its questions are open, and nothing but an answer to all goes on.",
    Kind.IGNORED: "It changes nothing that anybody sees.",
    Kind.SETTLED: "What was open or in flight is over.",
    Kind.REOPENED: "The run that had the answer failed, so the questions are open again.",
    Kind.LOST: "The run was not heard of for its whole lease and is given up.",
    Kind.VIOLATED: "The agent broke the contract; its record is a dead letter.",
    Kind.UNREADABLE: "It cannot be used at all and is a dead letter.",
    Kind.ADMITTED: "It goes to the agent, byte for byte as it came.",
    Kind.REFUSED: "It does not reach the agent, and what is open stays open.",
    Kind.DUPLICATE: "It has been dealt with before; nothing happens again.",
    Kind.REPLAYED: "It has been dealt with before; its sender is told how things stand now.",
    Kind.FORGOTTEN: "What was open is over, and nothing of the thread is remembered.",
}


def explain(told: Answered, rules: Rules) -> str:
    """Some lines of text about one answer."""
    lines = _lines(told.moment, told.answer, rules)
    return "\n".join((_heading(told.where, told.moment), *(f"  {line}" for line in lines)))


def _heading(where: str, moment: Moment | None) -> str:
    if moment is None:
        return f"{where}: a deadline"
    record = moment.record
    at = datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
    key = (record.key or b"").decode(errors="replace")
    return f"{where}: {record.topic}/{record.partition}/{record.offset} at {at}, thread {key}"


def _lines(moment: Moment | None, answer: Mapping[str, Any], rules: Rules) -> Iterator[str]:
    kind = Kind(answer["verdict"])
    yield f"{kind}: {_SAYS[kind]}"
    if moment is not None:
        yield _because(moment, rules)
    if answer["code"] is not None:
        code = Code(answer["code"])
        yield f"{code}: {code.sentence} Sending it again helps: {code.retry}."
    for problem in answer["problems"]:
        yield _problem(problem)
    yield from _standing(answer)
    written = [_written(emit) for emit in answer["emits"]]
    yield f"Written: {', '.join(written)}." if written else "Nothing is written."


def _because(moment: Moment, rules: Rules) -> str:
    """The row that decided, or whose event it is."""
    record = moment.record
    if record.topic in (INPUTS, RESUMES):
        row, _ = row_and_verdict(moment.before, record, moment.now, moment.world, rules)
        return f"Decided by the row *{row.replace('_', ' ')}* for inputs."
    case = _event(moment, record, rules)
    if isinstance(case, Verdict):
        return "It is no event that can be placed."
    return f"An event {place_of(case)[0].value}: {case.type}."


def _event(moment: Moment, record: Line, rules: Rules) -> Any:
    agent = record.topic.removeprefix(AGENT_EVENTS)
    return read_event(moment.before, record, agent, moment.now, moment.world, rules)


def _problem(problem: Mapping[str, Any]) -> str:
    about = f" interrupt {problem['interruptId']}" if problem["interruptId"] else ""
    path = f" at {problem['path']}" if problem["path"] else ""
    says = problem["message"] or Code(problem["code"]).sentence
    return f"-{about}{path}: {says}" if about or path else f"- {says}"


def _standing(answer: Mapping[str, Any]) -> Iterator[str]:
    for how in ("settled", "superseded"):
        if answer[how] is not None:
            yield f"Pause {answer[how]} is {how}."
    generation = answer["generation"]
    if generation is None:
        yield "No pause is there now."
    elif answer["status"] == "resuming":
        yield f"Pause {generation} has been answered; its run is in flight."
    elif answer["open"]:
        yield f"Pause {generation} is open and waits for {', '.join(answer['open'])}."
    else:
        yield f"Pause {generation} is sealed: only an abandon ends it."


def _written(emit: Mapping[str, Any]) -> str:
    value = emit["value"]
    type_ = value.get("type") if isinstance(value, dict) else None
    return f"{emit['topic']} ({type_})" if type_ else str(emit["topic"])
