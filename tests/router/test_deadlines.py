"""Router 5, in records: nothing waits for ever, people have most of the time, and no cancel may mean yes."""

from tests.clients import a_resume
from tests.router.pauses import RULES, a_pause
from tests.router.scenes import (
    NO,
    SCHEMA,
    YES,
    answers,
    approval,
    code,
    config,
    deeds,
    ends,
    fails,
    minute,
    on,
    passes,
    pause,
    question,
    receipts,
    runs,
    why,
)
from tests.systems import System
from tests.virtual import EPOCH_MS

from holdshort.router.decider import RouterDecider
from holdshort.router.fanout import opened
from holdshort.router.gathering import closed

PLAIN = config('reason: "p:*", team: payments', 'reason: "d:*", team: dba')
SHORT = config('reason: "p:*", team: payments, ttl: 30m', 'reason: "d:*", team: dba, ttl: 40m')


@on(PLAIN)
async def test_the_missing_answers_are_cancelled_a_margin_before_the_earliest_expiry(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(20)), question("b", "d:x"))
    await s.decide("payments", "t", {"a": YES})
    await passes(18.5)
    assert runs(s) == []

    await passes(1)

    (batch,) = runs(s)
    assert answers(batch) == {"a": YES, "b": "cancelled"}
    assert (why(batch, "a"), why(batch, "b")) == (None, "deadline")
    assert s.asked("dba") == {}


@on(PLAIN)
async def test_of_a_short_time_people_have_three_quarters(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(1)))
    shown = approval(s, "payments", "a")

    assert EPOCH_MS + 40_000 < shown["deadline"] < EPOCH_MS + 50_000


@on(PLAIN + "deadline_margin: 0s\n")
async def test_an_answer_in_time_arrives_in_time_however_short_the_margin(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(0.2)), question("b", "d:x"))
    await s.decide("payments", "t", {"a": YES})

    await passes(0.2)

    assert answers(runs(s)[0]) == {"a": YES, "b": "cancelled"}


