"""The conversation of one run: its input's messages and state, with the run's own events folded in. Pure.

It says the same as a client that reads the events says: the rules are those of AG-UI's reference client
(messages by id, a tool's result behind the message that called it). Three differences, all of which matter
only to what a screen shows: `activity` messages are a client's own and left alone, a snapshot replaces
everything, and ids that nothing has begun are passed over in silence.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException

Message = dict[str, Any]
Event = Mapping[str, Any]

# What the gate, too, takes for a change: a snapshot before it is no longer all there is.
_CHANGES_MESSAGES: Final = ("TEXT_MESSAGE_", "TOOL_CALL_", "REASONING_", "THINKING_", "ACTIVITY_")


class Transcript:
    """Messages and state as a client would have them; feed it every event of the run in order.

    `messages_changed` and `state_changed` say that something followed the last snapshot, or that there was
    none. `state_known` is False once a delta did not fit: what the state is then, only the agent knows.
    """

    def __init__(self, messages: list[Message], state: Any) -> None:
        self.messages = list(messages)
        self.state = state
        self.state_known = True
        self.messages_changed = False
        self.state_changed = False
        self._chunked: dict[str, str] = {}  # the id that a chunk without one goes on with, by family

    def fold(self, event: Event) -> None:
        """Take one event in. What does not fit is passed over, as a client does."""
        type_ = event.get("type", "")
        if type_.startswith(_CHANGES_MESSAGES):
            self.messages_changed = True
        if folder := _FOLDERS.get(type_):
            folder(self, event)

    def snapshot(self) -> list[Message]:
        """What a MESSAGES_SNAPSHOT says: without activities, which are a client's own."""
        return [message for message in self.messages if message.get("role") != "activity"]

    # -- messages ------------------------------------------------------------------------------------------

    def _message(self, id_: Any) -> Message | None:
        return next((one for one in reversed(self.messages) if one.get("id") == id_), None)

    def _begin(self, event: Event, id_: Any, role: str) -> None:
        if self._message(id_) is None:
            attributes = {name: event[name] for name in ("name", "subagentRunId") if name in event}
            self.messages.append({"id": id_, "role": role, "content": "", **attributes})

    def _say(self, id_: Any, delta: Any) -> None:
        """Messages are replaced, never changed: those of the input belong to somebody else."""
        for position in range(len(self.messages) - 1, -1, -1):
            message = self.messages[position]
            if message.get("id") == id_:
                before = message.get("content")
                text = before if isinstance(before, str) else ""
                self.messages[position] = {**message, "content": text + _text(delta)}
                return

    def text_start(self, event: Event) -> None:
        self._begin(event, event.get("messageId"), event.get("role") or "assistant")

    def reasoning_start(self, event: Event) -> None:
        self._begin(event, event.get("messageId"), "reasoning")

    def content(self, event: Event) -> None:
        self._say(event.get("messageId"), event.get("delta"))

    def text_chunk(self, event: Event) -> None:
        id_ = self._chunk("text", event.get("messageId"))
        self._begin(event, id_, event.get("role") or "assistant")
        self._say(id_, event.get("delta"))

    def reasoning_chunk(self, event: Event) -> None:
        id_ = self._chunk("reasoning", event.get("messageId"))
        self._begin(event, id_, "reasoning")
        self._say(id_, event.get("delta"))

    def _chunk(self, family: str, id_: Any) -> Any:
        if id_ is None:
            return self._chunked.get(family)
        self._chunked[family] = id_
        return id_

    # -- tool calls ----------------------------------------------------------------------------------------

    def _caller(self, call_id: Any) -> int | None:
        """Where the message stands that called."""
        for position in range(len(self.messages) - 1, -1, -1):
            if any(call.get("id") == call_id for call in self.messages[position].get("toolCalls") or ()):
                return position
        return None

    def call_start(self, event: Event) -> None:
        call_id = event.get("toolCallId")
        call = {
            "id": call_id,
            "type": "function",
            "function": {"name": event.get("toolCallName"), "arguments": ""},
        }
        position = self._parent(event, call_id)
        parent = self.messages[position]
        self.messages[position] = {**parent, "toolCalls": [*(parent.get("toolCalls") or ()), call]}

    def _parent(self, event: Event, call_id: Any) -> int:
        """The assistant message that the call belongs to; without one that fits, a message of its own."""
        parent_id = event.get("parentMessageId")
        taken = False
        for position, message in enumerate(self.messages):
            if parent_id and message.get("id") == parent_id:
                if message.get("role") == "assistant":
                    return position
                taken = True
        new: Message = {"id": call_id if taken or not parent_id else parent_id, "role": "assistant"}
        if "subagentRunId" in event:
            new["subagentRunId"] = event["subagentRunId"]
        self.messages.append(new)
        return len(self.messages) - 1

    def call_args(self, event: Event) -> None:
        self._argue(event.get("toolCallId"), event.get("delta"))

    def _argue(self, call_id: Any, delta: Any) -> None:
        position = self._caller(call_id)
        if position is None:
            return
        caller = self.messages[position]
        calls = [
            _with_arguments(call, delta) if call.get("id") == call_id else call
            for call in caller["toolCalls"]
        ]
        self.messages[position] = {**caller, "toolCalls": calls}

    def call_chunk(self, event: Event) -> None:
        call_id = self._chunk("call", event.get("toolCallId"))
        if event.get("toolCallName") and self._caller(call_id) is None:
            self.call_start({**event, "toolCallId": call_id})
        self._argue(call_id, event.get("delta"))

    def call_result(self, event: Event) -> None:
        """Behind its call and the results that stand there: providers refuse any other order."""
        result = {
            "id": event.get("messageId"),
            "role": event.get("role") or "tool",
            "toolCallId": event.get("toolCallId"),
            "content": event.get("content"),
        }
        if "subagentRunId" in event:
            result["subagentRunId"] = event["subagentRunId"]
        position = self._caller(event.get("toolCallId"))
        if position is None:
            self.messages.append(result)
            return
        position += 1
        while position < len(self.messages) and self.messages[position].get("role") == "tool":
            position += 1
        self.messages.insert(position, result)

    def encrypted_value(self, event: Event) -> None:
        entity, value = event.get("entityId"), event.get("encryptedValue")
        for position, message in enumerate(self.messages):
            if event.get("subtype") == "message":
                if message.get("id") == entity:
                    self.messages[position] = {**message, "encryptedValue": value}
            elif any(call.get("id") == entity for call in message.get("toolCalls") or ()):
                calls = [
                    {**call, "encryptedValue": value} if call.get("id") == entity else call
                    for call in message["toolCalls"]
                ]
                self.messages[position] = {**message, "toolCalls": calls}

    # -- snapshots, state, start ---------------------------------------------------------------------------

    def messages_snapshot(self, event: Event) -> None:
        self.messages = list(event.get("messages") or ())
        self.messages_changed = False

    def state_snapshot(self, event: Event) -> None:
        self.state = event.get("snapshot")
        self.state_known, self.state_changed = True, False

    def state_delta(self, event: Event) -> None:
        self.state_changed = True
        try:
            self.state = JsonPatch(event.get("delta") or ()).apply(self.state)
        except (JsonPatchException, JsonPointerException, TypeError):
            self.state_known = False

    def started(self, event: Event) -> None:
        """A start may tell what the run was given; messages that are not there yet are of it."""
        told = event.get("input")
        for message in (told.get("messages") or ()) if isinstance(told, dict) else ():
            if self._message(message.get("id")) is None:
                self.messages.append(message)
                self.messages_changed = True


