"""Open pauses as operators see them: one row an open interrupt, from what gate and router know. No IO."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
import typer

from holdshort.contract.descriptors import described, expires_at
from holdshort.contract.pending import UpgradeFirstError, decode_head, decode_pending
from holdshort.contract.routes import CLIENT
from holdshort.contract.rules import Rules
from holdshort.contract.state import NOTHING, Interrupt, Pause, ThreadState
from holdshort.router.deadlines import fill_at
from holdshort.router.gathering import Asked, Gathering, decode_gathering
from holdshort.router.records import approval_id
from holdshort.stream.errors import Fatal
from holdshort.stream.records import Record

State = Literal["waiting", "answered", "resuming", "held", "overdue", "sealed"]
UNANSWERED: Final = frozenset({"waiting", "held", "overdue"})


class Question(NamedTuple):
    """One open interrupt; times are ms since the epoch. A sealed pause has one row without an interrupt.

    `state`: it waits for its team; is answered and waits for the others; is with the agent; is held back by
    the router (`held` says why); is overdue where a cancel would not be safe; is sealed (only abandon ends
    it). `until` is when the router fills a missing answer in.
    """

    thread: str
    generation: int
    interrupt: str | None
    approval: str | None
    agent: str
    reason: str | None
    message: str | None
    tool: str | None
    team: str | None
    state: State
    held: str | None
    claimed_by: str | None
    attempt: int
    reserved: bool
    requester: str | None
    since: int
    until: int | None
    expires_at: int | None


class Paused(NamedTuple):
    """One thread with a pause: what the gate knows, and the router if it has got there."""

    thread: str
    state: ThreadState
    gathering: Gathering | None

    @property
    def pause(self) -> Pause:
        assert self.state.pause is not None
        return self.state.pause

    @property
    def gathered(self) -> Gathering | None:
        """The gathering, if it is of this pause and no other."""
        return self.gathering if self.gathering is not None and self.gathering.is_of(self.pause) else None


def keep_paused(record: Record) -> bytes | None:
    """For reading `pending`: the rows of threads with a pause. Raises Fatal."""
    try:
        return record.value if decode_head(record.value or b"").pause is not None else None
    except UpgradeFirstError as error:
        raise Fatal(f"pending/{record.partition}/{record.offset}: {error}") from error


def keep_open(record: Record) -> bytes | None:
    """For reading `gathering`: those whose pause is not over."""
    try:
        return (
            record.value if msgspec.json.decode(record.value or b"", type=_Closed).closed_at is None else None
        )
    except msgspec.MsgspecError:
        return record.value  # told with the thread that it is of


class _Closed(msgspec.Struct, rename="camel"):
    closed_at: int | None = None


def paused(pending: Mapping[bytes, bytes], gatherings: Mapping[bytes, bytes]) -> Iterator[Paused]:
    """Every thread with a pause. Raises Fatal."""
    for key, value in pending.items():
        one = read_thread(key, value, gatherings.get(key))
        if one.state.pause is not None:
            yield one


def read_thread(key: bytes, pending: bytes | None, gathering: bytes | None) -> Paused:
    """One thread's rows; without one in `pending` the gate knows nothing of it.

    Raises Fatal for a state of a newer version.
    What the router stores and we cannot read is told and left out: it must not keep anybody from the rest.
    """
    thread = key.decode(errors="replace")
    try:
        state = NOTHING if pending is None else decode_pending(pending)
    except (UpgradeFirstError, msgspec.MsgspecError) as error:
        raise Fatal(f"what is stored of thread {thread} cannot be read: {error}") from error
    try:
        known = None if gathering is None else decode_gathering(gathering)
    except msgspec.MsgspecError as error:
        typer.echo(f"holdshort: the router's record of thread {thread} cannot be read: {error}", err=True)
        known = None
    return Paused(thread, state, known)


def questions(one: Paused, rules: Rules) -> list[Question]:
    """The open interrupts of a pause, in its order."""
    if one.pause.sealed:
        return [_sealed(one)]
    return [_question(one, interrupt, rules) for interrupt in one.pause.interrupts]


def _sealed(one: Paused) -> Question:
    pause = one.pause
    return Question(
        thread=one.thread,
        generation=pause.generation,
        interrupt=None,
        approval=None,
        agent=pause.agent,
        reason=None,
        message=None,
        tool=None,
        team=None,
        state="sealed",
        held=None,
        claimed_by=None,
        attempt=1,
        reserved=False,
        requester=pause.principal,
        since=pause.opened_at,
        until=None,
        expires_at=None,
    )


def _question(one: Paused, interrupt: Interrupt, rules: Rules) -> Question:
    pause, gathering = one.pause, one.gathered
    asked = gathering.one(interrupt.id) if gathering is not None else None
    descriptor = described(interrupt)
    expiry = expires_at(interrupt)
    return Question(
        thread=one.thread,
        generation=pause.generation,
        interrupt=interrupt.id,
        approval=approval_id(one.thread, pause.generation, interrupt.id),
        agent=pause.agent,
        reason=descriptor.get("reason"),
        message=_text(descriptor.get("message")),
        tool=interrupt.tool.name if interrupt.tool else None,
        team=asked.team if asked is not None else interrupt.team or CLIENT,
        state=_state(pause, gathering, asked),
        held=gathering.held if gathering is not None else None,
        claimed_by=asked.claim.by if asked is not None and asked.claim is not None else None,
        attempt=gathering.attempt if gathering is not None else 1,
        reserved=interrupt.reserved,
        requester=pause.principal,
        since=pause.opened_at,
        until=_until(pause, gathering, asked, rules),
        expires_at=None if expiry is None else -(-expiry // 1000),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _state(pause: Pause, gathering: Gathering | None, asked: Asked | None) -> State:
    if pause.status == "resuming":
        return "resuming"
    if gathering is None or asked is None:
        return "waiting"
    if gathering.held is not None:
        return "held"
    if asked.answer is not None:
        return "answered"
    return "overdue" if asked.overdue else "waiting"


def _until(pause: Pause, gathering: Gathering | None, asked: Asked | None, rules: Rules) -> int | None:
    if gathering is None or asked is None or asked.answer is not None or pause.status == "resuming":
        return None
    return gathering.opened_at + asked.put.ttl_ms if asked.overdue else fill_at(gathering, asked, rules)


def as_object(one: Question) -> dict[str, Any]:
    """A row for programs: names in camelCase, times in ms since the epoch."""
    return {
        "threadId": one.thread,
        "generation": one.generation,
        "interruptId": one.interrupt,
        "approvalId": one.approval,
        "agent": one.agent,
        "reason": one.reason,
        "message": one.message,
        "tool": one.tool,
        "team": one.team,
        "state": one.state,
        "held": one.held,
        "claimedBy": one.claimed_by,
        "attempt": one.attempt,
        "reserved": one.reserved,
        "requester": one.requester,
        "since": one.since,
        "until": one.until,
        "expiresAt": one.expires_at,
    }


# -- teams that are gone ------------------------------------------------------------------------------------


def of_gone_teams(found: Iterable[Question], teams: Collection[str]) -> Iterator[tuple[str, str]]:
    """Teams that are asked and not configured any more: what that means, and what to do about it."""
    counts: dict[str, int] = {}
    for one in found:
        if one.team is not None and one.team not in teams and one.state in UNANSWERED:
            counts[one.team] = counts.get(one.team, 0) + 1
    for team, count in sorted(counts.items()):
        said = (
            f"open questions of team {team}, which is not configured any more: {count}; once the services "
            "have been started anew, what it decides is read by nobody, and each question ends at its "
            "deadline as its route had it"
        )
        advice = (
            f"configure {team} again until they are answered (what it decided meanwhile is read then), or "
            f"end each with `holdshort interrupts cancel` or `abandon`; delete no topic of {team} before "
            f"`holdshort interrupts list --team {team}` is empty"
        )
        yield said, advice


# -- which of them ------------------------------------------------------------------------------------------


class Filter(NamedTuple):
    """What is asked for; None lets everything pass. `reason` may end in a *, `older_than` is in ms."""

    team: str | None = None
    agent: str | None = None
    reason: str | None = None
    older_than: int | None = None

    def passes(self, question: Question, now: int) -> bool:
        return (
            self.team in (None, question.team)
            and self.agent in (None, question.agent)
            and (self.reason is None or _matches(self.reason, question.reason))
            and (self.older_than is None or now - question.since >= self.older_than)
        )


def _matches(pattern: str, reason: str | None) -> bool:
    if pattern.endswith("*"):
        return (reason or "").startswith(pattern[:-1])
    return reason == pattern


def named(name: str, known: Sequence[Question]) -> bool:
    """Whether a thread with these questions is meant by a thread id, an interrupt id or an approval id."""
    return any(name in (one.thread, one.interrupt, one.approval) for one in known)
