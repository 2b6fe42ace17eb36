"""Router 1, 2 and 6, in records: what a route says is shown, and a team that has all it takes is spared."""

import msgspec
from tests.router.scenes import (
    SCHEMA,
    YES,
    answers,
    approval,
    code,
    config,
    deeds,
    on,
    pause,
    question,
    runs,
    why,
)
from tests.systems import PARTITIONS, System

from holdshort.contract.keys import partition_of
from holdshort.contract.routes import Route, RouteTable

LIMITED = "{payments: {max_open: 2}, dba: {}, ops: {}}"  # one for each of the two partitions

KEY = f"{{key: {'A' * 43}, decider: ann}}"
STRICT = config(
    'reason: "p:*", team: payments, signature: required',
    teams=f"{{payments: {{keys: {{k: {KEY}}}}}, dba: {{}}, ops: {{}}}}",
)


def threads_together(count: int) -> list[str]:
    """Threads of one partition."""
    home = partition_of(b"t", PARTITIONS)
    found = (f"t{number}" for number in range(1000))
    return [one for one in found if partition_of(one.encode(), PARTITIONS) == home][:count]


@on(config('reason: "p:*", team: payments, priority: 7, quorum: 1'))
async def test_what_the_route_says_is_shown(s: System) -> None:
    await pause(s, question("a", "p:x"))
    shown = approval(s, "payments", "a")

    assert (shown["priority"], shown["signature"], shown["requesterMayDecide"]) == (7, "optional", True)


@on(config('reason: "p:*", team: payments'))
async def test_a_console_that_starts_a_month_later_has_exactly_the_open_questions(s: System) -> None:
    for thread in ("t", "u", "w"):
        await pause(s, question(f"of {thread}", "p:x", responseSchema=SCHEMA), thread=thread)
    await s.decide("payments", "u", {"of u": YES})

    assert sorted(s.asked("payments")) == ["of t", "of w"]
    assert approval(s, "payments", "of t")["interrupt"]["responseSchema"] == SCHEMA


@on(config('reason: "p:*", team: payments, overflow_to: dba', teams=LIMITED))
async def test_beyond_what_a_team_takes_another_is_asked(s: System) -> None:
    first, second, third = threads_together(3)
    await pause(s, question("a", "p:x"), thread=first)
    await pause(s, question("b", "p:x"), thread=second)

    assert (list(s.asked("payments")), list(s.asked("dba"))) == (["a"], ["b"])
    assert approval(s, "dba", "b")["movedFrom"] == "payments"
    assert deeds(s, "overflowed") == ["overflowed"]
    await s.decide("payments", first, {"a": YES})
    await pause(s, question("c", "p:x"), thread=third)
    assert list(s.asked("payments")) == ["c"]


BOTH_LIMITED = "{payments: {max_open: 1}, dba: {max_open: 1}, ops: {}}"


@on(config('reason: "p:*", team: payments, overflow_to: dba', teams=BOTH_LIMITED))
async def test_the_other_team_has_a_bound_of_its_own(s: System) -> None:
    first, second = threads_together(2)
    await pause(s, question("a", "p:x"), question("b", "p:x"), question("c", "p:x"), thread=first)
    await pause(s, question("d", "p:x"), thread=second)

    assert list(s.asked("dba")) == ["b"]
    assert sorted(s.asked("payments")) == ["a", "c", "d"]
    assert deeds(s, "overflowed") == ["overflowed"] * 3


@on(config('reason: "p:*", team: payments, overflow_to: dba, on_overflow: answer', teams=BOTH_LIMITED))
async def test_where_both_are_full_the_router_answers_if_it_may(s: System) -> None:
    first, second, third = threads_together(3)
    for id_, thread in (("a", first), ("b", second), ("c", third)):
        await pause(s, question(id_, "p:x", responseSchema=SCHEMA), thread=thread)

    assert (list(s.asked("payments")), list(s.asked("dba"))) == (["a"], ["b"])
    assert answers(runs(s, third)[0]) == {"c": {"approved": False}}


@on(config('reason: "p:*", team: payments, on_overflow: answer', teams=LIMITED))
async def test_or_the_router_answers(s: System) -> None:
    first, second = threads_together(2)
    await pause(s, question("a", "p:x"), thread=first)
    await pause(s, question("b", "p:x", responseSchema=SCHEMA), thread=second)

    assert answers(runs(s, second)[0]) == {"b": {"approved": False}}
    assert why(runs(s, second)[0], "b") == "overflow"


@on(config('reason: "p:*", team: payments, on_overflow: cancel', 'reason: "d:*", team: dba', teams=LIMITED))
async def test_what_the_router_cancels_waits_for_the_others(s: System) -> None:
    (thread,) = threads_together(1)
    await pause(s, question("a", "p:x"), question("b", "p:x"), question("c", "d:x"), thread=thread)
    assert (list(s.asked("payments")), list(s.asked("dba"))) == (["a"], ["c"])
    await s.decide("payments", thread, {"a": YES})
    await s.decide("dba", thread, {"c": YES})

    assert answers(runs(s, thread)[0]) == {"a": YES, "b": "cancelled", "c": YES}


@on(config('reason: "langgraph:*", team: payments, on_overflow: cancel', teams=LIMITED))
async def test_nothing_is_cancelled_for_want_of_room_where_that_may_mean_yes(s: System) -> None:
    (thread,) = threads_together(1)
    await pause(s, question("a", "langgraph:x"), question("b", "langgraph:x"), thread=thread)

    assert sorted(s.asked("payments")) == ["a", "b"]
    assert deeds(s, "overflowed", "cancelled") == ["overflowed"]


@on(config('reason: "p:*", team: payments', teams=LIMITED))
async def test_room_is_counted_anew_after_a_restart(s: System) -> None:
    first, second = threads_together(2)
    await pause(s, question("a", "p:x"), thread=first)
    await s.restart("router")
    await pause(s, question("b", "p:x"), thread=second)

    assert deeds(s, "overflowed") == ["overflowed"]


@on(STRICT)
async def test_a_route_that_the_router_does_not_know_yet_fails_closed(s: System) -> None:
    known = s.rules.routes
    await s.stop("router")

    s.rules = msgspec.structs.replace(s.rules, routes=RouteTable((), "ops"))
    await s.start("router")
    await pause(s, question("a", "p:x"))
    assert code(await s.decide("payments", "t", {"a": YES})) == "UNKNOWN_ROUTE"

    await s.stop("router")
    s.rules = msgspec.structs.replace(s.rules, routes=known)
    await s.start("router")

    assert code(await s.decide("payments", "t", {"a": YES})) == "SIGNATURE_REQUIRED"


@on(STRICT)
async def test_changed_routes_are_for_new_pauses(s: System) -> None:

    await pause(s, question("a", "p:x"))
    await s.stop("router")
    lax = RouteTable([Route(name="p:*", team="payments", reason="p:*")], "ops")
    s.rules = msgspec.structs.replace(s.rules, routes=lax)
    await s.start("router")

    assert code(await s.decide("payments", "t", {"a": YES})) == "SIGNATURE_REQUIRED"
    await pause(s, question("b", "p:x"), thread="u")
    assert (await s.decide("payments", "u", {"b": YES}))["verdict"] == "accepted"
