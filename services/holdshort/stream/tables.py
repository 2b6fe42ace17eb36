"""A partition of a table: a compacted topic of others, of which the latest record of a key counts. Pure.

As with our own state, the places of all rows are kept and the recent rows themselves.
"""

from holdshort.stream.hot import Hot
from holdshort.stream.records import Record


class Table:
    """Rows by key. Read from its beginning once, then followed; a row may be known before it is followed."""

    def __init__(self, hot: Hot[Record]) -> None:
        self.following = 0
        self.places: dict[bytes, int] = {}
        self._hot = hot

    def index(self, record: Record) -> None:
        """A record is there, as a restore has seen; it is not followed by that."""
        if record.key is None or record.offset < self.places.get(record.key, 0):
            return
        if record.value is None:
            self.places.pop(record.key, None)
        else:
            self.places[record.key] = record.offset
        self._hot.pop(record.key)

    def follow(self, record: Record) -> None:
        """A record has been read in its turn."""
        self.index(record)
        if record.key is not None and self.places.get(record.key) == record.offset:
            self.warm(record)

    def cold(self, key: bytes) -> int | None:
        """The offset at which a row has to be read first; None if there is none, or it is at hand."""
        return None if key in self._hot else self.places.get(key)

    def warm(self, record: Record) -> None:
        assert record.key is not None
        self._hot.put(record.key, record, len(record.value or b""))

    def get(self, key: bytes) -> Record | None:
        """The latest row of a key that is not cold."""
        return self._hot.get(key)

    def trim(self) -> None:
        self._hot.trim()
