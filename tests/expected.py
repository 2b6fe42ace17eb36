"""What the gate must say of a record, for the playbook: `play >> record << opened("a")`."""

from collections.abc import Mapping
from typing import Any, Final


class Expected:
    """What must hold of one answer; only what is given is compared."""

    def __init__(self, verdict: str, code: str | None = None, **holds: Any) -> None:
        self.holds = {"verdict": verdict, "code": code, **holds}

    def differences(self, got: Mapping[str, Any]) -> list[str]:
        return [
            f"{name}: expected {value!r}, got {got[name]!r}"
            for name, value in self.holds.items()
            if got[name] != value
        ]


def opened(*ids: str, code: str | None = None, **holds: Any) -> Expected:
    return Expected("opened", code, open=list(ids), **holds)


def refused(code: str, **holds: Any) -> Expected:
    """`about`: the interrupts named by its problems; `shown`: the events by which the caller is told."""
    return Expected("refused", code, **{"shown": ["RUN_STARTED", "RUN_ERROR"], **holds})


def quietly_refused(code: str, **holds: Any) -> Expected:
    """Refused without a word on `events`: a record from `resumes`, or under the id of the run in flight."""
    return refused(code, **{"shown": [], **holds})


def admitted(to: str = "default", **holds: Any) -> Expected:
    return Expected("admitted", **{"emitted": [f"runs.{to}"], **holds})


def passed(**holds: Any) -> Expected:
    return Expected("passed", **holds)


def ignored(**holds: Any) -> Expected:
    """Ignored and, unless `shown` says otherwise, not shown."""
    return Expected("ignored", **{"code": None, "shown": [], **holds})


def settled(number: int | None, /, **holds: Any) -> Expected:
    """A pause ended, the n-th of the thread; or with None a run that answered none."""
    return Expected("settled", **{"code": None, "settled": number, **holds})


def abandoned(number: int | None = None, /, **holds: Any) -> Expected:
    return settled(number, code="ABANDONED", **holds)


def forgotten(number: int | None = None, /, **holds: Any) -> Expected:
    """The thread is forgotten, and what was open with it is over; with a number the n-th pause."""
    gone: dict[str, Any] = {"settled": number, "generation": None, "status": None, "open": []}
    return Expected(
        "forgotten", holds.pop("code", None if number is None else "ABANDONED"), **{**gone, **holds}
    )


def reopened(*ids: str, **holds: Any) -> Expected:
    return Expected("reopened", open=list(ids), status="open", **holds)


def lost(**holds: Any) -> Expected:
    return Expected("lost", "RUN_LOST", **holds)


def violated(code: str, **holds: Any) -> Expected:
    return Expected("violated", code, **holds)


def unreadable(code: str, **holds: Any) -> Expected:
    return Expected("unreadable", code, **holds)


def replayed(code: str | None = None, **holds: Any) -> Expected:
    return Expected("replayed", code, **holds)


duplicate: Final = Expected("duplicate", emitted=[])
