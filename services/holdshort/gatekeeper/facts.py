"""What a step of the gate says about interrupts, schemas and dead letters: numbers for metrics. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from holdshort.contract.descriptors import written_schema
from holdshort.contract.inputs import INPUTS
from holdshort.contract.messages import DEAD_LETTER, header
from holdshort.contract.resume import is_expired
from holdshort.contract.routes import Owner, owner_of
from holdshort.contract.state import Interrupt, Pause, ThreadState
from holdshort.contract.verdicts import Kind, Verdict

DEAD_LETTERS: Final = "dead-letters"


@dataclass(slots=True)
class Facts:
    """What has happened since they were last taken."""

    opened: Counter[Owner] = field(default_factory=Counter)
    closed: Counter[tuple[Owner, str]] = field(default_factory=Counter)
    decided: list[tuple[Owner, float]] = field(default_factory=list)
    schemas: Counter[bool] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    not_gated: int = 0

    def note(self, before: ThreadState, after: ThreadState, verdict: Verdict, topic: str, now: int) -> None:
        """One step: the state before and after it, its verdict, the record's topic, and when (ms)."""
        for emit in verdict.emits:
            if emit.topic == DEAD_LETTERS:
                self.dead[(header(emit.headers, DEAD_LETTER + "code") or b"").decode()] += 1
        if after.pause is not None and verdict.kind is Kind.OPENED:
            self._opened(after.pause)
        if before.pause is not None:
            self._closed(before, before.pause, after)
            self._decided(before.pause, after, verdict, topic, now)
        if after.ended != before.ended and after.ended and after.ended[0].not_gated:
            self.not_gated += 1

    def _opened(self, pause: Pause) -> None:
        for one in pause.interrupts:
            self.opened[_owner(one)] += 1
            if one.cancel_only or written_schema(one) != b"null":
                self.schemas[not one.cancel_only] += 1

    def _closed(self, before: ThreadState, pause: Pause, after: ThreadState) -> None:
        if after.pause is not None and after.pause.generation == pause.generation:
            return
        how = next((one.how for one in after.gone if one.generation == pause.generation), "abandoned")
        for one in pause.interrupts:
            late = before.run is not None and is_expired(one, before.run.admitted_at)
            outcome = "expired" if how == "settled" and late else how
            self.closed[_owner(one), outcome] += 1

    def _decided(self, pause: Pause, after: ThreadState, verdict: Verdict, topic: str, now: int) -> None:
        """An answer of a client's; those of teams are the router's to tell."""
        answered = after.run is not None and after.run.answers == pause.generation
        if verdict.kind is Kind.ADMITTED and topic == INPUTS and answered:
            waited = (now - pause.opened_at) / 1000
            self.decided += [(_owner(one), waited) for one in pause.interrupts]


def _owner(interrupt: Interrupt) -> Owner:
    return owner_of(interrupt.route, interrupt.team)
