"""The most recently used values of a partition, within a budget of bytes. Pure."""

from collections import OrderedDict
from typing import Final, Generic, TypeVar

V = TypeVar("V")

OVERHEAD: Final = 704  # what a value weighs beside its own bytes: 350 to 650 were measured for states


class Hot(Generic[V]):
    """Values by key; `trim` lets the oldest go. Between two trims nothing is lost."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._weight = 0
        self._values: OrderedDict[bytes, tuple[V, int]] = OrderedDict()

    def __contains__(self, key: bytes) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: bytes) -> V | None:
        held = self._values.get(key)
        return held[0] if held is not None else None

    def put(self, key: bytes, value: V, size: int) -> None:
        self.pop(key)
        weight = size + OVERHEAD
        self._values[key] = (value, weight)
        self._weight += weight

    def pop(self, key: bytes) -> None:
        held = self._values.pop(key, None)
        if held is not None:
            self._weight -= held[1]

    def trim(self) -> None:
        while self._weight > self._budget:
            _, (_, weight) = self._values.popitem(last=False)
            self._weight -= weight
