"""The audit (audit.v1): one record a judgement, digests instead of content, chained by hashes. Pure.

Its records are written here (`Chain`), and what they prove of a tool call is said here: what was asked, what
the call brought, how its run ended. How a chain is followed again is in chains.py.
"""

from typing import Any, Final, NamedTuple

import msgspec

from holdshort.contract.canon import canonical, sha256
from holdshort.contract.changes import RunEnded
from holdshort.contract.descriptors import call_id_of, described
from holdshort.contract.hashing import HashKey
from holdshort.contract.messages import JSON_TYPE, Emit, Record, parse_object, usable
from holdshort.contract.state import Pause
from holdshort.contract.verdicts import Kind, Verdict

ATTEMPTED: Final = "attempted"  # what is written of a result beside the verdicts: a fact, not a judgement
_RESULT: Final = "TOOL_CALL_RESULT"
_AGENT_EVENTS: Final = "agent-events."


class Chain:
    """The chain of one service and partition: each record names the hash of the one before it.

    With a key, threads and people stand in it as keyed hashes alone, in the record's key, too.
    """

    def __init__(self, heads: dict[int, str], key: HashKey | None = None) -> None:
        self.heads = heads
        self._key = key

    def record(self, partition: int, thread: str, members: dict[str, Any]) -> Emit:
        """The next record of the partition's chain."""
        if self._key is not None:
            thread, members = self._key.thread(thread), self._key.hidden(thread, members)
        value = msgspec.json.encode(
            {"v": 1, "threadId": thread, **members, "previous": self.heads.get(partition, "")}
        )
        self.heads[partition] = sha256(value)
        return Emit("audit", thread.encode(), value, (JSON_TYPE,))


# -- what is proved of a tool call --------------------------------------------------------------------------


class Result(NamedTuple):
    """What a tool call that people were asked about has brought, as a digest of its content."""

    call_id: str
    digest: str


def args_of(pause: Pause) -> dict[str, str | None]:
    """By tool call, the digest of the arguments that people are asked about: of their text, in UTF-8.

    None for a call whose arguments were not seen or more than is kept: nobody was shown them.
    """
    found: dict[str, str | None] = {}
    for one in pause.interrupts:
        if (call_id := call_id_of(described(one))) is not None:
            args = one.tool.args if one.tool is not None else None
            found[call_id] = None if args is None else sha256(args.encode())
    return found


def result_of(record: Record, before: Pause | None, after: Pause | None, kind: Kind) -> Result | None:
    """The result that this event brings of a call that is asked about; None for everything else.

    Every one that clients are shown counts (a run that is tried again brings another), and of what they are
    not shown the first, by which an interrupt becomes *attempted* (contract 2).
    """
    if after is None or record.value is None:
        return None
    shown = kind is not Kind.IGNORED and _RESULT.encode() in record.value
    if not (shown or _newly_attempted(before, after)):
        return None
    event = parse_object(record.value)
    if event is None or event.get("type") != _RESULT:
        return None
    call_id = usable(event.get("toolCallId"))
    if call_id is None or call_id not in {call_id_of(described(one)) for one in after.interrupts}:
        return None
    return Result(call_id, content_digest(event.get("content")))


def _newly_attempted(before: Pause | None, after: Pause) -> bool:
    known = before.attempted if before is not None and before.generation == after.generation else ()
    return after.attempted != known


def content_digest(content: Any) -> str:
    """Of a result that is text, its UTF-8 bytes; of any other, its canonical JSON (RFC 8785)."""
    if isinstance(content, str):
        return sha256(content.encode())
    return sha256(canonical(content) or msgspec.json.encode(content))


def end_of(record: Record, verdict: Verdict) -> str | None:
    """The digest of an agent's event by which a run ended, of its bytes; None if this is none."""
    ended = any(isinstance(change, RunEnded) for change in verdict.changes)
    if not ended or not record.topic.startswith(_AGENT_EVENTS) or record.value is None:
        return None
    return sha256(record.value)
