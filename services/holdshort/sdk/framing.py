"""What a run says on the wire: the agent's events as they came, and ours where AG-UI asks for more. Pure.

AG-UI (specification 1.0, lifecycle): a run begins with RUN_STARTED and ends with RUN_FINISHED or RUN_ERROR;
a run that breaks off has no outcome, so what is made up for it is always a RUN_ERROR. The concept page on
interrupts adds: the messages and the state stand in snapshots before the pause, so that whoever resumes the
run, from wherever, has them.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from holdshort.contract.messages import HEARTBEAT as HEARTBEAT_NAME
from holdshort.contract.messages import LEGACY_INTERRUPT, PROTOCOL_VERSION, usable
from holdshort.sdk.codes import AGENT_FAILED, TRUNCATED
from holdshort.sdk.transcript import Transcript

HEARTBEAT: Final = orjson.dumps({"type": "CUSTOM", "name": HEARTBEAT_NAME, "value": None})
LARGEST_SNAPSHOT: Final = 1024 * 1024 - 4096  # what the gate takes, less key and headers


class MendAgentError(ValueError):
    """The agent yields something that is not an AG-UI event of this run."""


def run_error(code: str, message: str) -> bytes:
    """A RUN_ERROR of ours."""
    return orjson.dumps({"type": "RUN_ERROR", "message": message, "code": code})


class Framing:
    """One run from its first event to its last. Every method returns what is to be published, in order.

    `transcript` is None where the conversation is not known here; then no snapshot is made up.
    """

    def __init__(self, thread: str, run_id: str, transcript: Transcript | None) -> None:
        self.ended = False
        self._thread = thread
        self._run_id = run_id
        self._transcript = transcript
        self._begun = False
        self._paused = False

    def said(self, event: Any) -> Iterator[bytes]:
        """One event of the agent's: a pydantic model of ag_ui, a dict, or JSON as text or bytes.

        Raises MendAgentError if it is none of these, or of another thread. After the end nothing is said.
        """
        value, parsed = _read(event)
        if parsed.get("threadId") != self._thread and not _blank(parsed.get("threadId")):
            raise MendAgentError("an event names another thread")
        if self.ended:
            return
        yield from self._opening(parsed)
        self._fold(parsed)
        yield from self._closing(parsed)
        yield value

    def broke_off(self) -> Iterator[bytes]:
        """The agent says no more. If it has not said how its run ended, that is a failure."""
        yield from self.failed(AGENT_FAILED, TRUNCATED)

    def failed(self, code: str, message: str) -> Iterator[bytes]:
        """The run ends here and thus; nothing if it had ended already."""
        if not self.ended:
            yield from self._opening({})
            self.ended = True
            yield run_error(code, message)

    def _opening(self, event: dict[str, Any]) -> Iterator[bytes]:
        if not self._begun and event.get("type") != "RUN_STARTED":
            start = {
                "type": "RUN_STARTED",
                "threadId": self._thread,
                "runId": self._run_id,
                "protocolVersion": PROTOCOL_VERSION,
            }
            yield orjson.dumps(start)
        self._begun = True

    def _fold(self, event: dict[str, Any]) -> None:
        if self._transcript is None:
            return
        try:
            self._transcript.fold(event)
        except (AttributeError, KeyError, TypeError):
            self._transcript = None  # not AG-UI's messages: what they come to is not known here

    def _closing(self, event: dict[str, Any]) -> Iterator[bytes]:
        """Before a pause, the snapshots that are missing."""
        type_ = event["type"]
        self.ended = type_ in ("RUN_FINISHED", "RUN_ERROR")
        if type_ == "CUSTOM" and event.get("name") == LEGACY_INTERRUPT:
            self._paused = True
        if type_ == "RUN_FINISHED" and (self._paused or _is_interrupt(event)) and self._transcript:
            yield from _missing_snapshots(self._transcript)


def _blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and usable(value) is None)


def _is_interrupt(event: dict[str, Any]) -> bool:
    outcome = event.get("outcome")
    return isinstance(outcome, dict) and outcome.get("type") == "interrupt"


def _missing_snapshots(transcript: Transcript) -> Iterator[bytes]:
    """Too large ones are left out: the gate would not take them, and then says that they are missing."""
    snapshots: list[dict[str, Any]] = []
    if transcript.state_changed and transcript.state_known:
        snapshots.append({"type": "STATE_SNAPSHOT", "snapshot": transcript.state})
    if transcript.messages_changed:
        snapshots.append({"type": "MESSAGES_SNAPSHOT", "messages": transcript.snapshot()})
    for snapshot in snapshots:
        if len(value := orjson.dumps(snapshot)) <= LARGEST_SNAPSHOT:
            yield value


def _read(event: Any) -> tuple[bytes, dict[str, Any]]:
    value = _encoded(event)
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise MendAgentError("an event is not JSON") from error
    if not isinstance(parsed, dict) or not isinstance(parsed.get("type"), str):
        raise MendAgentError("an event is a JSON object with a string `type`")
    return value, parsed


def _encoded(event: Any) -> bytes:
    """As AG-UI's own encoder writes it; what is JSON already stays as it is."""
    if isinstance(event, bytes):
        return event
    if isinstance(event, str):
        return event.encode()
    if isinstance(event, dict):
        try:
            return orjson.dumps(event)
        except orjson.JSONEncodeError as error:
            raise MendAgentError("an event holds something that is not JSON") from error
    if callable(dump := getattr(event, "model_dump_json", None)):
        return bytes(dump(by_alias=True, exclude_none=True), "utf-8")
    raise MendAgentError(f"{type(event).__name__} is not an AG-UI event")
