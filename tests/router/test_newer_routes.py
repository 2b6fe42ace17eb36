"""A newer configuration takes the place of the one in force: between two batches, for new pauses alone."""

import asyncio
import json

import yaml
from tests.clients import an_input, paused, started
from tests.router.scenes import (
    YES,
    answers,
    approval,
    code,
    ends,
    minute,
    on,
    passes,
    pause,
    question,
    runs,
)
from tests.systems import PARTITIONS, System, system
from tests.virtual import in_virtual_time, pass_time

from holdshort.settings import Config

OLD = """
teams: {payments: {}, dba: {}}
default_team: dba
routes: [{reason: "pay:*", team: payments, name: old, deadline: 30m, priority: 3}]
"""
NEW = """
teams: {payments: {}, dba: {}}
default_team: payments
routes: [{reason: "pay:*", team: dba, name: new, deadline: 10m, on_deadline: answer}]
"""
MORE = """
teams: {payments: {}, dba: {}, legal: {}}
default_team: dba
routes: [{reason: "pay:*", team: legal}]
"""
MANY = 12


@on(OLD)
async def test_new_pauses_take_the_new_routes_and_open_ones_keep_theirs(s: System) -> None:
    await pause(s, question("i", "pay:x"), thread="before")
    s.reload(NEW)
    await pass_time(1)
    await pause(s, question("i", "pay:x"), thread="after")

    assert approval(s, "payments", "i")["threadId"] == "before"
    assert approval(s, "dba", "i")["threadId"] == "after"
    assert code(await s.decide("dba", "before", {"i": YES})) == "NOT_YOUR_INTERRUPT"
    assert code(await s.decide("payments", "before", {"i": YES})) is None
    assert answers(runs(s, "before")[0]) == {"i": YES}


@on(OLD)
async def test_what_comes_after_the_change_is_not_judged_by_the_old_routes_any_more(s: System) -> None:
    """Although the lane was waiting for records then, with the old ones in hand."""
    await s.send("inputs", an_input("t", "r1"))
    await s.send("agent-events.default", started("t", "r1"))
    await pass_time(0.1)
    s.reload(NEW)
    await s.send("agent-events.default", paused("t", "r1", question("i", "pay:x")))

    assert list(s.asked("dba")) == ["i"]
    assert not s.asked("payments")


@on(OLD)
async def test_nothing_of_a_lanes_former_life_stays_open(s: System) -> None:
    watched = len(s.broker._arrived)
    for _ in range(3):
        s.reload(NEW)
        await pass_time(1)

    assert len(s.broker._arrived) == watched


@on(OLD)
async def test_an_open_pause_keeps_the_policy_that_it_was_put_with(s: System) -> None:
    await pause(s, question("i", "pay:x"), thread="before")
    was = approval(s, "payments", "i")
    s.reload(NEW)
    await passes(20)
    await pause(s, question("i", "pay:x"), thread="after")

    assert was["priority"] == 3
    assert approval(s, "payments", "i") == was
    assert not runs(s, "before")
    await passes(11)
    assert answers(runs(s, "before")[0]) == {"i": "cancelled"}
    assert answers(runs(s, "after")[0]) == {"i": {"approved": False}}


@on(OLD)
async def test_a_router_that_is_ahead_of_the_gate_still_knows_the_route_that_is_gone(s: System) -> None:
    s.reload(NEW, "router")
    await pass_time(1)
    await pause(s, question("i", "pay:x"))

    assert approval(s, "payments", "i")["priority"] == 3
    assert code(await s.decide("payments", "t", {"i": YES})) is None
    assert answers(runs(s)[0]) == {"i": YES}


@on(OLD)
async def test_a_gate_that_is_ahead_of_the_router_waits_for_it(s: System) -> None:
    s.reload(NEW, "gatekeeper")
    await pass_time(1)
    await pause(s, question("i", "pay:x"))
    assert code(await s.decide("dba", "t", {"i": YES})) == "UNKNOWN_ROUTE"

    s.reload(NEW, "router")
    await pass_time(1)
    assert code(await s.decide("dba", "t", {"i": YES})) is None
    assert answers(runs(s)[0]) == {"i": YES}


