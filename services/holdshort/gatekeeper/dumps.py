"""Dumps of topics as Kafka's common tools print them, read as the lines of a transcript. Pure.

Two forms are known, each told by its looks:

- `kcat -J`: one JSON object a record, with topic, partition, offset, ts, headers, key and payload.
- `kafka-console-consumer` with `print.timestamp`, `print.partition`, `print.offset`, `print.headers` and
  `print.key`: columns with a tab between; the topic is not printed, so it must be said.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdshort.gatekeeper.transcript import MendTranscriptError

_COLUMNS: Final = re.compile(
    r"(?:CreateTime|LogAppendTime):(?P<at>\d+)\tPartition:(?P<partition>\d+)\tOffset:(?P<offset>\d+)\t"
    r"(?P<headers>[^\t]*)\t(?P<key>[^\t]*)\t(?P<value>.*)",
    re.DOTALL,
)
_BEGINS: Final = ("CreateTime:", "LogAppendTime:", "NoTimestampType:", "NO_TIMESTAMP")


def is_columns(text: str) -> bool:
    """Whether a line is of kafka-console-consumer."""
    return text.startswith(_BEGINS)


def is_kcat(parsed: Mapping[str, Any]) -> bool:
    """Whether a line is of kcat."""
    return "payload" in parsed and "ts" in parsed


def from_columns(text: str, topic: str | None) -> dict[str, Any]:
    """A line of kafka-console-consumer as a record of a transcript. Raises MendTranscriptError."""
    if topic is None:
        raise MendTranscriptError("kafka-console-consumer does not print the topic: say TOPIC=FILE")
    found = _COLUMNS.fullmatch(text)
    if found is None:
        raise MendTranscriptError("print time, partition, offset, headers and key, too (see --help)")
    key, value = found["key"], found["value"]
    return {
        "topic": topic,
        "at": int(found["at"]),
        "partition": int(found["partition"]),
        "offset": int(found["offset"]),
        "headers": _headers(found["headers"]),
        "key": None if key == "null" else key,
        "value": None if value == "null" else value,
    }


def _headers(text: str) -> dict[str, str]:
    """`name:value,name:value`; a comma may stand in a value, too."""
    if text == "NO_HEADERS":
        return {}
    headers: dict[str, str] = {}
    name = ""
    for part in text.split(","):
        before, colon, after = part.partition(":")
        if colon or not name:
            name, headers[before] = before, after
        else:
            headers[name] += "," + part
    return headers


def from_kcat(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """A line of kcat as a record of a transcript. Raises MendTranscriptError."""
    payload, headers = parsed["payload"], parsed.get("headers") or []
    if not isinstance(payload, str | None):
        raise MendTranscriptError("payload must be a string, as kcat -J prints it, or null")
    if not isinstance(headers, list) or len(headers) % 2:
        raise MendTranscriptError("headers must be a list of names and values, as kcat -J prints them")
    pairs = zip(headers[::2], headers[1::2], strict=True)
    return {
        "topic": parsed.get("topic"),
        "at": parsed["ts"],
        "partition": parsed.get("partition"),
        "offset": parsed.get("offset"),
        "headers": {str(name): value or "" for name, value in pairs},
        "key": parsed.get("key"),
        "value": payload,
    }


def in_order(records: Iterable[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """The records of all topics in the order of their times, with the time that passes between them.

    The gate's own order is in none of the topics: where two records lie within a few milliseconds of each
    other it may have been the other one.
    """
    lines: list[dict[str, Any]] = []
    last = 0
    for record in sorted(records, key=_place):
        if record["at"] > last:
            lines.append({"at": record["at"] - 1})
        last = record["at"]
        lines.append({**record, "topic": str(record["topic"]).removeprefix(prefix)})
    return lines


def _place(record: Mapping[str, Any]) -> tuple[int, str, int, int]:
    try:
        return int(record["at"]), str(record["topic"]), int(record["partition"]), int(record["offset"])
    except (TypeError, ValueError):
        raise MendTranscriptError("a dump's record has topic, partition, offset and time") from None
