"""A store shows a batch its own changes, forgets those that do not happen, and keeps only places for long."""

from collections import Counter

from holdshort.stream.hot import Hot
from holdshort.stream.marks import Mark, Marks, Place
from holdshort.stream.store import Store


class Tally(Counter[tuple[str, ...]]):
    """Counts what it is told of states, as a decider does."""

    def told(self, mark: Mark, times: int) -> None:
        self[mark.tags] += times


def mark(state: int) -> Mark:
    """A state is a number: it is due in so many seconds, and counts as even or odd."""
    return Mark(state * 1000, ("odd",) if state % 2 else ("even",))


def make(*states: int, hot_bytes: int = 1_000_000) -> tuple[Store[int], Tally]:
    """Restored with a state each under its own name, at offset 0, 1, ..., ten bytes long."""
    tally, marks = Tally(), Marks()
    places = {
        b"%d" % state: marks.pack(Place(number, 10), mark(state)) for number, state in enumerate(states)
    }
    store: Store[int] = Store(places, marks, Hot(hot_bytes), mark, tally.told)
    list(store.restored())
    return store, tally


def test_what_was_restored_is_counted_and_lies_where_it_was_read() -> None:
    store, tally = make(1, 2, 3)

    assert tally == {("odd",): 2, ("even",): 1}
    assert (store.cold(b"3"), store.cold(b"none"), store.bytes) == (Place(2, 10), None, 30)


def test_a_cold_state_that_was_read_is_at_hand() -> None:
    store, _ = make(1)

    store.warm(b"1", 1, 10)

    assert (store.cold(b"1"), store.get(b"1")) == (None, 1)


def test_a_batch_sees_its_own_changes_and_they_stay_when_it_is_committed() -> None:
    store, tally = make()

    store.put(b"k", 1)
    store.put(b"k", 2)
    assert store.get(b"k") == 2
    assert b"k" not in store.places

    store.commit({b"k": Place(7, 20)})
    assert (store.get(b"k"), store.bytes) == (2, 20)
    assert +tally == {("even",): 1}


def test_a_batch_that_does_not_happen_leaves_nothing() -> None:
    store, tally = make(1)
    store.warm(b"1", 1, 10)

    store.put(b"1", 4)
    store.put(b"1", None)
    store.put(b"new", 7)
    store.roll_back()

    assert (store.get(b"1"), store.get(b"new")) == (1, None)
    assert +tally == {("odd",): 1}
    assert not store.uncommitted


def test_a_key_that_ends_without_state_is_gone() -> None:
    store, tally = make(1)
    store.warm(b"1", 1, 10)

    store.put(b"1", None)
    store.commit({b"1": Place(8, 0)})

    assert (store.get(b"1"), store.places, store.bytes) == (None, {}, 0)
    assert not +tally


def test_a_deadline_is_looked_at_when_it_has_moved_and_only_then() -> None:
    store, _ = make(1)
    store.warm(b"1", 1, 10)
    assert list(store.deadlines.pop(8_000, 9)) == [b"1"]

    for state in (9, 9):
        store.put(b"1", state)
        store.commit({b"1": Place(8, 10)})

    assert list(store.deadlines.pop(9_000, 9)) == [b"1"]


def test_what_has_not_been_used_for_long_is_read_again() -> None:
    store, _ = make(hot_bytes=2_000)

    for number in range(3):
        store.put(b"%d" % number, number)
        store.commit({b"%d" % number: Place(number, 500)})

    assert [store.cold(b"%d" % number) is not None for number in range(3)] == [True, True, False]
    assert store.bytes == 1_500
