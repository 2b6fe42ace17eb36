"""Times as texts: what RFC 3339 and ISO 8601 write, and nothing else."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_AFTER_THE_LAST: Final = (
    (re.compile(r"(?<=^.{10}[T ]\d\d:\d\d:)60(?=[.,Z+-]|$)", re.ASCII), "59"),
    (re.compile(r"(?<=^.{10}[T ])24:00(:00([.,]0+)?)?(?=[Z+-]|$)", re.ASCII), "23:59:59"),
)


def read_time(text: Any) -> int | None:
    """Microseconds since the epoch, of a time as RFC 3339 and ISO 8601 write it; None for everything else.

    Python reads neither the leap second (`23:59:60`, RFC 3339 5.6) nor the midnight `24:00` of ISO 8601; both
    are the moment after.
    """
    if not isinstance(text, str):
        return None
    text, more = text.upper(), timedelta()
    for late, last in _AFTER_THE_LAST:
        if late.search(text):
            text, more = late.sub(last, text, count=1), timedelta(seconds=1)
    try:
        at = datetime.fromisoformat(text)
        return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH + more) // _MICROSECOND
    except (ValueError, OverflowError):
        return None
