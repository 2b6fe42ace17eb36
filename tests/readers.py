"""What a client makes of `events`: whether what is shown is well framed, and what it holds to be open."""

from typing import Any

ENDS = ("RUN_FINISHED", "RUN_ERROR")


class BadlyFramedError(AssertionError):
    """An event was shown where an AG-UI client would refuse it."""


class Reader:
    """Reads everything shown, as AG-UI clients do (contract 3.2)."""

    def __init__(self) -> None:
        self.running: dict[tuple[str | None, str], bool] = {}
        self.pending: dict[str | None, set[str]] = {}

    def read(self, emits: list[dict[str, Any]]) -> None:
        for emit in emits:
            if emit["topic"] == "events":
                self._frame(emit)
                self._hold(emit["key"], emit["value"])

    def _frame(self, emit: dict[str, Any]) -> None:
        """RUN_STARTED first, no nesting, nothing after the end of a run but another RUN_STARTED."""
        run, type_ = (emit["key"], emit["headers"]["holdshort-run"]), emit["value"]["type"]
        if (type_ == "RUN_STARTED") == self.running.get(run, False):
            running = "running" if self.running.get(run) else "not running"
            raise BadlyFramedError(f"{type_} of {run} while it is {running}")
        self.running[run] = type_ not in ENDS

    def _hold(self, thread: str | None, event: dict[str, Any]) -> None:
        """An interrupt outcome sets what is pending, any other end clears it, RUN_ERROR keeps it."""
        if event["type"] == "RUN_FINISHED":
            outcome = event.get("outcome") or {}
            interrupts = outcome.get("interrupts", []) if outcome.get("type") == "interrupt" else []
            self.pending[thread] = {interrupt["id"] for interrupt in interrupts}
