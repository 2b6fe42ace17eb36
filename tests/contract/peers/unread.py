"""What agents may say that the gate passes or takes, and the reference client cannot read."""

import json
from dataclasses import dataclass
from typing import Any, Final

from tests.contract.peers.peer import Peer
from tests.contract.peers.streams import emitted
from tests.playbook import Playbook, Said, client, later, sdk


@dataclass(frozen=True)
class Unread:
    """Events of a run, the client's words about them, and the gate's about the next ordinary input."""

    says: str
    events: tuple[Any, ...]
    client: str
    next: str
    why: str


INTRODUCTION: Final = """\
The client reads what the gate shows in histories, and after every record holds open what the gate does.
What it cannot read is what an agent said against AG-UI's schema or in the wrong order:
the gate judges how runs begin, pause and end, and passes the rest.
There the client gives the run up and holds nothing open.
The gate does: the next input is refused, and the refusal lists what is open."""
QUESTION: Final[dict[str, Any]] = {"id": "a", "reason": "x"}
MISTYPED: Final = (
    "The gate opens on a usable id and reason alone, for a pause must never fail open; "
    "what else a descriptor holds is shown as the agent wrote it."
)
WHOLE: Final = "The gate judges how a run begins and ends; what it says in between is passed as it came."


def _asks(**members: Any) -> Said:
    return sdk.interrupts("r1", QUESTION | members)


UNREAD: Final = (
    Unread(
        "a question whose message is null",
        (sdk.starts("r1"), _asks(message=None)),
        "outcome.interrupts.0.message: Invalid input: expected string, received null",
        "PENDING_INTERRUPTS",
        MISTYPED,
    ),
    Unread(
        "a question whose toolCallId is a number",
        (sdk.starts("r1"), _asks(toolCallId=9)),
        "outcome.interrupts.0.toolCallId: Invalid input: expected string, received number",
        "PENDING_INTERRUPTS",
        MISTYPED,
    ),
    Unread(
        "a question whose expiresAt is a number",
        (sdk.starts("r1"), _asks(expiresAt=5)),
        "outcome.interrupts.0.expiresAt: Invalid input: expected string, received number",
        "PENDING_INTERRUPTS",
        MISTYPED,
    ),
    Unread(
        "a question whose metadata is no object",
        (sdk.starts("r1"), _asks(metadata=7)),
        "outcome.interrupts.0.metadata: Invalid input",
        "PENDING_INTERRUPTS",
        MISTYPED,
    ),
    Unread(
        "a question while a tool call is open",
        (sdk.starts("r1"), sdk.calls("c", "pay"), _asks(toolCallId="c")),
        "Cannot send 'RUN_FINISHED' while tool calls are still active: c",
        "PENDING_INTERRUPTS",
        WHOLE,
    ),
    Unread(
        "a message without a beginning",
        (sdk.starts("r1"), sdk.says(), _asks()),
        "Cannot send 'TEXT_MESSAGE_CONTENT' event: No active text message found with ID 'm'.",
        "PENDING_INTERRUPTS",
        WHOLE,
    ),
    Unread(
        "a message in the middle of which the run was lost for a while",
        (
            sdk.starts("r1"),
            sdk.event("TEXT_MESSAGE_START", messageId="m", role="assistant"),
            later(minutes=20),
            sdk.says(),
            sdk.event("TEXT_MESSAGE_END", messageId="m"),
            _asks(),
        ),
        "Cannot send 'TEXT_MESSAGE_CONTENT' event: No active text message found with ID 'm'.",
        "PENDING_INTERRUPTS",
        "RUN_LOST ended the message for the client. The run goes on under a RUN_STARTED of ours, and what it "
        "says is passed as it came.",
    ),
    Unread(
        "a RUN_ERROR without a message",
        (sdk.starts("r1"), sdk.event("RUN_ERROR", code="x")),
        "message: Invalid input: expected string, received undefined",
        "admitted",
        "The run has ended whatever its error says.",
    ),
)


def _shown(case: Unread, play: Playbook) -> list[dict[str, Any]]:
    """What the gate shows of the run."""
    emits = [emit for some in emitted(play, (client.asks("r1"), *case.events)) for emit in some]
    return [emit["value"] for emit in emits if emit["topic"] == "events"]


def told_by_the_client(case: Unread, clients: Peer) -> str:
    """The first fault that the client finds in what the gate shows."""
    shown = [{"key": "t", "run": "r1", "event": event} for event in _shown(case, Playbook())]
    answer = clients.ask({"do": "watch", "steps": [shown]})["answer"]
    assert answer["pending"] == [{"t": []}]
    fault = str(answer["faults"][0]).removeprefix("t r1: ")
    if fault.startswith("["):
        first = json.loads(fault)[0]
        return f"{'.'.join(map(str, first['path']))}: {first['message']}"
    return fault.partition(" Start a ")[0]


def told_by_the_gate(case: Unread) -> str:
    """What the gate says of the next ordinary input; a refusal must list what is open."""
    play = Playbook()
    _shown(case, play)
    (answer,) = (play >> client.asks("r2")).unchecked
    if answer["code"] is None:
        return str(answer["verdict"])
    error = answer["emits"][-1]["value"]
    assert [one["id"] for one in error["metadata"]["holdshort"]["open"]] == ["a"]
    return str(error["code"])
