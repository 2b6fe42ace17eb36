"""What a step of the router says about decisions, batches and dead letters: numbers for metrics. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdshort.contract.routes import Owner, owner_of
from holdshort.contract.state import Pause
from holdshort.router.decisions import Judged


@dataclass(slots=True)
class Facts:
    """What has happened since they were last taken; times are in s.

    `judged` is by team, verdict and code, `deeds` by deed and team, empty for none, `dead` by code.
    """

    judged: Counter[tuple[str, str, str | None]] = field(default_factory=Counter)
    deeds: Counter[tuple[str, str]] = field(default_factory=Counter)
    decided: list[tuple[Owner, float]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    dead: Counter[str] = field(default_factory=Counter)

    def answered(self, pause: Pause | None, judged: Iterable[Judged], now: int) -> None:
        """Entries of a decision were judged at `now` (ms): a question that is decided by it waits no longer.

        A claim decides nothing, nor does a voice that is not the last of its quorum.
        """
        decided = (one for one in judged if one.verdict == "accepted" and one.asked and one.asked.answer)
        accepted = {one.interrupt_id for one in decided}
        if pause is not None:
            waited = (now - pause.opened_at) / 1000
            mine = (one for one in pause.interrupts if one.id in accepted)
            self.decided += [(owner_of(one.route, one.team), waited) for one in mine]

    def forwarded(self, pause: Pause, now: int) -> None:
        """The whole batch of the pause was sent at `now` (ms)."""
        self.waits.append((now - pause.opened_at) / 1000)
