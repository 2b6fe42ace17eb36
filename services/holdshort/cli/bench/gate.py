"""What is measured, as the load sees it: something that is started, works on the topics, and is stopped."""

from typing import NamedTuple, Protocol

Figures = dict[str, float]
"""What was measured, by name; the unit stands in the name."""


class Spent(NamedTuple):
    """CPU seconds and peak memory so far; None where nobody can tell."""

    system_s: float | None = None
    broker_s: float | None = None
    memory_mb: float | None = None

    def since(self, before: "Spent") -> "Spent":
        return Spent(
            _less(self.system_s, before.system_s), _less(self.broker_s, before.broker_s), self.memory_mb
        )

    def figures(self, records: int, of: str = "records") -> Figures:
        """Per 1,000 of what was done with it."""
        thousands = records / 1000
        found = {
            f"CPU s per 1,000 {of}": self.system_s and self.system_s / thousands,
            f"broker CPU s per 1,000 {of}": self.broker_s and self.broker_s / thousands,
            "memory MB": self.memory_mb,
        }
        return {name: value for name, value in found.items() if value is not None}

    def shares(self, seconds: float, when: str) -> Figures:
        """As a share of one core while `seconds` passed."""
        found = {f"{when} CPU %": self.system_s, f"{when} broker CPU %": self.broker_s}
        return {name: value / seconds * 100 for name, value in found.items() if value is not None}


def _less(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


class Gate(Protocol):
    """A system that reads `agent-events.default` and `inputs` and writes `events` and `runs.default`."""

    @property
    def refuses(self) -> bool:
        """Whether it has rules: an input that answers nothing is refused while a question is open."""
        ...

    def start(self) -> float:
        """Returns the moment on the monotonic clock."""
        ...

    def stop(self) -> None:
        """In order; returns when it has ended."""
        ...

    def check(self) -> None:
        """Raises MeasureAgainError if it has ended by itself."""
        ...

    def spent(self) -> Spent:
        """By what runs now, since it was started; by the broker, since that was."""
        ...


class Measured(NamedTuple):
    """One measurement: its figures, and what was not exactly as it must be."""

    figures: Figures
    problems: list[str]
