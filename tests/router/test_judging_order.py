"""Router 3, in records: a decision is judged in one order, and the first rule that speaks decides."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.clients import Json
from tests.router.scenes import (
    NO,
    SCHEMA,
    YES,
    acts,
    answers,
    approval,
    cancelled,
    chained,
    code,
    codes,
    config,
    ends,
    entry,
    minute,
    on,
    passes,
    pause,
    question,
    runs,
)
from tests.systems import System

FOUR_EYES = config(
    'reason: "p:*", team: payments, requester_may_decide: false, on_deadline: wait',
    'reason: "d:*", team: dba',
    more="trust_principal: [inputs, decisions.payments]",
)
BY = {"holdshort-principal": "ann"}


async def send(s: System, team: str, decision: Json, *, by: str | None = None) -> Json:
    """A decision, as it stands, by the hand of an edge that authenticates people."""
    headers = {"holdshort-principal": by} if by else None
    await s.send(f"decisions.{team}", decision, headers=headers)
    return s.said(f"receipts.{team}", "t")[-1].value


def wrong(**right: Json) -> Json:
    """A decision that is wrong in every way but these."""
    everything = {
        "v": 1,
        "decisionId": "wrong",
        "threadId": "t",
        "generation": 1,
        "seen": {"a": "0" * 64},
        "resume": [entry("a", {"approved": "yes"})],
    }
    return {**everything, **right}


@on(FOUR_EYES)
async def test_the_first_rule_that_speaks_decides(s: System) -> None:
    """Each step mends what the step before was refused for, until nothing is wrong any more."""
    await pause(s, question("a", "p:x", responseSchema=SCHEMA, expiresAt=minute(60)), headers=BY)
    await send(s, "payments", claiming(s), by="kim")
    generation, digest = s.thread("t").generation, approval(s, "payments", "a")["digest"]
    right: Json = {}
    steps: list[tuple[str, Json, str, str]] = [
        ("dba", {}, "ann", "NOT_YOUR_INTERRUPT"),
        ("payments", {}, "ann", "STALE_GENERATION"),
        ("payments", {"generation": generation}, "ann", "CLAIMED"),
        ("payments", {}, "kim", "SEEN_SOMETHING_ELSE"),
        ("payments", {"seen": {"a": digest}}, "", "CLAIMED"),
    ]
    for number, (team, mended, by, expected) in enumerate(steps):
        right |= mended
        receipt = await send(s, team, wrong(**right, decisionId=f"d{number}"), by=by)
        assert code(receipt) == expected
    await send(s, "payments", claiming(s, "release"), by="kim")
    assert (
        code(await send(s, "payments", wrong(**right, decisionId="r"), by="ann"))
        == "REQUESTER_MAY_NOT_DECIDE"
    )
    assert code(await send(s, "payments", wrong(**right, decisionId="u"))) == "DECIDER_NOT_PROVEN"
    assert code(await send(s, "payments", wrong(**right, decisionId="p"), by="kim")) == "INVALID_PAYLOAD"
    yes = wrong(**right, decisionId="y", resume=[entry("a", YES)])
    assert (await send(s, "payments", yes, by="kim"))["verdict"] == "accepted"
    no = wrong(**right, decisionId="n", resume=[entry("a", NO)])
    assert code(await send(s, "payments", no, by="kim")) == "ALREADY_DECIDED"
    same = wrong(**right, decisionId="s", resume=[entry("a", YES)])
    assert (await send(s, "payments", same, by="kim"))["verdict"] == "duplicate"
    assert (await send(s, "payments", yes, by="kim"))["verdict"] == "duplicate"
    assert all(chained(s, partition) for partition in (0, 1))


def claiming(s: System, action: str = "claim") -> Json:
    generation = s.thread("t").generation
    return {
        "v": 1,
        "decisionId": f"{action}-1",
        "threadId": "t",
        "generation": generation,
        "action": action,
        "resume": [{"interruptId": "a"}],
    }


@on(config('reason: "p:*", team: payments, on_deadline: wait', 'reason: "d:*", team: dba, on_deadline: wait'))
async def test_an_expired_answer_is_refused_before_it_is_compared(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(3)), question("b", "d:x", expiresAt=minute(9)))
    await s.decide("payments", "t", {"a": YES})
    await s.stop("router")
    await passes(4)
    generation = s.thread("t").generation
    for id_, payload in (("same", YES), ("other", NO)):
        decision = {"v": 1, "decisionId": id_, "generation": generation, "threadId": "t"}
        await s.send("decisions.payments", {**decision, "resume": [entry("a", payload)]})
    await s.start("router")

    told = [one.value for one in s.said("receipts.payments") if one.value["decisionId"] in ("same", "other")]
    assert [code(one) for one in told] == ["INTERRUPT_EXPIRED", "INTERRUPT_EXPIRED"]


TWO = config('reason: "p:*", team: payments', 'reason: "d:*", team: dba')


@on(TWO)
async def test_one_bad_entry_refuses_that_entry_only(s: System) -> None:
    await pause(s, *(question(one, "p:x", responseSchema=SCHEMA) for one in "abc"), question("d", "d:x"))
    entries = [entry("a", YES), entry("b", 1), cancelled("c"), entry("d", YES), entry("e", YES)]
    receipt = await s.send_decision("payments", "t", entries)

    assert receipt["verdict"] == "accepted"
    assert codes(receipt) == [None, "INVALID_PAYLOAD", None, "NOT_YOUR_INTERRUPT", "NOT_YOUR_INTERRUPT"]
    assert receipt["batch"]["waitingFor"] == ["dba", "payments"]


UNREADABLE: list[tuple[bytes, str]] = [
    (b"not JSON", "MALFORMED_DECISION"),
    (b'{"resume": []}', "MALFORMED_DECISION"),
    (b'{"threadId": "other", "resume": []}', "MISKEYED_RECORD"),
]


@pytest.mark.parametrize(("value", "expected"), UNREADABLE)
def test_what_cannot_be_read_is_a_dead_letter(value: bytes, expected: str) -> None:
    @on(TWO)
    async def scenario(s: System) -> None:
        await pause(s, question("a", "p:x"))
        await s.send("decisions.payments", value, key="t")

        letters = s.broker.committed("dead-letters")
        assert [dict(one.headers)["holdshort-dead-letter-code"] for one in letters] == [expected.encode()]
        assert letters[0].value == value
        assert s.said("receipts.payments") == []
        assert s.said("audit")[-1].value["verdict"] == "unreadable"

    scenario()


@on(TWO)
async def test_the_first_receipt_is_repeated_for_a_day_after_the_pause(s: System) -> None:
    await pause(s, question("a", "p:x"))
    yes = {"v": 1, "decisionId": "d", "threadId": "t", "generation": s.thread("t").generation}
    first = await send(s, "payments", {**yes, "resume": [entry("a", YES)]})
    await ends(s, runs(s)[0].value["runId"])
    again = await send(s, "payments", {**yes, "resume": [entry("a", YES)]})
    assert again == first | {"verdict": "duplicate"}

    await s.restart("router")
    assert await send(s, "payments", {**yes, "resume": [entry("a", YES)]}) == again

    other = await send(s, "payments", {**yes, "decisionId": "e", "resume": [entry("a", NO)]})
    assert code(other) == "STALE_GENERATION"


@on(TWO)
async def test_a_bare_batch_of_plain_ag_ui_is_judged_like_any_other(s: System) -> None:
    await pause(s, question("a", "p:x", responseSchema=SCHEMA), question("b", "p:x"), question("c", "d:x"))
    entries = [entry("a", YES), cancelled("b"), entry("c", YES)]
    receipt = await s.send_decision("payments", "t", entries, bare=True)

    assert codes(receipt) == [None, None, "NOT_YOUR_INTERRUPT"]
    await s.send_decision("dba", "t", [entry("c", None)], bare=True)
    assert answers(runs(s)[0]) == {"a": YES, "b": "cancelled", "c": None}


@on(TWO)
async def test_a_bare_batch_about_an_id_that_was_used_before_must_say_which(s: System) -> None:
    await pause(s, question("a", "p:x"))
    first = s.thread("t").generation
    await s.decide("payments", "t", {"a": YES})
    run = runs(s)[0].value["runId"]
    await ends_paused(s, run, question("a", "p:x"), question("b", "p:x"))

    silent = await s.send_decision("payments", "t", [entry("b", YES), entry("a", YES)], bare=True)
    old = await s.send_decision("payments", "t", [bound("a", first)], bare=True)
    new = await s.send_decision("payments", "t", [bound("a", first + 1), bound("b", first + 1)], bare=True)

    assert codes(silent) == ["STALE_GENERATION", "STALE_GENERATION"]
    assert codes(old) == ["STALE_GENERATION"]
    assert codes(new) == [None, None]


def bound(id_: str, generation: int) -> Json:
    return entry(id_, YES, metadata={"holdshort:binding": {"generation": generation}})


async def ends_paused(s: System, run: str, *asked: Json) -> None:
    from tests.clients import paused, started

    await s.send("agent-events.default", started("t", run))
    await s.send("agent-events.default", paused("t", run, *asked))


@on(TWO)
async def test_an_action_that_is_not_known_is_refused(s: System) -> None:
    await pause(s, question("a", "p:x"))

    assert (await acts(s, "payments", "reassign", "a"))["code"] == "UNKNOWN_ACTION"


# -- the order changes nothing of who is asked --------------------------------------------------------------


@pytest.mark.parametrize("first", ["payments", "dba"])
def test_the_order_of_teams_changes_only_who_is_waited_for(first: str) -> None:
    @on(TWO)
    async def scenario(s: System) -> None:
        await pause(s, question("a", "p:x"), question("b", "d:x"))
        moves: dict[str, Callable[[], Awaitable[Any]]] = {
            "payments": lambda: s.decide("payments", "t", {"a": YES}),
            "dba": lambda: s.decide("dba", "t", {"b": YES}),
        }
        await moves.pop(first)()
        assert s.asked(first) == {}
        await moves.popitem()[1]()
        assert [one["interruptId"] for one in runs(s)[0].value["resume"]] == ["a", "b"]

    scenario()
