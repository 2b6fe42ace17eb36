"""What is kept of a state that is not in memory: where it lies, when it is due, how it counts. Pure.

A million open pauses are a gigabyte as records and some two hundred bytes each as a key and a place: the log
keeps the latest record of every key for ever, so that a place in it is as good as the record (decision 0007).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

_FORM: Final = Struct("<qIIIIH")  # offset, length, due in s | since in s, size, tags
_COUNTED: Final = 16  # from here on stands what is counted
_MOST: Final = 2**32 - 1


class Mark(NamedTuple):
    """What a decider says of a state, so that it need not be decoded to be counted or to be due.

    `due` is its earliest deadline, in ms since the epoch. It counts under its `tags`, of which there are few
    different ones over all states; `since` is in s since the epoch, `size` in bytes.
    """

    due: int | None = None
    tags: tuple[str, ...] = ()
    since: int = 0
    size: int = 0


def whole_seconds(due: int | None) -> int | None:
    """A deadline as it is kept, in ms: in whole seconds, never earlier than it is."""
    return None if due is None else -(-due // 1000) * 1000


class Place(NamedTuple):
    """Where a state lies in its changelog, and the length of its record there."""

    offset: int
    length: int


class Marks:
    """Marks and places in 26 bytes a state."""

    def __init__(self) -> None:
        self._tags: list[tuple[str, ...]] = []
        self._numbers: dict[tuple[str, ...], int] = {}

    def pack(self, place: Place, mark: Mark) -> bytes:
        due = (whole_seconds(mark.due) or 0) // 1000
        tags = self._number(mark.tags)
        size = min(mark.size, _MOST)
        return _FORM.pack(place.offset, place.length, due, mark.since, size, tags)

    def _number(self, tags: tuple[str, ...]) -> int:
        number = self._numbers.get(tags)
        if number is None:
            number = self._numbers[tags] = len(self._tags)
            self._tags.append(tags)
        return number

    def place(self, packed: bytes) -> Place:
        offset, length, *_ = _FORM.unpack(packed)
        return Place(offset, length)

    def mark(self, packed: bytes) -> Mark:
        _, _, due, since, size, tags = _FORM.unpack(packed)
        return Mark(due * 1000 or None, self._tags[tags], since, size)

    def counted(self, packed: Iterable[bytes]) -> Iterator[tuple[Mark, int]]:
        """Every different mark, deadlines aside, and how many states have it."""
        for rest, times in Counter(one[_COUNTED:] for one in packed).items():
            yield self.mark(bytes(_COUNTED) + rest), times
