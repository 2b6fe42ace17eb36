"""A store shows a batch its own changes, and forgets them if the batch does not happen."""

from collections.abc import Mapping

from holdshort.stream.store import Store


class Tally:
    """Counts what it is told of changes, as a decider does."""

    def __init__(self) -> None:
        self.sum = 0

    def changed(self, before: int | None, after: int | None) -> None:
        self.sum += (after or 0) - (before or 0)


def make(values: Mapping[bytes, bytes] | None = None) -> tuple[Store[int], Tally]:
    tally = Tally()
    store: Store[int] = Store(dict(values or {}), int, lambda state: state * 1000, tally.changed)
    return store, tally


def test_a_batch_sees_its_own_changes_and_others_see_them_when_it_is_committed() -> None:
    store, tally = make({b"k": b"1"})

    store.put(b"k", 2)
    assert store.get(b"k") == 2
    assert store.values == {b"k": b"1"}

    store.commit({b"k": b"2"})
    assert (store.get(b"k"), store.values, tally.sum) == (2, {b"k": b"2"}, 1)


def test_a_batch_that_does_not_happen_leaves_nothing() -> None:
    store, tally = make({b"k": b"1"})

    store.put(b"k", 5)
    store.put(b"k", None)
    store.put(b"new", 7)
    store.roll_back()

    assert (store.get(b"k"), store.get(b"new"), tally.sum) == (1, None, 0)
    assert not store.uncommitted


def test_a_key_that_ends_without_state_is_gone() -> None:
    store, _ = make({b"k": b"1"})

    store.put(b"k", None)
    store.commit({b"k": None})

    assert (store.get(b"k"), store.values, store.bytes) == (None, {}, 0)


def test_a_deadline_is_looked_at_when_it_has_moved_and_only_then() -> None:
    store, _ = make({b"k": b"1"})

    store.put(b"k", 9)
    store.commit({b"k": b"9"})
    store.put(b"k", 9)
    store.commit({b"k": b"9"})

    assert list(store.deadlines.pop(9_000)) == [b"k"]


def test_bytes_are_those_of_the_values_held() -> None:
    store, _ = make({b"a": b"1", b"b": b"22"})

    store.put(b"a", 333)
    store.commit({b"a": b"333"})

    assert store.bytes == 5
