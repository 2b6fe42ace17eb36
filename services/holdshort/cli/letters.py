"""Dead letters as operators see them: where from and why, whether they may be sent again, and as what.

No IO. Sent again, a record is byte for byte what it was: its key, value and headers, without the headers that
say why it became a dead letter, and with the number of times that it has been sent again.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from holdshort.contract.codes import Code
from holdshort.contract.keys import partition_of
from holdshort.contract.messages import DEAD_LETTER, header
from holdshort.contract.rules import Limits
from holdshort.stream.records import Record, TopicPartition, Write, size_of
from holdshort.stream.topics import MAX_MESSAGE

ATTEMPTS: Final = DEAD_LETTER + "attempts"
CUT: Final = DEAD_LETTER + "cut"
BATCH_FRAME: Final = 1024  # what Kafka's framing of a batch of one record adds, generously
READ_FROM: Final = ("inputs", "resumes", "agent-events.", "decisions.")


class Letter(NamedTuple):
    """One dead letter; `at` is when it was written, `timestamp` when its record was (ms, 0: not said)."""

    record: Record
    topic: str
    partition: int
    offset: int
    timestamp: int
    service: str
    code: str
    detail: str
    attempts: int
    cut: bool

    @property
    def place(self) -> str:
        """Its own name: partition and offset in `dead-letters`."""
        return f"{self.record.partition}/{self.record.offset}"

    @property
    def came_from(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def at(self) -> int:
        return self.record.timestamp

    @property
    def key(self) -> str:
        return (self.record.key or b"").decode(errors="replace")


def read_letter(record: Record) -> Letter:
    """A record of `dead-letters`. What one of our services wrote last counts, whatever stood there before."""

    def text(name: str) -> str:
        return (header(record.headers, DEAD_LETTER + name) or b"").decode(errors="replace")

    def number(name: str, default: int) -> int:
        said = text(name)
        return int(said) if said.isascii() and said.isdecimal() and len(said) < 20 else default

    return Letter(
        record=record,
        topic=text("topic"),
        partition=number("partition", -1),
        offset=number("offset", -1),
        timestamp=number("timestamp", 0),
        service=text("service"),
        code=text("code"),
        detail=text("detail"),
        attempts=number("attempts", 0),
        cut=header(record.headers, CUT) is not None,
    )


class Filter(NamedTuple):
    """Which letters are meant; None lets everything pass. Times are those of the dead letter, in ms."""

    code: str | None = None
    topic: str | None = None
    key: str | None = None
    since: int | None = None
    until: int | None = None

    def passes(self, letter: Letter) -> bool:
        return (
            self.code in (None, letter.code)
            and self.topic in (None, letter.topic)
            and self.key in (None, letter.key)
            and (self.since is None or letter.at >= self.since)
            and (self.until is None or letter.at < self.until)
        )


# -- sending again ------------------------------------------------------------------------------------------


def replayed(letter: Letter) -> Write:
    """The record as it was, and how often it has been sent again."""
    kept = [one for one in letter.record.headers if not one[0].startswith(DEAD_LETTER)]
    again = (ATTEMPTS, str(letter.attempts + 1).encode())
    return Write(letter.topic, letter.record.key, letter.record.value, (*kept, again))


def destination(letter: Letter, partitions: int) -> TopicPartition:
    """Where it came from; a key decides the partition, so what had been put into the wrong one is mended."""
    key = letter.record.key
    return TopicPartition(letter.topic, letter.partition if key is None else partition_of(key, partitions))


def why_not(letter: Letter, topics: Iterable[str], partitions: int, limits: Limits, most: int) -> str | None:
    """Why a letter is not sent again; None if it may be."""
    if letter.cut:
        return "its value was too large to be kept here; it lies at its place, if at all"
    if letter.topic not in topics or not letter.topic.startswith(READ_FROM):
        return "it did not come from a topic of this installation that a service reads"
    if letter.record.key is None and not 0 <= letter.partition < partitions:
        return "its partition is not one of its topic's"
    if letter.attempts >= most:
        return f"it has been sent again {letter.attempts} times (--max-attempts)"
    return _too_large(letter, limits)


def _too_large(letter: Letter, limits: Limits) -> str | None:
    record = replayed(letter)
    limit = limits.event if letter.topic.startswith("agent-events.") else limits.input
    if size_of(record) + BATCH_FRAME > MAX_MESSAGE:
        return "it is larger than its topic takes"
    if letter.code == Code.TOO_LARGE and size_of(record) > limit:
        return f"it is larger than the limit still is ({limit} bytes)"
    return None


def as_object(letter: Letter) -> dict[str, Any]:
    """A letter for programs."""
    return {
        "place": letter.place,
        "at": letter.at,
        "from": letter.came_from,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp,
        "service": letter.service,
        "code": letter.code,
        "detail": letter.detail,
        "attempts": letter.attempts,
        "cut": letter.cut,
        "key": None if letter.record.key is None else letter.key,
        "bytes": len(letter.record.value or b""),
    }
