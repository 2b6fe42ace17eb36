"""Deadlines of many keys: which keys may have something due by now.

The deadline itself is in the key's state; here is only where to look. So a key may stand here for a deadline
that has moved (it is looked at in vain), but is never missing for one that is due.
"""

import heapq
from collections.abc import Iterator
from typing import Final

GRAIN_MS: Final = 1_000


class Deadlines:
    """Keys by the second in which they are due; memory is one reference a deadline."""

    def __init__(self) -> None:
        self._keys: dict[int, list[bytes]] = {}
        self._grains: list[int] = []

    def add(self, key: bytes, at: int) -> None:
        """Look at `key` at `at` (ms since the epoch), or up to a second later, never before."""
        grain = -(-at // GRAIN_MS)
        if grain not in self._keys:
            self._keys[grain] = []
            heapq.heappush(self._grains, grain)
        self._keys[grain].append(key)

    def next_at(self) -> int | None:
        """When to look next, in ms since the epoch."""
        return self._grains[0] * GRAIN_MS if self._grains else None

    def pop(self, now: int, most: int) -> Iterator[bytes]:
        """At most so many keys to look at; each is gone from here, to be added again if it is not done."""
        while most > 0 and self._grains and self._grains[0] * GRAIN_MS <= now:
            keys = self._keys[self._grains[0]]
            yield from keys[-most:]
            most, left = most - len(keys), keys[:-most]
            if left:
                self._keys[self._grains[0]] = left
            else:
                del self._keys[heapq.heappop(self._grains)]
