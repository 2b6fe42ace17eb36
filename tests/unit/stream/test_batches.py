"""Batches of every codec are read; one that holds more than fits is one unreadable record, and passed."""

from typing import Any

import cramjam
import pytest
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from holdshort.stream.kafka.batches import OPENED_MOST, page
from holdshort.stream.kafka.names import Names
from holdshort.stream.records import Record, TopicPartition

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
WHERE = TopicPartition("inputs", 3)
NAMES = Names("x.")


def batch(values: list[bytes], codec: str, base: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, 1 << 30)
    for number, value in enumerate(values):
        assert builder.append(number, 1000 + number, b"k", value, [("h", b"v")])
    raw = bytearray(builder.build())
    raw[:8] = base.to_bytes(8, "big")
    return bytes(raw)


def read(raw: bytes, start: int = 0) -> tuple[list[Record], int]:
    found = page(NAMES, WHERE, raw, None, start, committed=True)
    return list(found.records), found.following


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_every_codec_is_read(codec: str) -> None:
    records, following = read(batch([b"a" * 3000, b"b", b""], codec, base=40), start=41)

    assert following == 43
    assert records == [
        Record("inputs", 3, 41, b"k", b"b", [("h", b"v")], 1001),
        Record("inputs", 3, 42, b"k", b"", [("h", b"v")], 1002),
    ]


@pytest.mark.parametrize(("last", "made"), [(41, [41]), (43, [41, 42, 43]), (99, [41, 42, 43, 44])])
def test_records_are_made_up_to_the_last_that_is_wanted(last: int, made: list[int]) -> None:
    raw = batch([b"a"] * 3, "none", base=40) + batch([b"a"] * 2, "lz4", base=43)

    found = page(NAMES, WHERE, raw, None, 41, last, committed=False)

    assert [record.offset for record in found.records] == made
    assert found.following == made[-1] + 1


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_a_bomb_is_one_unreadable_record_between_others(codec: str) -> None:
    bomb = batch([bytes(OPENED_MOST // 4)] * 5, codec, base=1)
    raw = batch([b"before"], "none") + bomb + batch([b"after"], codec, base=6)
    assert len(bomb) < 8 << 20

    records, following = read(raw)

    assert [(one.offset, one.key, one.value) for one in records] == [
        (0, b"k", b"before"),
        (5, None, None),
        (6, b"k", b"after"),
    ]
    assert following == 7


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_what_just_fits_is_no_bomb(codec: str) -> None:
    records, _ = read(batch([bytes(OPENED_MOST - 1000)], codec))

    assert [len(one.value or b"") for one in records] == [OPENED_MOST - 1000]


def test_java_s_blocks_of_snappy_are_read() -> None:
    plain = batch([b"x" * 100_000, b"y"], "none")
    head, records = plain[:61], plain[61:]
    blocks = b"".join(
        len(block).to_bytes(4, "big") + block
        for start in range(0, len(records), 32 * 1024)
        for block in [bytes(cramjam.snappy.compress_raw(records[start : start + 32 * 1024]))]
    )
    xerial = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2 + blocks

    found, _ = read(rebuilt(head, xerial, CODECS["snappy"]))

    assert [len(one.value or b"") for one in found] == [100_000, 1]


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd", "snappy"])
def test_a_compressed_batch_that_is_damaged_is_told(codec: str) -> None:
    raw = bytearray(batch([b"a" * 3000], codec))
    raw[-1] ^= 0xFF
    with pytest.raises(CorruptRecordException):
        read(bytes(raw))

    head = batch([b"a"], "none")[:61]
    with pytest.raises(CorruptRecordException):
        read(rebuilt(head, b"this is not compressed data at all", CODECS[codec]))


def test_an_unfinished_batch_at_the_end_is_left_for_the_next_page() -> None:
    first, second = batch([b"a"], "zstd"), batch([b"b"], "zstd", base=1)

    records, following = read(first + second[:-5])

    assert ([one.value for one in records], following) == ([b"a"], 1)


def rebuilt(head: bytes, records: Any, codec: int) -> bytes:
    """A batch with these bytes for its records, and a checksum that fits."""
    body = codec.to_bytes(2, "big") + head[23:] + records
    length = (len(body) + 9).to_bytes(4, "big")
    crc: int = calc_crc32c(body)
    whole: bytes = head[:8] + length + head[12:17] + crc.to_bytes(4, "big") + body
    return whole
