"""The keyed state of one partition: the places of all, the recent ones decoded, a batch's changes apart.

A state that is not at hand is *cold*: the batch reads it at its place in the changelog before it is used.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from holdshort.stream.deadlines import Deadlines
from holdshort.stream.hot import Hot
from holdshort.stream.marks import Mark, Marks, Place, whole_seconds

S = TypeVar("S")

TURN: Final = 20_000  # keys between two turns of the loop: a restore must not silence the other lanes


class Changed(NamedTuple, Generic[S]):
    """A key's state now, and its marks before the batch and now; no mark for no state."""

    after: S | None
    mark_before: Mark | None
    mark: Mark | None


class Store(Generic[S]):
    """States by key. Changes count at once, and are taken back if the batch is rolled back.

    `counted(mark, times)` is told of every state that comes or goes, `mark` says how a state counts.
    """

    def __init__(
        self,
        places: dict[bytes, bytes],
        marks: Marks,
        hot: Hot[S],
        mark: Callable[[S], Mark],
        counted: Callable[[Mark, int], None],
    ) -> None:
        self.places = places
        self.bytes = 0
        self.deadlines = Deadlines()
        self._marks = marks
        self._mark = mark
        self._counted = counted
        self._hot = hot
        self._uncommitted: dict[bytes, Changed[S]] = {}

    def restored(self) -> Iterator[None]:
        """Count what a restore has found, and look out for its deadlines; yields now and then."""
        for mark, times in self._marks.counted(self.places.values()):
            self._counted(mark, times)
        for number, (key, packed) in enumerate(self.places.items()):
            self.bytes += self._marks.place(packed).length
            if (due := self._marks.mark(packed).due) is not None:
                self.deadlines.add(key, due)
            if number % TURN == 0:
                yield

    @property
    def uncommitted(self) -> Mapping[bytes, Changed[S]]:
        return self._uncommitted

    # -- reading -------------------------------------------------------------------------------------------

    def cold(self, key: bytes) -> Place | None:
        """Where a state has to be read first; None if there is none, or it is at hand."""
        packed = self.places.get(key)
        if packed is None or key in self._hot or key in self._uncommitted:
            return None
        return self._marks.place(packed)

    def warm(self, key: bytes, state: S, size: int) -> None:
        """The state that was read at its place; it stays at hand until the batch ends."""
        self._hot.put(key, state, size)

    def get(self, key: bytes) -> S | None:
        """The state of a key that is not cold, with what this batch has changed."""
        if (changed := self._uncommitted.get(key)) is not None:
            return changed.after
        state = self._hot.get(key)
        assert state is not None or key not in self.places, "a cold state is read first"
        return state

    # -- changing ------------------------------------------------------------------------------------------

    def put(self, key: bytes, state: S | None) -> None:
        """The state of a key from here on, within this batch."""
        known = self._uncommitted.get(key)
        before = known.mark_before if known else self._committed_mark(key)
        now = known.mark if known else before
        mark = None if state is None else self._mark(state)
        self._uncommitted[key] = Changed(state, before, mark)
        self._recount(now, mark)

    def amend(self, key: bytes, state: S) -> None:
        """A state of this batch, with something more that its mark does not speak of."""
        _, before, mark = self._uncommitted[key]
        self._uncommitted[key] = Changed(state, before, mark)

    def _committed_mark(self, key: bytes) -> Mark | None:
        packed = self.places.get(key)
        return None if packed is None else self._marks.mark(packed)

    def _recount(self, before: Mark | None, after: Mark | None) -> None:
        if before and after and before[1:] == after[1:]:
            return  # only its deadline has moved
        if before is not None:
            self._counted(before, -1)
        if after is not None:
            self._counted(after, +1)

    def commit(self, places: Mapping[bytes, Place]) -> None:
        """The batch is committed; `places` is where the state of each changed key lies now."""
        for key, changed in self._uncommitted.items():
            self._hot.pop(key)
            before = self.places.pop(key, None)
            self.bytes -= self._marks.place(before).length if before else 0
            if changed.after is not None and changed.mark is not None:
                self._keep(key, changed.after, changed.mark, places[key])
                self._schedule(key, changed.mark_before, changed.mark)
        self._uncommitted.clear()
        self._hot.trim()

    def _keep(self, key: bytes, state: S, mark: Mark, place: Place) -> None:
        self.places[key] = self._marks.pack(place, mark)
        self.bytes += place.length
        self._hot.put(key, state, place.length)

    def _schedule(self, key: bytes, before: Mark | None, mark: Mark) -> None:
        due = whole_seconds(mark.due)
        if due is not None and (before is None or due != whole_seconds(before.due)):
            self.deadlines.add(key, due)

    def roll_back(self) -> None:
        """The batch will not happen: as if it had never been decided."""
        for changed in self._uncommitted.values():
            self._recount(changed.mark, changed.mark_before)
        self._uncommitted.clear()
        self._hot.trim()
