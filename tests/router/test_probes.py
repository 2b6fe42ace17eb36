"""What approval engines were measured to get wrong, each probe of the notes as a test of ours.

Approve and reject raced executed twice; a double click approved the next question unseen; late and
contradictory answers got "ok"; unknown names were taken and kept; a set was answered in part; and in none of
them did the second caller learn what had been decided, by whom and when.
"""

import pytest
from tests.clients import Json, paused, started
from tests.router.scenes import (
    NO,
    YES,
    acts,
    answers,
    approval,
    code,
    config,
    ends,
    entry,
    minute,
    on,
    passes,
    pause,
    question,
    receipts,
    runs,
)
from tests.systems import System

PLAIN = config('reason: "p:*", team: payments', 'reason: "d:*", team: dba')


@pytest.mark.parametrize("first", [YES, NO])
def test_approve_and_reject_raced_act_once_and_one_caller_is_told_that_it_lost(
    first: dict[str, bool],
) -> None:
    second = NO if first == YES else YES

    @on(PLAIN)
    async def scenario(s: System) -> None:
        await pause(s, question("a", "p:x"))
        generation = s.thread("t").generation
        await s.stop("router")  # both are in the log before either is read
        for by, payload in (("ann", first), ("bob", second)):
            decision = {"v": 1, "decisionId": by, "threadId": "t", "generation": generation, "decidedBy": by}
            await s.send("decisions.payments", {**decision, "resume": [entry("a", payload)]})
        await s.start("router")

        assert [answers(one) for one in runs(s)] == [{"a": first}]
        (won,), (lost,) = receipts(s, "payments", "ann"), receipts(s, "payments", "bob")
        assert (won["verdict"], lost["verdict"], code(lost)) == ("accepted", "refused", "ALREADY_DECIDED")
        decided = lost["entries"][0]["decided"]
        assert (decided["payload"], decided["decidedBy"]) == (first, "ann")

    scenario()


@on(PLAIN)
async def test_a_double_click_never_approves_the_next_question_unseen(s: System) -> None:
    await pause(s, question("a", "p:x", message="first"))
    click: Json = {
        "v": 1,
        "decisionId": "click",
        "threadId": "t",
        "generation": s.thread("t").generation,
        "resume": [entry("a", YES)],
        "seen": {"a": approval(s, "payments", "a")["digest"]},
    }
    await s.send("decisions.payments", click)
    run = runs(s)[0].value["runId"]
    await s.send("agent-events.default", started("t", run))
    await s.send("agent-events.default", paused("t", run, question("a", "p:x", message="second")))
    for again in (
        click,
        {**click, "decisionId": "another"},
        {**click, "decisionId": "newest", "generation": click["generation"] + 1},
    ):
        await s.send("decisions.payments", again)
    bare = {"threadId": "t", "resume": [entry("a", YES)]}
    await s.send("decisions.payments", bare)

    assert len(runs(s)) == 1
    told = [one.value for one in s.said("receipts.payments", "t")]
    assert [(one["verdict"], code(one)) for one in told] == [
        ("accepted", None),
        ("duplicate", None),
        ("refused", "STALE_GENERATION"),
        ("refused", "SEEN_SOMETHING_ELSE"),
        ("refused", "STALE_GENERATION"),
    ]
    assert approval(s, "payments", "a")["interrupt"]["message"] == "second"


@on(PLAIN)
async def test_the_same_decision_twice_is_told_as_a_duplicate(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    await s.decide("payments", "t", {"a": YES}, decisionId="retry", decidedBy="ann")
    honest = await s.decide("payments", "t", {"a": YES}, decisionId="retry", decidedBy="ann")
    other = await s.decide("payments", "t", {"a": YES}, decidedBy="bob")

    assert (honest["verdict"], other["verdict"]) == ("duplicate", "duplicate")
    assert other["entries"][0]["decided"]["decidedBy"] == "ann"


@on(PLAIN)
async def test_a_contradictory_decision_later_is_refused_and_learns_what_whose_and_when(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    when = "2026-11-30T12:00:00Z"
    await s.decide("payments", "t", {"a": YES}, decisionId="first", decidedBy="ann", decidedAt=when)
    later = await s.decide("payments", "t", {"a": NO}, decidedBy="bob")
    hidden = await s.decide("payments", "t", {"a": NO}, decisionId="first", decidedBy="ann")

    decided = later["entries"][0]["decided"]
    assert code(later) == "ALREADY_DECIDED"
    assert (decided["payload"], decided["decidedBy"], decided["decidedAt"]) == (YES, "ann", when)
    assert hidden["problems"][0]["code"] == "ALREADY_DECIDED"


@on(PLAIN)
async def test_a_decision_after_the_end_is_refused_and_learns_who_decided(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.decide("payments", "t", {"a": YES}, decidedBy="ann")
    await ends(s, runs(s)[0].value["runId"])
    generation = s.thread("t").generation
    late = await s.decide("payments", "t", {"a": NO}, generation=generation)

    assert code(late) == "STALE_GENERATION"
    assert late["entries"][0]["decided"]["decidedBy"] == "ann"
    assert "payload" not in late["entries"][0]["decided"], "content is not kept after the end"


@on(PLAIN)
async def test_a_decision_after_the_deadline_is_refused(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(5)), question("b", "d:x"))
    await passes(6)
    late = await s.decide("payments", "t", {"a": YES})

    assert late["verdict"] == "refused"
    assert answers(runs(s)[0]) == {"a": "cancelled", "b": "cancelled"}


@on(PLAIN)
async def test_a_thread_that_is_not_known_is_refused_and_nothing_is_kept_for_it(s: System) -> None:
    decision = {"v": 1, "decisionId": "early", "threadId": "t", "generation": 1, "resume": [entry("a", YES)]}
    await s.send("decisions.payments", decision)
    await s.send("decisions.payments", {"threadId": "t", "resume": [entry("a", YES)]})
    await pause(s, question("a", "p:x"))

    told = [one.value for one in s.said("receipts.payments", "t")]
    assert [code(one) for one in told] == ["STALE_GENERATION", "STALE_GENERATION"]
    assert list(s.asked("payments")) == ["a"]
    assert runs(s) == []


@on(PLAIN)
async def test_an_approval_that_is_not_known_is_refused(s: System) -> None:
    await pause(s, question("a", "p:x"))

    assert code(await s.decide("payments", "t", {"other": YES})) == "NOT_YOUR_INTERRUPT"
    assert list(s.asked("payments")) == ["a"]


@on(PLAIN)
async def test_part_of_a_set_waits_for_the_rest_and_says_for_whom(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    receipt = await s.decide("payments", "t", {"a": YES})

    assert receipt["batch"] == {"complete": False, "waitingFor": ["dba"], "runId": None}
    assert runs(s) == []


@on(PLAIN)
async def test_a_decision_cut_off_by_a_crash_finishes_by_itself(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.stop("router")
    decision = {"v": 1, "decisionId": "d", "threadId": "t", "generation": s.thread("t").generation}
    await s.send("decisions.payments", {**decision, "resume": [entry("a", YES)]})
    await s.stop("gatekeeper")
    await s.start("router")
    await s.restart("router")
    await s.start("gatekeeper")

    assert [answers(one) for one in runs(s)] == [{"a": YES}]


@on(PLAIN)
async def test_two_who_claim_at_once_are_told_apart(s: System) -> None:
    await pause(s, question("a", "p:x"))
    first = await acts(s, "payments", "claim", "a", decidedBy="ann")
    second = await acts(s, "payments", "claim", "a", decidedBy="bob")

    assert (first["verdict"], code(second)) == ("accepted", "CLAIMED")
