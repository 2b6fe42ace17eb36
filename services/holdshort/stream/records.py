"""Records and their places; topic names everywhere in the engine are without the configured prefix."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

Headers: TypeAlias = Sequence[tuple[str, bytes]]


class TopicPartition(NamedTuple):
    """One partition of a topic; the unit of order."""

    topic: str
    partition: int


RecordPlace: TypeAlias = tuple[TopicPartition, int]
"""A record's partition and offset; what lies there never changes."""


class Record(NamedTuple):
    """One record as it was read; `timestamp` is its append time in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


class Output(Protocol):
    """One record to be written, in the partition number that its cause came from."""

    @property
    def topic(self) -> str: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


class Write(NamedTuple):
    """An output of the engine itself."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def size_of(record: Record | Output) -> int:
    """The bytes of key, value and headers, and a little for the record's own frame."""
    size = len(record.key or b"") + len(record.value or b"") + 32
    for name, value in record.headers:
        size += len(name) + len(value) + 8
    return size
