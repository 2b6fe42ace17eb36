"""A table knows where the latest row of every key lies, in whatever order it learns of it."""

from holdshort.stream.hot import Hot
from holdshort.stream.records import Record
from holdshort.stream.tables import Table


def row(offset: int, value: bytes | None = b"v") -> Record:
    return Record("table", 0, offset, b"k", value, (), 0)


def test_a_followed_row_is_at_hand_and_one_that_is_only_known_of_is_cold() -> None:
    table = Table(Hot(1_000_000))

    table.index(row(3))
    assert (table.cold(b"k"), table.get(b"k")) == (3, None)

    table.follow(row(4))
    assert (table.cold(b"k"), table.get(b"k")) == (None, row(4))


def test_a_row_is_not_replaced_by_an_older_one() -> None:
    table = Table(Hot(1_000_000))
    table.index(row(9))

    table.follow(row(4))

    assert table.cold(b"k") == 9


def test_a_tombstone_ends_a_row() -> None:
    table = Table(Hot(1_000_000))
    table.follow(row(1))

    table.follow(row(2, None))

    assert (table.cold(b"k"), table.get(b"k")) == (None, None)


def test_rows_that_have_not_been_used_for_long_are_cold() -> None:
    table = Table(Hot(1_000_000))
    table.follow(row(1, bytes(1_000_000)))

    table.trim()

    assert table.cold(b"k") == 1
