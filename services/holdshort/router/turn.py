"""One turn of one thread in the making: what the router knows, what it writes, what it tells. Pure.

A record of `pending`, a decision or a deadline is one turn. Its steps (fan-out, judgement, what became of the
batch, deadlines, forwarding) change `gathering` one after the other; nothing has happened until the engine
commits what the turn ended with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

import msgspec

from holdshort.contract.messages import Emit
from holdshort.contract.rules import Rules
from holdshort.contract.state import Pause
from holdshort.router import records
from holdshort.router.gathering import Answer, Asked, Gathering, with_asked
from holdshort.stream.records import Record, RecordPlace

# What the router does by itself; each is told in the log, counted and audited.
Deed = Literal[
    "forwarded",
    "held",
    "shown_again",
    "sent_again",
    "reminded",
    "escalated",
    "overflowed",
    "answered",
    "cancelled",
    "expired",
    "overdue",
    "unfit",
    "abandoned",
    "overruled",
]
# Of these somebody should know, for people or programs are not as they were meant to be.
ALERTS: Final[tuple[Deed, ...]] = ("held", "escalated", "overflowed", "overdue", "unfit", "abandoned")
DEEDS: Final[tuple[Deed, ...]] = get_args(Deed)

_replace = msgspec.structs.replace


class Done(NamedTuple):
    """Something that the router has done by itself: ids and codes, never content."""

    deed: Deed
    team: str | None = None
    interrupt_id: str | None = None
    code: str | None = None
    run_id: str | None = None


@dataclass(slots=True, kw_only=True)
class Turn:
    """The gathering of an open pause on its way to what it is after this record or deadline.

    `before` is what it was: what teams see follows from the difference. `now` is the record's time or the
    deadline's, `clock` the engine's; both in ms since the epoch. `wanted` are records to be read first.
    """

    gathering: Gathering
    before: Gathering | None
    pause: Pause
    rules: Rules
    now: int
    clock: int
    fetched: Mapping[RecordPlace, Record | None]
    outputs: list[Emit] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    wanted: list[RecordPlace] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Whether the pause takes an answer now, and none is under way."""
        return self.pause.status == "open" and not self.gathering.settled

    def put(self, asked: Asked) -> None:
        self.gathering = with_asked(self.gathering, asked)

    def does(
        self, deed: Deed, asked: Asked | None = None, *, code: str | None = None, run_id: str | None = None
    ) -> None:
        """Something is done by the router itself."""
        team, id_ = (asked.team, asked.interrupt_id) if asked is not None else (None, None)
        self.done.append(Done(deed, team, id_, code, run_id))

    def hold(self, why: str) -> None:
        """Complete, but not sent: asking people again would not help; an alert says why."""
        if self.gathering.held is None:
            self.gathering = _replace(self.gathering, held=why)
            self.does("held", code=why)

    def overrule(self, asked: Asked, code: str) -> None:
        """Tell everybody whose answer to this question does not count after all."""
        for answer in asked.given:
            self.tell(asked, answer, code)

    def tell(self, asked: Asked, answer: Answer, code: str) -> None:
        """Another receipt for a decision: what was accepted of it does not count any more."""
        self.outputs.append(records.correction(self.gathering, asked, answer, code))
        self.does("overruled", asked, code=code)
