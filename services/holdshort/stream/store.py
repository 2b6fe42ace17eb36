"""The keyed state of one partition: as its changelog says, and what a batch has changed of it so far."""

from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from holdshort.stream.deadlines import Deadlines

S = TypeVar("S")

DECODED_MOST: Final = 20_000


class Changed(NamedTuple, Generic[S]):
    """A key's state before the batch and now."""

    before: S | None
    after: S | None


class Store(Generic[S]):
    """Values as bytes, exactly as the changelog holds them; states are decoded when they are used.

    A batch's changes stay apart until it is committed: they are told to `changed` at once, and told back if
    the batch is rolled back.
    """

    def __init__(
        self,
        values: dict[bytes, bytes],
        decode: Callable[[bytes], S],
        due: Callable[[S], int | None],
        changed: Callable[[S | None, S | None], None],
    ) -> None:
        self.values = values
        self.bytes = sum(map(len, values.values()))
        self.deadlines = Deadlines()
        self._decode = decode
        self._due = due
        self._changed = changed
        self._decoded: dict[bytes, S] = {}
        self._uncommitted: dict[bytes, Changed[S]] = {}

    @property
    def uncommitted(self) -> Mapping[bytes, Changed[S]]:
        return self._uncommitted

    def get(self, key: bytes) -> S | None:
        """The state of a key, with what this batch has changed."""
        if (changed := self._uncommitted.get(key)) is not None:
            return changed.after
        state = self._decoded.get(key)
        if state is None and (value := self.values.get(key)) is not None:
            state = self._decode(value)
            self._keep(key, state)
        return state

    def put(self, key: bytes, state: S | None) -> None:
        """The state of a key from here on, within this batch."""
        now = self.get(key)
        before = self._uncommitted[key].before if key in self._uncommitted else now
        self._uncommitted[key] = Changed(before, state)
        self._changed(now, state)

    def commit(self, values: Mapping[bytes, bytes | None]) -> None:
        """The batch is committed; `values` is what was written for its changed keys."""
        for key, changed in self._uncommitted.items():
            self._set(key, values[key])
            if changed.after is not None:
                self._keep(key, changed.after)
                self._schedule(key, changed)
        self._uncommitted.clear()

    def roll_back(self) -> None:
        """The batch will not happen: as if it had never been decided."""
        for changed in self._uncommitted.values():
            self._changed(changed.after, changed.before)
        self._uncommitted.clear()

    def _set(self, key: bytes, value: bytes | None) -> None:
        self.bytes += len(value or b"") - len(self.values.get(key, b""))
        self._decoded.pop(key, None)
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def _keep(self, key: bytes, state: S) -> None:
        if len(self._decoded) >= DECODED_MOST:
            for old in list(self._decoded)[: DECODED_MOST // 2]:
                del self._decoded[old]
        self._decoded[key] = state

    def _schedule(self, key: bytes, changed: Changed[S]) -> None:
        due = None if changed.after is None else self._due(changed.after)
        known = None if changed.before is None else self._due(changed.before)
        if due is not None and due != known:
            self.deadlines.add(key, due)
