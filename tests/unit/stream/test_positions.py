"""Positions: what a lane remembers of its inputs, and what it must not forget."""

import msgspec
import pytest

from holdshort.stream.errors import Halt
from holdshort.stream.positions import Positions, Reached, decode_positions, encode_positions
from holdshort.stream.records import TopicPartition


def positions() -> Positions:
    return Positions(
        partitions=4,
        lanes=2,
        topics={"inputs": "id-1"},
        inputs={"inputs": {"0": Reached(7, 1000)}},
        changelog={"0": 9},
        notes={"0": "head"},
    )


def test_what_is_written_is_read_again() -> None:
    assert decode_positions(encode_positions(positions())) == positions()
    assert positions().reached(TopicPartition("inputs", 0)) == Reached(7, 1000)
    assert positions().reached(TopicPartition("inputs", 2)) is None


def test_a_newer_version_halts_with_what_to_do() -> None:
    newer = msgspec.json.encode({"v": 2, "anything": True})

    with pytest.raises(Halt, match="upgrade first"):
        decode_positions(newer)


def test_what_cannot_be_read_halts() -> None:
    with pytest.raises(Halt, match="cannot be read"):
        decode_positions(b'{"v": 1}')
