"""Record batches as the broker gives them, made into records; compressed ones are opened within bounds.

A producer's batch of two megabytes may hold gigabytes. What would not fit counts as one record without a key
and a value, at the offset of the batch's last: unreadable, as its reader will say, and passed.
"""

import zlib
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

import cramjam
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c, encode_varint

from holdshort.stream.kafka.names import Names
from holdshort.stream.records import Record, TopicPartition

OPENED_MOST: Final = 32 * 1024 * 1024  # bytes of one batch
_HEAD: Final = Struct(
    ">qiibIh"
)  # offset, length, leader epoch, magic, crc, attributes: all that is looked at
_COUNT: Final = Struct(">i")
_LAST_DELTA: Final = slice(23, 27)
_RECORDS: Final = 61  # from here on a batch of format 2 holds its records; four bytes before, their count
_LENGTH_FROM, _CRC_FROM, _CODEC = 12, 21, 0b111
_GZIP, _SNAPPY, _LZ4, _ZSTD = 1, 2, 3, 4
_XERIAL: Final = b"\x82SNAPPY\x00"


class Page(NamedTuple):
    """What one request gave of a partition, and the offset of the page after it."""

    records: Sequence[Record]
    following: int


class TooMuchError(Exception):
    """A batch holds more than fits."""


def page(
    names: Names,
    where: TopicPartition,
    raw: bytes,
    aborted: Any,
    start: int,
    last: int | None = None,
    *,
    committed: bool,
) -> Page:
    """The records of these batches from `start` to `last`, or to their end. Raises CorruptRecordException."""
    opened = b"".join(_opened(raw))
    records = _Records(names, where, MemoryRecords(opened), aborted, start, committed=committed)
    if last is None:
        return Page(list(records), records.next_fetch_offset)
    wanted = []
    for record in records:  # made one by one: what lies after the last of them costs nothing
        wanted.append(record)
        if record.offset >= last:
            break
    return Page(wanted, records.next_fetch_offset)


class _Records(PartitionRecords):  # type: ignore[misc]  # aiokafka is untyped here
    """aiokafka's reading of batches, markers and aborted transactions, giving our records at once."""

    def __init__(
        self,
        names: Names,
        where: TopicPartition,
        records: MemoryRecords,
        aborted: Any,
        start: int,
        *,
        committed: bool,
    ) -> None:
        super().__init__(names.wire(where), records, aborted, start, None, None, True, int(committed))
        self._topic, self._partition = where

    def _consumer_record(self, _: Any, raw: Any) -> Record:
        return Record(
            self._topic, self._partition, raw.offset, raw.key, raw.value, raw.headers, raw.timestamp
        )


# -- compressed batches ------------------------------------------------------------------------------------


def _opened(raw: bytes) -> Iterator[bytes]:
    """Batches as they are, compressed ones in the clear; an unfinished one at the end is left out."""
    start = clear = 0
    while start + _RECORDS <= len(raw):
        _, length, _, magic, _, attributes = _HEAD.unpack_from(raw, start)
        end = start + _LENGTH_FROM + length
        if end > len(raw):
            break
        if magic == 2 and attributes & _CODEC:
            yield raw[clear:start]
            yield _in_the_clear(raw[start:end], attributes)
            clear = end
        start = end
    yield raw[clear:start]


def _in_the_clear(batch: bytes, attributes: int) -> bytes:
    if calc_crc32c(batch[_CRC_FROM:]) != _HEAD.unpack_from(batch)[4]:
        raise CorruptRecordException("a compressed batch does not fit its checksum")
    try:
        count, records = batch[_RECORDS - 4 : _RECORDS], _decompressed(batch[_RECORDS:], attributes & _CODEC)
    except TooMuchError:
        (last,) = _COUNT.unpack(batch[_LAST_DELTA])
        count, records = _COUNT.pack(1), _nothing_at(last)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise CorruptRecordException("a compressed batch cannot be opened") from error
    flags = (attributes & ~_CODEC).to_bytes(2, "big", signed=True)
    body = flags + batch[_LAST_DELTA.start : _RECORDS - 4] + count + records
    head = batch[:8] + _COUNT.pack(len(body) + _CRC_FROM - _LENGTH_FROM) + batch[12:17]
    crc: int = calc_crc32c(body)
    return head + crc.to_bytes(4, "big") + body


def _nothing_at(delta: int) -> bytes:
    """A record without key and value, so many offsets after the first of its batch."""
    record = bytearray(b"\x00")
    for number in (0, delta, -1, -1, 0):  # time, offset, key, value, headers
        encode_varint(number, record.append)
    framed = bytearray()
    encode_varint(len(record), framed.append)
    return bytes(framed + record)


def _decompressed(data: bytes, codec: int) -> bytes:
    """Raises TooMuchError, and the codecs' own errors."""
    if codec == _GZIP:
        stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        opened = stream.decompress(data, OPENED_MOST)
        if stream.unconsumed_tail:
            raise TooMuchError
        return opened
    if codec == _SNAPPY:
        return b"".join(_snappy(data))
    into = {_LZ4: cramjam.lz4.decompress_into, _ZSTD: cramjam.zstd.decompress_into}[codec]
    for most in (len(data) * 8 + 4096, OPENED_MOST):
        room = bytearray(min(most, OPENED_MOST))
        try:
            return bytes(memoryview(room)[: into(data, room)])
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
    raise TooMuchError


def _snappy(data: bytes) -> Iterator[bytes]:
    """Plain, or in the blocks that Java's library writes."""
    blocks, left = [data], OPENED_MOST
    if data.startswith(_XERIAL):
        blocks, at = [], 16
        while at < len(data):
            (size,) = _COUNT.unpack_from(data, at)
            blocks.append(data[at + 4 : at + 4 + size])
            at += 4 + size
    for block in blocks:
        left -= cramjam.snappy.decompress_raw_len(block)
        if left < 0:
            raise TooMuchError
        yield bytes(cramjam.snappy.decompress_raw(block))
