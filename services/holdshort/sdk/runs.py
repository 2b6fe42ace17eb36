"""A run as it comes from `runs.<agent>`, and the input that an agent makes of it. Pure."""

from dataclasses import dataclass
from typing import Any, Self

import orjson

from holdshort.contract.messages import ADMISSION, RUN, START_BY, Record, header, text_header, usable
from holdshort.sdk.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Run:
    """One admitted input. `admission` is its name, echoed byte for byte on every event of the run.

    `start_by` is in ms since the epoch: it must not be started later, because the gate gives it up then.
    """

    thread: str
    run_id: str
    admission: str
    start_by: int | None
    partition: int
    offset: int
    value: bytes

    @classmethod
    def read(cls, record: Record) -> Self | None:
        """The run of a record; None for what the gate cannot have written, since it could not be answered."""
        admission = text_header(record.headers, ADMISSION)
        run_id = text_header(record.headers, RUN)
        if admission is None or run_id is None or record.key is None or record.value is None:
            return None
        start_by = header(record.headers, START_BY) or b""
        return cls(
            thread=record.key.decode(errors="replace"),
            run_id=run_id,
            admission=admission,
            start_by=int(start_by) if start_by.isdigit() else None,
            partition=record.partition,
            offset=record.offset,
            value=record.value,
        )

    def is_late(self, now_ms: int) -> bool:
        return self.start_by is not None and now_ms >= self.start_by

    def headers(self) -> dict[str, str]:
        """The headers of each of its events."""
        return {"content-type": "application/json", RUN: self.run_id, ADMISSION: self.admission}


def transcript_of(parsed: dict[str, Any]) -> Transcript | None:
    """The conversation that the input begins with; None where the input does not tell it.

    A resume without messages is meant for an agent that keeps the conversation itself.
    """
    messages = parsed.get("messages")
    if not isinstance(messages, list) or (not messages and parsed.get("resume")):
        return None
    return Transcript(messages, parsed.get("state"))


def as_command(parsed: dict[str, Any]) -> dict[str, Any]:
    """The input with its answer where an agent with legacy interrupts looks: forwardedProps.command.resume.

    The payload of the one answer, or a list of payloads in the order of the interrupts; None stands for a
    cancelled one, which no such agent takes for a yes.
    """
    entries = parsed.get("resume")
    if not isinstance(entries, list) or not entries:
        return parsed
    answers = [entry.get("payload") if entry.get("status") == "resolved" else None for entry in entries]
    props = parsed.get("forwardedProps")
    props = props if isinstance(props, dict) else {}
    command = props.get("command")
    command = command if isinstance(command, dict) else {}
    answer = answers[0] if len(answers) == 1 else answers
    rest = {name: value for name, value in parsed.items() if name != "resume"}
    return {**rest, "forwardedProps": {**props, "command": {**command, "resume": answer}}}


def parse_input(value: bytes) -> dict[str, Any]:
    """The input as parsed JSON; the gate lets nothing else pass. Raises ValueError."""
    parsed = orjson.loads(value)
    if not isinstance(parsed, dict) or usable(parsed.get("threadId")) is None:
        raise ValueError("not a RunAgentInput")
    return parsed
