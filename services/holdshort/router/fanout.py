"""Fan-out: a question for a team an interrupt, shown as long as the team is needed (router 2, 6). Pure."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from holdshort.contract import resume as batch
from holdshort.contract.descriptors import described, expires_at
from holdshort.contract.resume import Entry
from holdshort.contract.routes import CLIENT, PLAIN
from holdshort.contract.rules import Rules
from holdshort.contract.state import Interrupt, Pause
from holdshort.router import records
from holdshort.router.deadlines import cancel_is_unsafe, fill, fill_at, moved
from holdshort.router.gathering import VERSION, Asked, Gathering, Receipt
from holdshort.router.turn import Turn

# A team's number of questions that are shown to it here, and how many that may be (None: any number).
Room = Callable[[str], tuple[int, int | None]]

DENIALS: Final[tuple[Any, ...]] = ({"approved": False}, False)

_replace = msgspec.structs.replace


def opened(thread: str, pause: Pause, receipts: tuple[Receipt, ...], rules: Rules) -> Gathering:
    """The gathering of a pause that has just been seen."""
    return Gathering(
        v=VERSION,
        thread_id=thread,
        generation=pause.generation,
        opened_at=pause.opened_at,
        digest=pause.digest,
        asked=tuple(_asked(thread, pause, one, rules) for one in pause.interrupts),
        attempted=pause.attempted,
        receipts=receipts,
    )


def _asked(thread: str, pause: Pause, interrupt: Interrupt, rules: Rules) -> Asked:
    """One interrupt; of a pause that no team is asked about, its expiry is its client's affair."""
    expiry = expires_at(interrupt) if pause.routed else None
    asked = Asked(
        interrupt_id=interrupt.id,
        team=interrupt.team or CLIENT,
        approval_id=records.approval_id(thread, pause.generation, interrupt.id),
        expires_at=None if expiry is None else -(-expiry // 1000),
    )
    return with_policy(asked, interrupt, rules)


def with_policy(asked: Asked, interrupt: Interrupt, rules: Rules) -> Asked:
    """With the policy of its route as it is now, if the route is known here: later changes are for others.

    A configured answer is checked against the question's schema here, while there is time to ask people.
    """
    policy = rules.routes.policy(interrupt.route)
    if policy is None:
        return _replace(asked, unknown_route=True)
    kept = policy if policy != PLAIN else None
    fallback = next(_fitting_answers(asked, interrupt, rules, policy.answer), msgspec.UNSET)
    wanted = "answer" in (policy.on_deadline, policy.on_overflow)
    return _replace(asked, policy=kept, unknown_route=False, fallback=fallback if wanted else msgspec.UNSET)


def _fitting_answers(
    asked: Asked, interrupt: Interrupt, rules: Rules, configured: msgspec.Raw | msgspec.UnsetType
) -> Iterator[msgspec.Raw]:
    """The configured payload if it fits; without one, the plain denial that does."""
    payloads = DENIALS if configured is msgspec.UNSET else (msgspec.json.decode(configured),)
    if configured is msgspec.UNSET and _is_bare(interrupt):
        payloads = (False,)
    for payload in payloads:
        entry = Entry(asked.interrupt_id, True, payload, {})
        if not batch.payload_problems(entry, interrupt, batch.Work(rules.limits.work), check_unusable=True):
            yield msgspec.Raw(msgspec.json.encode(payload))


def _is_bare(interrupt: Interrupt) -> bool:
    descriptor = described(interrupt)
    return descriptor.get("reason") == "confirmation" and descriptor.get("responseSchema") is None


def learn_routes(turn: Turn) -> None:
    """Routes that were not known when the pause opened, and are known now."""
    for asked in turn.gathering.asked:
        if asked.unknown_route:
            interrupt = next(one for one in turn.pause.interrupts if one.id == asked.interrupt_id)
            if (known := with_policy(asked, interrupt, turn.rules)) != asked:
                turn.put(known)


def settle_in(turn: Turn, room: Room) -> None:
    """What is to be said of a pause when it opens: answers that do not fit, teams that are full."""
    for asked in turn.gathering.asked:
        if "answer" in (asked.put.on_deadline, asked.put.on_overflow) and asked.fallback is msgspec.UNSET:
            turn.does("unfit", asked)
    more: Counter[str] = Counter()

    def full(team: str) -> bool:
        open_, most = room(team)
        return most is not None and open_ + more[team] >= most

    for asked in turn.gathering.asked:
        if full(asked.team):
            _overflow(turn, asked, full)
        after = turn.gathering.one(asked.interrupt_id)
        if after is not None and after.answer is None:
            more[after.team] += 1


def _overflow(turn: Turn, asked: Asked, full: Callable[[str], bool]) -> None:
    """The team has all it takes: another is asked, or the router answers; an alert says so in any case.

    The other team's own bound holds, too: where both are full, `on_overflow` answers, else its own team is
    asked after all, for a question must be somewhere.
    """
    policy = asked.put
    turn.does("overflowed", asked)
    if policy.overflow_to is not None and not full(policy.overflow_to):
        turn.put(moved(asked, policy.overflow_to))
    elif policy.on_overflow == "answer" and asked.fallback is not msgspec.UNSET:
        fill(turn, asked, "overflow", answering=True)
    elif policy.on_overflow is not None and not cancel_is_unsafe(turn.pause, turn.rules):
        fill(turn, asked, "overflow")


# -- what teams see -----------------------------------------------------------------------------------------


def show(turn: Turn) -> None:
    """While the pause is open, unanswered questions stand in the teams' topics, as they are; else none."""
    before = {one.interrupt_id: one for one in turn.before.asked} if turn.before is not None else {}
    asked = tuple(_shown(turn, before.get(one.interrupt_id), one) for one in turn.gathering.asked)
    if any(new is not old for new, old in zip(asked, turn.gathering.asked, strict=True)):
        turn.gathering = _replace(turn.gathering, asked=asked)


def _shown(turn: Turn, before: Asked | None, asked: Asked) -> Asked:
    gathering = turn.gathering
    wanted = turn.open and asked.answer is None and turn.pause.routed
    if before is not None and before.shown:
        if not wanted or before.team != asked.team:
            turn.outputs.append(records.withdrawn(before))
        elif _looks(turn.before, before) == _looks(gathering, asked):
            return asked
    if wanted:
        deadline = fill_at(gathering, asked, turn.rules)
        turn.outputs.append(records.approval(gathering, asked, turn.pause, deadline))
    return asked if asked.shown == wanted else _replace(asked, shown=wanted)


def _looks(gathering: Gathering | None, asked: Asked) -> tuple[object, ...]:
    """What may change of an approval while its question stands."""
    assert gathering is not None
    attempted = asked.interrupt_id in gathering.attempted
    told = (asked.claim, len(asked.votes), asked.reminded, asked.policy)
    return (gathering.attempt, asked.team, attempted, *told)


def withdraw(gathering: Gathering) -> Iterator[Any]:
    """Its pause is over: nothing of it is shown any more."""
    return (records.withdrawn(one) for one in gathering.asked if one.shown)
