"""The record of the compacted topic `pending` (pending.v1): a thread's state as bytes, and back.

A public contract: router, inbox and other tools read it. A newer version than this is refused, an older one
is brought up to date.
"""

from typing import Final

import msgspec

from holdshort.contract.state import EndedRun, GonePause, Pause, Run, ThreadState

VERSION: Final = 1


class UpgradeFirstError(ValueError):
    """The record was written by a newer version of holdshort, or cannot be read at all."""


class _Pending(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The record; what is needed of it at a restore (`_Head`) stands first."""

    v: int
    thread_id: str
    due: int | None = None
    generation: int = 0
    pause: Pause | None = None
    run: Run | None = None
    ended: tuple[EndedRun, ...] = ()
    gone: tuple[GonePause, ...] = ()


class HeadInterrupt(msgspec.Struct, frozen=True):
    """As much of an interrupt as is counted."""

    descriptor: msgspec.Raw
    team: str | None = None
    tool: msgspec.Raw = msgspec.Raw(b"")


class HeadPause(msgspec.Struct, frozen=True, rename="camel"):
    """As much of a pause as is counted."""

    agent: str
    opened_at: int
    status: str = "open"
    sealed: bool = False
    interrupts: tuple[HeadInterrupt, ...] = ()
    calls: tuple[msgspec.Raw, ...] = ()

    @property
    def size(self) -> int:
        """The same as the pause's own, from the bytes of its parts."""
        parts = [part for one in self.interrupts for part in (one.descriptor, one.tool)]
        return sum(len(bytes(part)) for part in (*parts, *self.calls))


class Head(msgspec.Struct, frozen=True):
    """As much of a record as a restore needs: its deadline, and what is counted."""

    v: int
    due: int | None = None
    pause: HeadPause | None = None


_decoder = msgspec.json.Decoder(_Pending)
_heads = msgspec.json.Decoder(Head)


def encode_pending(thread: str, state: ThreadState, due: int | None) -> bytes:
    return msgspec.json.encode(
        _Pending(
            v=VERSION,
            thread_id=thread,
            due=due,
            generation=state.generation,
            pause=state.pause,
            run=state.run,
            ended=state.ended,
            gone=state.gone,
        )
    )


def decode_pending(value: bytes) -> ThreadState:
    """Raises UpgradeFirstError."""
    try:
        _check(_heads.decode(value).v)
        record = _decoder.decode(value)
    except msgspec.MsgspecError as error:
        raise UpgradeFirstError("a record of pending cannot be read") from error
    return ThreadState(
        generation=record.generation,
        run=record.run,
        pause=record.pause,
        ended=record.ended,
        gone=record.gone,
    )


def decode_head(value: bytes) -> Head:
    """Raises UpgradeFirstError."""
    try:
        head = _heads.decode(value)
    except msgspec.MsgspecError as error:
        raise UpgradeFirstError("a record of pending cannot be read") from error
    _check(head.v)
    return head


def _check(version: int) -> None:
    if version > VERSION:
        raise UpgradeFirstError(f"a record of pending has version {version}, not {VERSION}: upgrade first")
