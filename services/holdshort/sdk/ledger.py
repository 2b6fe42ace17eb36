"""What is durable of the runs of one partition: read, waiting, begun. It travels with the committed offset.

Never silently repeat (design, what must never happen 1): a run is executed only after the commit that says it
has begun, and a run that a ledger calls begun is never executed again. Whoever takes a partition over runs
what was read and not begun, and answers RUN_ERROR for what a worker that is gone had begun.

The committed offset is the position behind the last run that was read; its metadata names the runs below it
that are not over, by their distance from it: `{"v": 1, "waiting": [1], "begun": {"5f3a9c01": [2, 7]}}`.
Kafka bounds metadata (4,096 bytes): the oldest begun runs beyond that, and those further back than HORIZON,
are left out. The gate's lease watches over them, as over everything. Pure.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Self

import orjson

VERSION: Final = 1
HORIZON: Final = 1000  # offsets that a takeover reads again at most, but for waiting runs
LARGEST: Final = 3600  # bytes; a waiting run is never left out, and 500 of them fit


@dataclass(slots=True)
class Ledger:
    """Mutable; offsets are those of `runs.<agent>`. `begun` names the worker of each run."""

    position: int
    waiting: set[int] = field(default_factory=set)
    begun: dict[int, str] = field(default_factory=dict)

    # -- what happens to a run -----------------------------------------------------------------------------

    def read(self, offset: int) -> None:
        """A run was taken out of the log."""
        self.position = max(self.position, offset + 1)
        self.waiting.add(offset)

    def begin(self, offset: int, worker: str) -> None:
        """It may be executed as soon as this has been committed."""
        self.waiting.discard(offset)
        self.begun[offset] = worker

    def defer(self, offset: int) -> None:
        """It has not been executed after all: whoever comes next may begin it."""
        if self.begun.pop(offset, None) is not None:
            self.waiting.add(offset)

    def end(self, offset: int) -> None:
        """It is over, or will never be executed and has been answered."""
        self.waiting.discard(offset)
        self.begun.pop(offset, None)

    # -- on the wire ---------------------------------------------------------------------------------------

    def encode(self) -> tuple[int, str]:
        """The offset to commit, and its metadata."""
        known = sorted((o for o in self.begun if self.position - o <= HORIZON), reverse=True)
        while len(text := self._metadata(known)) > LARGEST and known:
            known = known[: len(known) * 3 // 4]
        return self.position, text

    def _metadata(self, known: Collection[int]) -> str:
        begun: dict[str, list[int]] = {}
        for offset in known:
            begun.setdefault(self.begun[offset], []).append(self.position - offset)
        if not self.waiting and not begun:
            return ""
        waiting = sorted(self.position - offset for offset in self.waiting)
        return orjson.dumps({"v": VERSION, "waiting": waiting, "begun": begun}).decode()

    @classmethod
    def decode(cls, offset: int, metadata: str) -> Self:
        """A committed ledger. What is not one (a position set by hand) is a position alone."""
        ledger = cls(offset)
        try:
            told = orjson.loads(metadata)
        except orjson.JSONDecodeError:
            return ledger
        if isinstance(told, dict) and told.get("v") == VERSION:
            ledger.waiting = {offset - back for back in _distances(told.get("waiting"), offset)}
            begun = told.get("begun")
            for worker, distances in begun.items() if isinstance(begun, dict) else ():
                ledger.begun |= {offset - back: worker for back in _distances(distances, offset)}
        return ledger

    # -- taking a partition over ---------------------------------------------------------------------------

    def orphans(self, alive: Collection[str]) -> set[int]:
        """Begun runs whose worker is gone: they must be answered, and never executed."""
        return {offset for offset, worker in self.begun.items() if worker not in alive}

    def reread_from(self, orphans: Collection[int]) -> int:
        """Where reading has to go on, so that every waiting run and every orphan comes by again."""
        return min((self.position, *self.waiting, *orphans))


def _distances(told: Any, offset: int) -> Iterator[int]:
    for one in told if isinstance(told, list) else ():
        if isinstance(one, int) and not isinstance(one, bool) and 0 < one <= offset:
            yield one
