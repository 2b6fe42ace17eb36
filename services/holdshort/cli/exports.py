"""An export of the audit: one JSON line a record, and a last one that says what all of them cover.

Without that line a file whose end, or a whole partition, is missing would look like a smaller audit.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from holdshort.contract.canon import sha256
from holdshort.contract.chains import Judgement
from holdshort.gatekeeper.transcript import MendTranscriptError


class Line(NamedTuple):
    """One record of the audit: from Kafka or from an export."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Range(msgspec.Struct, frozen=True):
    """The offsets of a partition that were read: from `begin` to before `end`."""

    partition: int
    begin: int
    end: int


class Place(msgspec.Struct, frozen=True):
    """One record: where it lies, and the digest of its value."""

    offset: int
    digest: str


class Chain(msgspec.Struct):
    """One chain as far as it was exported: `records` of it, from `first` to `head`."""

    service: str
    partition: int
    records: int
    first: Place
    head: Place


class Coverage(msgspec.Struct, kw_only=True):
    """What an export holds; times in ms since the epoch, `narrowed` names what it was narrowed by."""

    since: int | None
    until: int | None
    narrowed: list[str]
    partitions: list[Range]
    chains: list[Chain]


class Export:
    """An export as it is read again."""

    def __init__(self, lines: list[Line], coverage: Coverage) -> None:
        self.lines = lines
        self.coverage = coverage

    @property
    def begins(self) -> dict[int, int]:
        """The first offset of each partition that the chains must begin with; 1 where a time was left out."""
        later = self.coverage.since is not None
        return {one.partition: 1 if later else one.begin for one in self.coverage.partitions}

    @property
    def heads(self) -> dict[tuple[str, int], str]:
        return {(one.service, one.partition): one.head.digest for one in self.coverage.chains}

    @property
    def firsts(self) -> dict[tuple[str, int], str]:
        return {(one.service, one.partition): one.first.digest for one in self.coverage.chains}


class Covering:
    """What is noted of an export while it is written."""

    def __init__(self) -> None:
        self._chains: dict[tuple[str, int], Chain] = {}

    def line(self, line: Line, said: Judgement) -> bytes:
        """One record as a line, byte for byte."""
        value = line.value or b""
        digest = sha256(value)
        place = Place(line.offset, digest)
        name = (said.service, line.partition)
        chain = self._chains.setdefault(name, Chain(*name, records=0, first=place, head=place))
        chain.records += 1
        chain.head = place
        return _encoded(
            {
                "partition": line.partition,
                "offset": line.offset,
                "timestamp": line.timestamp,
                "key": None if line.key is None else line.key.decode(errors="replace"),
                "digest": digest,
                "record": orjson.Fragment(value),
            }
        )

    def last_line(
        self, since: int | None, until: int | None, narrowed: list[str], read: Mapping[int, tuple[int, int]]
    ) -> bytes:
        """What the export covers; `read` are each partition's offsets: the first, and behind the last."""
        ranges = [Range(partition, *offsets) for partition, offsets in sorted(read.items())]
        chains = [chain for _, chain in sorted(self._chains.items())]
        coverage = Coverage(since=since, until=until, narrowed=narrowed, partitions=ranges, chains=chains)
        return _encoded({"covers": msgspec.to_builtins(coverage)})


def _encoded(line: dict[str, Any]) -> bytes:
    return orjson.dumps(line) + b"\n"


# -- read again ---------------------------------------------------------------------------------------------


class _Exported(msgspec.Struct, kw_only=True):
    """A line; the record is taken as the bytes that stand there."""

    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    key: str | None = None
    digest: str = ""
    record: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # beside None, Raw decodes nothing but null
    covers: Coverage | None = None


def read_export(file: Path) -> Export:
    """An export as it was written. Raises MendTranscriptError, also for what was changed or cut off since."""
    found: list[Line] = []
    coverage: Coverage | None = None
    reached: dict[int, int] = {}
    with file.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            if coverage is not None:
                raise MendTranscriptError(f"{file}, line {number}: stands behind the end of the export")
            one = _decoded(raw, f"{file}, line {number}")
            if one.covers is not None:
                coverage = one.covers
                continue
            found.append(_line(one, f"{file}, line {number}", reached))
    if coverage is None:
        missing = "its last line, which says what it covers, is missing: it was cut off" if found else "empty"
        raise MendTranscriptError(f"{file}: {missing}")
    return Export(found, coverage)


def _decoded(raw: bytes, where: str) -> _Exported:
    try:
        one = msgspec.json.decode(raw, type=_Exported)
    except msgspec.MsgspecError as error:
        raise MendTranscriptError(f"{where}: not a line of an export: {error}") from error
    if one.record is msgspec.UNSET and one.covers is None:
        raise MendTranscriptError(f"{where}: not a line of an export")
    return one


def _line(one: _Exported, where: str, reached: dict[int, int]) -> Line:
    value = b"" if one.record is msgspec.UNSET else bytes(one.record)
    if sha256(value) != one.digest:
        raise MendTranscriptError(f"{where}: changed since: its digest is another")
    if one.offset <= reached.get(one.partition, -1):
        raise MendTranscriptError(f"{where}: its offset is not behind the one before")
    reached[one.partition] = one.offset
    return Line(
        one.partition, one.offset, one.timestamp, None if one.key is None else one.key.encode(), value
    )