@on(SHORT)
async def test_what_has_no_deadline_ends_by_its_ttl(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    assert approval(s, "payments", "a")["deadline"] == s.thread("t").pause.opened_at + 30 * 60_000  # type: ignore[union-attr]
    await passes(31)
    assert (s.asked("payments"), list(s.asked("dba"))) == ({}, ["b"])

    await passes(10)

    assert answers(runs(s)[0]) == {"a": "cancelled", "b": "cancelled"}
    receipt = await s.decide("payments", "t", {"a": YES})
    assert code(receipt) == "ALREADY_DECIDED"
    assert receipt["entries"][0]["decided"]["cause"] == "deadline"


ALONE = "agents: {default: {}, odd: {cancel: unsafe}}"
WEEK = 7 * 24 * 60


async def later(s: System, minutes: float) -> None:
    """So many minutes in which nothing runs, which is quickly told; then what is due is done."""
    for app in ("router", "gatekeeper"):
        await s.stop(app)
    await passes(minutes)
    for app in ("gatekeeper", "router"):
        await s.start(app)
    await passes(0.1)


@on(ALONE)
async def test_what_no_team_is_asked_is_its_clients_affair_until_its_ttl(s: System) -> None:
    """Not shown, not cancelled when it expires: the client's batch may still answer the rest."""
    await pause(s, question("a", "x", expiresAt=minute(20)), question("b", "x"))
    await passes(60)
    assert (s.said("approvals.client"), s.said("resumes")) == ([], [])
    assert s.pause("t") is not None
    await later(s, WEEK)

    assert answers(runs(s)[0]) == {"a": "cancelled", "b": "cancelled"}
    assert [why(runs(s)[0], id_) for id_ in "ab"] == ["deadline", "deadline"]
    await ends(s, runs(s)[0].value["runId"])
    assert s.pause("t") is None


@on(ALONE)
async def test_what_no_team_is_asked_is_given_up_where_a_cancel_may_mean_yes(s: System) -> None:
    await pause(s, question("a", "x"), agent="odd")
    await later(s, WEEK)

    assert (runs(s, agent="odd"), s.pause("t")) == ([], None)
    assert s.thread("t").gone[0].how == "abandoned"


@on(ALONE)
async def test_a_client_may_try_as_often_as_it_likes_and_nothing_is_left_when_it_succeeds(s: System) -> None:
    await pause(s, question("a", "x"))
    for number in range(7):
        await s.send("inputs", a_resume("t", f"r{number + 2}", {"a": True}))
        await fails(s, f"r{number + 2}")
    assert deeds(s) == []
    await s.send("inputs", a_resume("t", "r9", {"a": True}))
    await ends(s, "r9")

    assert s.pause("t") is None
    assert s.said("gathering", "t")[-1].value is None


@on(ALONE)
async def test_the_end_of_a_ttl_is_an_attempt_like_others_and_comes_to_an_end(s: System) -> None:
    """The agent fails whenever it is told that nobody answers."""
    await pause(s, question("a", "x"))
    await later(s, WEEK)
    for _ in range(5):
        await fails(s, runs(s)[-1].value["runId"])

    assert len(runs(s)) == 5
    assert s.thread("t").gone[0].how == "abandoned"


@on(ALONE + "\nlimits: {open_pauses: 1}")
async def test_a_sealed_pause_ends_too(s: System) -> None:
    await pause(s, question("a", "x"), thread="t")
    await pause(s, question("a", "x"), thread="u")
    sealed = s.thread("u").pause
    assert sealed is not None
    assert sealed.sealed
    await later(s, WEEK)

    assert s.pause("u") is None
    assert s.thread("u").gone[0].how == "abandoned"


@on(
    config(
        'reason: "p:*", team: payments, deadline: 5m, remind_after: 2m, escalate_after: 3m, escalate_to: ops'
    )
)
async def test_people_are_reminded_and_then_another_team_is_asked(s: System) -> None:
    await pause(s, question("a", "p:x"))
    assert approval(s, "payments", "a")["reminded"] is False
    await passes(2.2)
    assert approval(s, "payments", "a")["reminded"] is True
    await passes(1)

    assert s.asked("payments") == {}
    moved = approval(s, "ops", "a")
    assert (moved["team"], moved["movedFrom"], moved["reminded"]) == ("ops", "payments", True)
    assert code(await s.decide("payments", "t", {"a": YES})) == "NOT_YOUR_INTERRUPT"
    assert (await s.decide("ops", "t", {"a": YES}))["verdict"] == "accepted"
    assert deeds(s, "reminded", "escalated") == ["reminded", "escalated"]


@on(
    config(
        'reason: "p:*", team: payments, deadline: 5m, on_deadline: answer, answer: {approved: false, n: 1}'
    )
)
async def test_the_configured_answer_is_given_at_the_deadline(s: System) -> None:
    await pause(s, question("a", "p:x", responseSchema=SCHEMA))
    await passes(6)

    assert answers(runs(s)[0]) == {"a": {"approved": False, "n": 1}}
    assert why(runs(s)[0], "a") == "deadline"
    await ends(s, runs(s)[0].value["runId"])
    assert s.pause("t") is None


@on(config("reason: confirmation, team: payments, deadline: 5m, on_deadline: answer"))
async def test_a_bare_confirmation_is_denied_barely(s: System) -> None:
    await pause(s, question("a", "confirmation"), question("b", "confirmation", responseSchema=SCHEMA))
    await passes(6)

    assert answers(runs(s)[0]) == {"a": False, "b": NO}


@on(config('reason: "p:*", team: payments, deadline: 5m, on_deadline: answer, answer: {yea: 1}'))
async def test_an_answer_that_does_not_fit_is_told_at_once_and_counts_as_a_cancel(s: System) -> None:
    await pause(s, question("a", "p:x", responseSchema=SCHEMA))
    assert deeds(s, "unfit") == ["unfit"]
    await passes(6)

    assert answers(runs(s)[0]) == {"a": "cancelled"}


@on(config('reason: "p:*", team: payments, on_deadline: wait', 'reason: "d:*", team: dba'))
async def test_wait_waits_for_the_expiry_itself_and_then_cancels(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(20)), question("b", "d:x"))
    await s.decide("dba", "t", {"b": YES})
    await passes(19.5)
    assert list(s.asked("payments")) == ["a"]
    await passes(1)

    assert answers(runs(s)[0]) == {"a": "cancelled", "b": YES}


@on(config('reason: "p:*", team: payments, on_deadline: wait', 'reason: "d:*", team: dba, on_deadline: wait'))
async def test_what_expired_before_sending_becomes_cancelled_and_its_receipt_says_so(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(10)), question("b", "d:x"))
    await s.decide("payments", "t", {"a": YES}, decisionId="mine")
    await passes(11)

    assert answers(runs(s)[0]) == {"a": "cancelled", "b": "cancelled"}
    first, second = receipts(s, "payments", "mine")
    assert (first["verdict"], second["verdict"], code(second)) == ("accepted", "refused", "INTERRUPT_EXPIRED")


