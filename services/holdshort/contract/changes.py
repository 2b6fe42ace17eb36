"""What can happen to a thread's state, and the state after it."""

from typing import assert_never

import msgspec

from holdshort.contract.state import EndedRun, GonePause, Pause, Run, ThreadState


class RunIs(msgspec.Struct, frozen=True):
    """The run in flight is now this one: admitted, heard of again, or begun outside the gate."""

    run: Run


class RunRevived(msgspec.Struct, frozen=True):
    """The lost run has spoken after all: it leaves the ended ones and is in flight again."""

    run: Run


class RunEnded(msgspec.Struct, frozen=True):
    """The run in flight is over; these are the runs remembered, the newest first."""

    ended: tuple[EndedRun, ...]


class PauseIs(msgspec.Struct, frozen=True):
    """The pause is now this one: opened, or changed in what is known about it."""

    pause: Pause


class PauseGone(msgspec.Struct, frozen=True):
    """The pause is no more; these are the pauses remembered, the newest first."""

    gone: tuple[GonePause, ...]


class Forgotten(msgspec.Struct, frozen=True):
    """What ended at or before `until` is no longer remembered."""

    until: int


Change = RunIs | RunRevived | RunEnded | PauseIs | PauseGone | Forgotten

_replace = msgspec.structs.replace


def evolve(state: ThreadState, changes: tuple[Change, ...]) -> ThreadState:
    """The state after the changes, in their order."""
    if not changes:
        return state
    for change in changes:
        state = _after(state, change)
    return _aligned(state)


def _after(state: ThreadState, change: Change) -> ThreadState:
    match change:
        case RunIs(run):
            return _replace(state, run=run)
        case RunRevived(run):
            return _replace(state, run=run, ended=state.ended[1:])
        case RunEnded(ended):
            return _replace(state, run=None, ended=ended)
        case PauseIs(pause):
            return _replace(state, pause=pause, generation=pause.generation)
        case PauseGone(gone):
            return _replace(state, pause=None, gone=gone)
        case Forgotten(until):
            ended = tuple(run for run in state.ended if run.at > until)
            return _replace(state, ended=ended, gone=tuple(p for p in state.gone if p.at > until))
        case _:
            assert_never(change)


def _aligned(state: ThreadState) -> ThreadState:
    """A pause is RESUMING while a run answers it, and OPEN otherwise; said here and nowhere else."""
    if state.pause is None:
        return state
    status = "open" if state.run is None else "resuming"
    if state.pause.status == status:
        return state
    return _replace(state, pause=_replace(state.pause, status=status))
