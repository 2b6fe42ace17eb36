"""The states of a lane's task, and which may follow which.

                 ┌──────────────── Retry ────────────────┐
                 ▼                                        │
CREATED ──▶ FENCING ──▶ RESTORING ──▶ RUNNING ──▶ (Retry: FENCING)
                 │            │            │
                 └────────────┴─────┬──────┘
                                    ├──▶ HALTED   (Halt: a human must look; a loss that is accepted: FENCING)
                                    └──▶ CLOSED   (Fenced, revoked or stopped)
"""

from enum import Enum


class State(Enum):
    """Where a task is; `can_become` is the whole of its life."""

    CREATED = "created"
    FENCING = "fencing"
    RESTORING = "restoring"
    RUNNING = "running"
    HALTED = "halted"
    CLOSED = "closed"

    def can_become(self, after: "State") -> bool:
        return after in _AFTER[self]


_AFTER: dict[State, frozenset[State]] = {
    State.CREATED: frozenset({State.FENCING, State.CLOSED}),
    State.FENCING: frozenset({State.RESTORING, State.FENCING, State.HALTED, State.CLOSED}),
    State.RESTORING: frozenset({State.RUNNING, State.FENCING, State.HALTED, State.CLOSED}),
    State.RUNNING: frozenset({State.FENCING, State.HALTED, State.CLOSED}),
    State.HALTED: frozenset({State.FENCING, State.CLOSED}),
    State.CLOSED: frozenset(),
}