def _with_arguments(call: Message, delta: Any) -> Message:
    function = call["function"]
    return {**call, "function": {**function, "arguments": function["arguments"] + _text(delta)}}


def _text(delta: Any) -> str:
    return delta if isinstance(delta, str) else ""


_FOLDERS: Final[dict[str, Callable[[Transcript, Event], None]]] = {
    "RUN_STARTED": Transcript.started,
    "TEXT_MESSAGE_START": Transcript.text_start,
    "TEXT_MESSAGE_CONTENT": Transcript.content,
    "TEXT_MESSAGE_CHUNK": Transcript.text_chunk,
    "REASONING_MESSAGE_START": Transcript.reasoning_start,
    "REASONING_MESSAGE_CONTENT": Transcript.content,
    "REASONING_MESSAGE_CHUNK": Transcript.reasoning_chunk,
    "REASONING_ENCRYPTED_VALUE": Transcript.encrypted_value,
    "TOOL_CALL_START": Transcript.call_start,
    "TOOL_CALL_ARGS": Transcript.call_args,
    "TOOL_CALL_CHUNK": Transcript.call_chunk,
    "TOOL_CALL_RESULT": Transcript.call_result,
    "MESSAGES_SNAPSHOT": Transcript.messages_snapshot,
    "STATE_SNAPSHOT": Transcript.state_snapshot,
    "STATE_DELTA": Transcript.state_delta,
}
