"""How far a lane has come: the record of `<app>.positions`, written in every transaction.

It holds the next offset and the latest time of every input partition, the id of every topic, the end of the
changelog that belongs to it, and the decider's notes. A topic that is not read any more keeps its place:
added again, it must not be replayed from its beginning.
"""

import msgspec

from holdshort.stream.errors import Halt
from holdshort.stream.records import TopicPartition

VERSION = 1


class Reached(msgspec.Struct, frozen=True, array_like=True):
    """A partition's next offset, and the append time of the latest record read from it (ms)."""

    offset: int
    now: int = 0


class Positions(msgspec.Struct, frozen=True, kw_only=True):
    """One lane's record; partitions are keyed by their number as text, as JSON has it."""

    v: int = VERSION
    partitions: int
    lanes: int
    topics: dict[str, str]
    inputs: dict[str, dict[str, Reached]]
    changelog: dict[str, int]
    notes: dict[str, str]

    def reached(self, where: TopicPartition) -> Reached | None:
        return self.inputs.get(where.topic, {}).get(str(where.partition))


class _Head(msgspec.Struct):
    v: int


def encode_positions(positions: Positions) -> bytes:
    return msgspec.json.encode(positions)


def decode_positions(value: bytes) -> Positions:
    """Raises Halt for a record of a newer version, or one that cannot be read."""
    try:
        version = msgspec.json.decode(value, type=_Head).v
        if version > VERSION:
            raise Halt(
                f"the positions were written by a newer version ({version} > {VERSION}): upgrade first"
            )
        return msgspec.json.decode(value, type=Positions)
    except msgspec.MsgspecError as error:
        raise Halt("the positions record cannot be read") from error