@on(PLAIN)
async def test_an_answer_in_time_that_is_read_too_late_is_not_sent_late(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(2)), question("b", "d:x"))
    await s.decide("payments", "t", {"a": YES}, decisionId="mine")
    await s.stop("router")
    known = {"v": 1, "decisionId": "b", "generation": s.thread("t").generation, "threadId": "t"}
    answer = {"interruptId": "b", "status": "resolved", "payload": YES}
    await s.send("decisions.dba", {**known, "resume": [answer]})
    await passes(5)
    await s.start("router")

    assert answers(runs(s)[0]) == {"a": "cancelled", "b": YES}
    assert code(receipts(s, "payments", "mine")[-1]) == "INTERRUPT_EXPIRED"
    assert len(s.said("resumes")) == 1


@on(PLAIN)
async def test_a_backlog_does_not_lose_against_the_clock(s: System) -> None:
    await pause(s, question("a", "p:x", expiresAt=minute(10)))
    await s.stop("router")
    await passes(4)
    decision = {
        "v": 1,
        "decisionId": "d",
        "generation": s.thread("t").generation,
        "threadId": "t",
        "resume": [{"interruptId": "a", "status": "resolved", "payload": YES}],
    }
    await s.send("decisions.payments", decision)
    await passes(5)  # past the deadline, before the expiry
    await s.start("router")

    assert answers(runs(s)[0]) == {"a": YES}


UNSAFE = config(
    'reason: "langgraph:*", team: payments, ttl: 20m, deadline: 5m',
    'reason: "d:*", team: dba, ttl: 20m, on_denial: cancel_rest',
    agents="{default: {}, safe: {cancel: denies}, odd: {cancel: unsafe}}",
)


@on(UNSAFE)
async def test_nothing_is_cancelled_where_a_cancel_may_mean_yes(s: System) -> None:
    await pause(s, question("a", "langgraph:x"))
    await passes(6)
    assert deeds(s, "overdue", "cancelled") == ["overdue"]
    assert list(s.asked("payments")) == ["a"]

    await passes(15)

    assert runs(s) == []
    assert s.pause("t") is None
    assert s.thread("t").gone[0].how == "abandoned"
    assert s.asked("payments") == {}
    assert deeds(s, "abandoned") == ["abandoned"]


@on(UNSAFE)
async def test_an_overdue_question_can_still_be_answered(s: System) -> None:
    await pause(s, question("a", "langgraph:x"))
    await passes(6)

    assert (await s.decide("payments", "t", {"a": YES}))["batch"]["complete"] is True
    assert answers(runs(s)[0]) == {"a": YES}


@on(UNSAFE)
async def test_what_an_agent_declares_wins_over_its_framework(s: System) -> None:
    await pause(s, question("a", "langgraph:x"), agent="safe")
    await passes(6)
    assert answers(runs(s, agent="safe")[0]) == {"a": "cancelled"}

    await pause(s, question("a", "d:x"), question("b", "d:x"), thread="u", agent="odd")
    await s.decide("dba", "u", {"a": NO})
    assert list(s.asked("dba")) == ["b"]


@on(config('reason: "p:*", team: payments, deadline: 3m', 'reason: "d:*", team: dba, ttl: 60m'))
async def test_while_an_answer_is_with_the_agent_no_deadline_counts(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.decide("payments", "t", {"a": YES})
    await passes(5)

    assert len(runs(s)) == 1
    assert deeds(s, "cancelled") == []


def test_a_deadline_waits_for_what_the_teams_that_are_asked_have_decided() -> None:
    """And the end of memory for everybody's: a decision may still ask for its receipt."""
    router = RouterDecider(RULES, ["payments", "dba"])
    gathering = opened("t", a_pause("a"), (), RULES)

    assert router.awaits(gathering) == ["decisions.payments"]
    assert sorted(router.awaits(closed(gathering, 1))) == ["decisions.dba", "decisions.payments"]


@on(SHORT)
async def test_deadlines_survive_a_restart(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await s.restart("router")
    await passes(31)

    assert answers(runs(s)[0]) == {"a": "cancelled"}
