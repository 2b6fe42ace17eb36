"""What the load says: AG-UI records of clients and agents, made from numbers, so all can be checked. PURE.

A thread's story: an agent runs and pauses with one approval; its client sends the answer, and in some loads
something else first; the agent runs again and ends. `timestamp` is the last member of what is passed through
and numbers the record, so that a reader needs no parser.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

EPOCH_MS: Final = 1_796_000_000_000
DELTA_BYTES: Final = 172
THREADS: Final = 5_000
WORDS: Final = b"the quick brown fox jumps over the lazy dog " * 3

FIRST: Final = b"a"  # the run that pauses
OTHER: Final = b"w"  # an input that answers nothing
ANSWER: Final = b"b"  # the run that the answer starts

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string", "maxLength": 500}},
    "required": ["approved"],
    "additionalProperties": False,
}

Keyed = tuple[bytes, bytes]
"""Key and value of one record."""


def key_of(thread: int) -> bytes:
    return b"t-%08d" % thread


def thread_of(key: bytes) -> int:
    return int(key[2:])


def run_of(thread: int, which: bytes = FIRST) -> bytes:
    return b"r-%08d-%s" % (thread, which)


# -- agents' events -----------------------------------------------------------------------------------------


def delta(thread: int, number: int) -> bytes:
    """One token of text, 172 bytes."""
    head = (
        b'{"type":"TEXT_MESSAGE_CONTENT","threadId":"t-%08d","runId":"r-%08d-a",'
        b'"messageId":"m-%08d","delta":"' % (thread, thread, thread)
    )
    tail = b'","timestamp":%013d}' % (EPOCH_MS + number)
    return head + WORDS[: DELTA_BYTES - len(head) - len(tail)] + tail


def started(thread: int, run: bytes, number: int = 0) -> bytes:
    return b'{"type":"RUN_STARTED","threadId":"t-%08d","runId":"%s","timestamp":%013d}' % (
        thread,
        run,
        EPOCH_MS + number,
    )


def finished(thread: int, run: bytes, number: int = 0) -> bytes:
    return (
        b'{"type":"RUN_FINISHED","threadId":"t-%08d","runId":"%s","outcome":{"type":"success"},'
        b'"timestamp":%013d}' % (thread, run, EPOCH_MS + number)
    )


def number_of(value: bytes) -> int:
    """The number that an event was made with, if it came through as it was."""
    return int(value[-14:-1]) - EPOCH_MS


def paused(thread: int) -> bytes:
    """The end of a first run: one approval is asked for, about 850 bytes."""
    asked = {
        "id": f"int-{thread:08d}",
        "reason": "approval:payments/refund",
        "message": f"Refund order {thread:08d}? It is more than an agent may pay out on its own.",
        "toolCallId": f"call-{thread:08d}",
        "expiresAt": "2099-12-31T12:00:00Z",
        "responseSchema": SCHEMA,
        "metadata": {
            "tool": "payments.refund",
            "arguments": {
                "orderId": f"order-{thread:08d}",
                "amount": 12_900 + thread % 977,
                "currency": "EUR",
                "note": "x" * (thread % 5 * 40),
            },
            "risk": "medium",
            "requestedBy": f"agent-{thread % 100:03d}",
        },
    }
    return orjson.dumps(
        {
            "type": "RUN_FINISHED",
            "threadId": f"t-{thread:08d}",
            "runId": run_of(thread).decode(),
            "timestamp": EPOCH_MS + thread,
            "outcome": {"type": "interrupt", "interrupts": [asked]},
        }
    )


def pausing(threads: range) -> Iterator[Keyed]:
    """The first run of each thread, from its start to its question."""
    for thread in threads:
        key = key_of(thread)
        yield key, started(thread, run_of(thread))
        yield key, paused(thread)


# -- clients' inputs ----------------------------------------------------------------------------------------


def resume(thread: int) -> bytes:
    """The answer to a thread's question."""
    entry = {"interruptId": f"int-{thread:08d}", "status": "resolved", "payload": {"approved": True}}
    return _input(thread, ANSWER, "Please refund my order.", resume=[entry])


def other_input(thread: int) -> bytes:
    """An input that answers nothing, and so must not pass while the question is open."""
    return _input(thread, OTHER, "Please go on, I have waited long enough.")


def resumes(threads: range) -> Iterator[Keyed]:
    return ((key_of(thread), resume(thread)) for thread in threads)


def _input(thread: int, run: bytes, content: str, **more: Any) -> bytes:
    return orjson.dumps(
        {
            "threadId": f"t-{thread:08d}",
            "runId": run_of(thread, run).decode(),
            "state": {},
            "messages": [{"id": f"msg-{thread:08d}", "role": "user", "content": content}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
            **more,
        }
    )


# -- what is only passed through ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passage:
    """Events of many runs that go on at once: first every start, then tokens in turn, at last every end."""

    records: int
    threads: int

    @classmethod
    def of(cls, records: int) -> "Passage":
        return cls(records, max(1, min(THREADS, records // 20)))

    def record(self, number: int) -> Keyed:
        if number < self.threads:
            return key_of(number), started(number, run_of(number), number)
        thread = number % self.threads
        if number < self.records - self.threads:
            return key_of(thread), delta(thread, number)
        return key_of(thread), finished(thread, run_of(thread), number)

    def __iter__(self) -> Iterator[Keyed]:
        return (self.record(number) for number in range(self.records))
