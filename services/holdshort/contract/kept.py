"""What is kept of a run's events: where its last snapshots lie, and the tool calls that people will judge."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdshort.contract.descriptors import call_id_of, described
from holdshort.contract.messages import Record, usable
from holdshort.contract.rules import Limits
from holdshort.contract.state import Pause, Pointer, Run, ToolCall

_CHANGES_MESSAGES: Final = ("TEXT_MESSAGE_", "TOOL_CALL_", "REASONING_", "THINKING_", "ACTIVITY_")

_replace = msgspec.structs.replace


def kept(run: Run, type_: str, event: dict[str, Any], record: Record, too_large: bool, limits: Limits) -> Run:
    """The run after the event; the very same object if nothing of it is kept."""
    if too_large:
        return _replace(run, messages_changed=True, state_changed=True)
    if keep := _KEEPERS.get(type_):
        return keep(run, event, record, limits)
    if not run.messages_changed and type_.startswith(_CHANGES_MESSAGES):
        return _replace(run, messages_changed=True)
    return run


def attempted(pause: Pause, type_: str, event: dict[str, Any]) -> Pause:
    """Mark the interrupts whose tool call has its result: whatever people say now, it may have happened."""
    call_id = usable(event.get("toolCallId"))
    if type_ != "TOOL_CALL_RESULT" or call_id is None:
        return pause
    ids = [i.id for i in pause.interrupts if call_id_of(described(i)) == call_id]
    new = tuple(id_ for id_ in ids if id_ not in pause.attempted)
    return _replace(pause, attempted=pause.attempted + new) if new else pause


def _place_of(record: Record) -> Pointer:
    return Pointer(record.topic, record.partition, record.offset)


def _messages_snapshot(run: Run, _: dict[str, Any], record: Record, __: Limits) -> Run:
    return _replace(run, messages=_place_of(record), messages_changed=False)


def _state_snapshot(run: Run, _: dict[str, Any], record: Record, __: Limits) -> Run:
    return _replace(run, state=_place_of(record), state_changed=False)


def _state_delta(run: Run, _: dict[str, Any], __: Record, ___: Limits) -> Run:
    return run if run.state_changed else _replace(run, state_changed=True)


def _tool_call_start(run: Run, event: dict[str, Any], _: Record, limits: Limits) -> Run:
    call_id, name = usable(event.get("toolCallId")), usable(event.get("toolCallName"))
    if call_id is None or name is None:
        return _replace(run, messages_changed=True)
    return _with_call(run, ToolCall(call_id, name, ""), limits)


def _tool_call_args(run: Run, event: dict[str, Any], _: Record, limits: Limits) -> Run:
    call = _call(run, event.get("toolCallId"))
    return _with_delta(run, call, event.get("delta"), limits)


def _tool_call_chunk(run: Run, event: dict[str, Any], _: Record, limits: Limits) -> Run:
    """A chunk begins a call when it names one that is not known, and else goes on with it."""
    call_id, name = usable(event.get("toolCallId")), usable(event.get("toolCallName"))
    if call_id is not None and name is not None and _call(run, call_id) is None:
        run = _with_call(run, ToolCall(call_id, name, ""), limits)
    call = _call(run, call_id) if call_id else (run.calls[-1] if run.calls else None)
    return _with_delta(run, call, event.get("delta"), limits)


def _tool_call_result(run: Run, event: dict[str, Any], _: Record, __: Limits) -> Run:
    calls = tuple(call for call in run.calls if call.call_id != event.get("toolCallId"))
    return _replace(run, calls=calls, messages_changed=True)


def _call(run: Run, call_id: Any) -> ToolCall | None:
    return next((call for call in run.calls if call.call_id == call_id), None)


def _with_delta(run: Run, call: ToolCall | None, delta: Any, limits: Limits) -> Run:
    if call is None or call.args is None:
        return run if run.messages_changed else _replace(run, messages_changed=True)
    if not isinstance(delta, str):  # what people would see is not what the agent means to do
        return _with_call(run, _replace(call, args=None), limits)
    return _with_call(run, _replace(call, args=call.args + delta), limits)


def _with_call(run: Run, call: ToolCall, limits: Limits) -> Run:
    """Keep the call, in its place, as far as there is room."""
    others = [one for one in run.calls if one.call_id != call.call_id]
    fitting = call.within(limits.tool_args - sum(one.size for one in others))
    if fitting is None:
        return _replace(run, calls=tuple(others), messages_changed=True)
    position = next((n for n, one in enumerate(run.calls) if one.call_id == call.call_id), len(others))
    calls = (*others[:position], fitting, *others[position:])
    return _replace(run, calls=calls, messages_changed=True)


_KEEPERS: Final[dict[str, Callable[[Run, dict[str, Any], Record, Limits], Run]]] = {
    "MESSAGES_SNAPSHOT": _messages_snapshot,
    "STATE_SNAPSHOT": _state_snapshot,
    "STATE_DELTA": _state_delta,
    "TOOL_CALL_START": _tool_call_start,
    "TOOL_CALL_ARGS": _tool_call_args,
    "TOOL_CALL_CHUNK": _tool_call_chunk,
    "TOOL_CALL_RESULT": _tool_call_result,
}