@on(OLD)
async def test_a_new_team_is_asked_and_heard(s: System) -> None:
    s.reload(MORE)
    await pass_time(1)
    await pause(s, question("i", "pay:x"))

    assert list(s.asked("legal")) == ["i"]
    assert code(await s.decide("legal", "t", {"i": YES})) is None
    await ends(s, runs(s)[0].value["runId"])
    assert s.pause("t") is None


async def _while_working(turns: int) -> tuple[int, int]:
    """Routes change when the loop has gone round so often; returns pauses by the old and by the new."""
    async with system(OLD) as s:
        for number in range(MANY):
            thread = f"t{number}"
            for topic, value in (
                ("inputs", an_input(thread, "r1")),
                ("agent-events.default", started(thread, "r1")),
                ("agent-events.default", paused(thread, "r1", question("i", "pay:x"))),
            ):
                s.broker.append(topic, thread.encode(), json.dumps(value).encode(), ())
            if number == MANY // 2:
                for _ in range(turns):
                    await asyncio.sleep(0)
                s.reload(NEW)
        await pass_time(5)
        s.check()
        opened = [one for one in s.said("pending") if one.value and one.value.get("pause")]
        routes = {one.key: one.value["pause"]["interrupts"][0]["route"] for one in opened}
        teams = {"old": "payments", "new": "dba"}
        for number in range(MANY):
            route = routes[f"t{number}"]
            assert list(s.said(f"approvals.{teams[route]}", f"t{number}"))
            assert code(await s.decide(teams[route], f"t{number}", {"i": YES})) is None
            assert len(runs(s, f"t{number}")) == 1
        for partition in (0, 1):
            order = [routes[one.key] for one in opened if one.record.partition == partition]
            assert order == sorted(order, reverse=True), "the new routes, and then the old ones again"
        return list(routes.values()).count("old"), list(routes.values()).count("new")


def test_whenever_routes_change_each_pause_is_wholly_by_the_old_or_the_new() -> None:
    counts = {in_virtual_time(_while_working(turns)) for turns in range(0, 60, 4)}

    assert all(sum(count) == MANY for count in counts)
    assert len(counts) > 1, "the routes never changed while something was under way"


LESS = """
teams: {payments: {}}
default_team: payments
routes: [{reason: "pay:*", team: payments}]
"""


@on(OLD)
async def test_questions_of_a_team_that_is_gone_end_at_their_deadline_or_by_the_team_when_it_is_back(
    s: System,
) -> None:
    """As services/operating.md says of a team that is gone: nobody reads it, and nothing of it is lost."""
    for thread in ("late", "back"):
        await pause(s, question(thread, "db:x", expiresAt=minute(600)), thread=thread)
    await restarted(s, LESS)
    assert sorted(s.asked("dba")) == ["back", "late"]
    decision = {"v": 1, "decisionId": "d", "threadId": "back", "generation": s.thread("back").generation}
    entries = [{"interruptId": "back", "status": "resolved", "payload": YES}]
    await s.send("decisions.dba", {**decision, "resume": entries})

    assert s.said("receipts.dba", "back") == []
    await restarted(s, OLD)
    assert answers(runs(s, "back")[0]) == {"back": YES}
    await restarted(s, LESS)
    await passes(600)
    assert answers(runs(s, "late")[0]) == {"late": "cancelled"}
    assert "late" not in s.asked("dba")


async def restarted(s: System, config: str) -> None:
    """Both services, with another file."""
    for app in ("router", "gatekeeper"):
        await s.stop(app)
    s.config = Config.model_validate(yaml.safe_load(config))
    s.rules = s.config.rules(PARTITIONS)
    for app in ("gatekeeper", "router"):
        await s.start(app)
    await pass_time(5)
    s.check()
