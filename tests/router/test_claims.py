"""Router 3, claims: one person holds a question for a while, everybody sees it, nobody holds it for ever."""

from tests.clients import Json
from tests.router.scenes import YES, acts, approval, code, config, on, passes, pause, question, runs
from tests.systems import System

from holdshort.sdk.approver import Approver, approve
from holdshort.sdk.testing import decide

PLAIN = config('reason: "p:*", team: payments', more="claim_lease: 10m")


@on(PLAIN)
async def test_a_claim_is_shown_and_keeps_others_away(s: System) -> None:
    await pause(s, question("a", "p:x"))
    receipt = await acts(s, "payments", "claim", "a", decidedBy="ann")

    assert receipt["verdict"] == "accepted"
    claim = approval(s, "payments", "a")["claim"]
    assert claim["by"] == "ann"
    assert code(await s.decide("payments", "t", {"a": YES}, decidedBy="kim")) == "CLAIMED"
    assert code(await s.decide("payments", "t", {"a": YES})) == "CLAIMED"
    assert code(await acts(s, "payments", "claim", "a", decidedBy="kim")) == "CLAIMED"
    assert code(await acts(s, "payments", "release", "a", decidedBy="kim")) == "CLAIMED"
    assert (await s.decide("payments", "t", {"a": YES}, decidedBy="ann"))["verdict"] == "accepted"


@on(PLAIN)
async def test_an_expired_lease_is_simply_over(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await acts(s, "payments", "claim", "a", decidedBy="ann")
    await passes(9)
    assert code(await acts(s, "payments", "claim", "a", decidedBy="kim")) == "CLAIMED"
    await passes(1.1)

    assert (await acts(s, "payments", "claim", "a", decidedBy="kim"))["verdict"] == "accepted"
    assert approval(s, "payments", "a")["claim"]["by"] == "kim"


@on(PLAIN)
async def test_a_claim_is_renewed_by_its_holder_and_given_back(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await acts(s, "payments", "claim", "a", decidedBy="ann")
    until = approval(s, "payments", "a")["claim"]["until"]
    await passes(5)
    await acts(s, "payments", "claim", "a", decidedBy="ann")
    assert approval(s, "payments", "a")["claim"]["until"] > until

    await acts(s, "payments", "release", "a", decidedBy="ann")

    assert approval(s, "payments", "a")["claim"] is None
    assert (await acts(s, "payments", "release", "a", decidedBy="ann"))["verdict"] == "duplicate"
    assert (await s.decide("payments", "t", {"a": YES}, decidedBy="kim"))["verdict"] == "accepted"


@on(PLAIN)
async def test_a_claim_needs_somebody_and_an_open_question(s: System) -> None:
    await pause(s, question("a", "p:x"))
    assert code(await acts(s, "payments", "claim", "a")) == "DECIDER_NOT_PROVEN"
    await s.decide("payments", "t", {"a": YES})

    assert code(await acts(s, "payments", "claim", "a", decidedBy="ann")) == "ALREADY_DECIDED"
    assert code(await acts(s, "dba", "claim", "a", decidedBy="ann")) == "NOT_YOUR_INTERRUPT"
    assert len(runs(s)) == 1


@on(PLAIN)
async def test_a_program_that_was_refused_answers_anew_when_the_question_is_free(s: System) -> None:
    """It says the same, but of what the router has written since: so it is judged, and not only repeated."""
    app = Approver("payments")
    app.on()(lambda _: approve(by="limits"))

    async def answers_what_is_shown() -> Json:
        shown = s.said("approvals.payments")[-1]
        place = f"{shown.record.partition}/{shown.record.offset}"
        await s.send("decisions.payments", await decide(app, shown.value, place=place))
        return s.said("receipts.payments", "t")[-1].value

    await pause(s, question("a", "p:x"))
    early = s.said("approvals.payments")[-1]
    await acts(s, "payments", "claim", "a", decidedBy="ann")
    place = f"{early.record.partition}/{early.record.offset}"
    for verdict in ("refused", "duplicate"):  # read before the claim, and read once more after a crash
        await s.send("decisions.payments", await decide(app, early.value, place=place))
        told = s.said("receipts.payments", "t")[-1].value
        assert (told["verdict"], code(told)) == (verdict, "CLAIMED")
    await acts(s, "payments", "release", "a", decidedBy="ann")

    assert (await answers_what_is_shown())["verdict"] == "accepted"
    assert len(runs(s)) == 1


@on(PLAIN)
async def test_a_claim_survives_a_restart(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await acts(s, "payments", "claim", "a", decidedBy="ann")
    await s.restart("router")

    assert code(await s.decide("payments", "t", {"a": YES}, decidedBy="kim")) == "CLAIMED"
