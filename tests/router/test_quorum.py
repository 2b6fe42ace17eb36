"""Router 3, quorum: so many different people, who are proved to be different, answer alike."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from tests.clients import Json
from tests.router.scenes import (
    NO,
    YES,
    answers,
    approval,
    cancelled,
    code,
    config,
    entry,
    on,
    passes,
    pause,
    question,
    receipts,
    runs,
)
from tests.systems import System

from holdshort.router.records import OWN_VOICE
from holdshort.settings import Config

TRUST = "trust_principal: [inputs, decisions.payments]"
TWO = config('reason: "p:*", team: payments, quorum: 2, deadline: 30m', more=TRUST)
GROUPS = config(
    'reason: "p:*", team: payments, quorum: {need: 2, groups: [leads, finance]}',
    more=TRUST,
    teams="{payments: {groups: {leads: [ann, bob], finance: [bob, cid]}}, dba: {}, ops: {}}",
)


async def votes(s: System, by: str | None, payload: Json, id_: str = "a", **more: Any) -> Json:
    """A decision of somebody whom a trusted edge has authenticated."""
    decision = {
        "v": 1,
        "decisionId": f"{by}-{id_}-{payload}",
        "threadId": "t",
        "generation": s.thread("t").generation,
        "resume": [entry(id_, payload)],
        **more,
    }
    headers = {"holdshort-principal": by} if by else None
    await s.send("decisions.payments", decision, headers=headers)
    return s.said("receipts.payments", "t")[-1].value


@on(TWO)
async def test_different_people_count_and_one_counts_once(s: System) -> None:
    await pause(s, question("a", "p:x"))
    first = await votes(s, "ann", YES)
    assert (first["verdict"], first["batch"]["complete"]) == ("accepted", False)
    assert approval(s, "payments", "a")["quorum"] == {"need": 2, "have": 1}
    again = await votes(s, "ann", YES, decisionId="again", decidedBy="bob")
    assert again["verdict"] == "duplicate"
    assert code(await votes(s, "ann", NO, decisionId="no")) == "ALREADY_DECIDED"
    assert runs(s) == []

    assert (await votes(s, "bob", YES))["batch"]["complete"] is True

    (batch,) = runs(s)
    assert answers(batch) == {"a": YES}
    said = batch.value["resume"][0]["metadata"]["holdshort"]
    assert [one["decidedBy"] for one in said["quorum"]] == ["ann", "bob"]
    assert said["proof"] == "principal"


@on(TWO)
async def test_a_vote_cannot_be_taken_back_and_its_receipt_says_whose_it_was(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await votes(s, "ann", YES)

    changed = await votes(s, "ann", NO, decisionId="no")
    withdrawn = await votes(s, "ann", None, decisionId="x", resume=[cancelled("a")])

    for receipt in (changed, withdrawn):
        [told] = receipt["entries"]
        assert (told["code"], told["decided"]["payload"], told["decided"]["decidedBy"]) == (
            "ALREADY_DECIDED",
            YES,
            "ann",
        )
        assert [one["message"] for one in told["problems"]] == [OWN_VOICE]
        assert receipt["batch"] == {"complete": False, "waitingFor": ["payments"], "runId": None}
    assert approval(s, "payments", "a")["quorum"] == {"need": 2, "have": 1}
    await votes(s, "bob", YES)
    assert answers(runs(s)[0]) == {"a": YES}
    late = await votes(s, "ann", NO, decisionId="late")
    assert (code(late), late["entries"][0]["problems"]) == ("ALREADY_DECIDED", [])


@on(TWO)
async def test_a_name_without_proof_is_nobody(s: System) -> None:
    await pause(s, question("a", "p:x"))

    assert code(await votes(s, None, YES, decidedBy="ann")) == "DECIDER_NOT_PROVEN"


@on(TWO)
async def test_a_denial_by_anyone_decides(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await votes(s, "ann", YES)
    await votes(s, "bob", NO)

    assert answers(runs(s)[0]) == {"a": NO}
    assert code(receipts(s, "payments", f"ann-a-{YES}")[-1]) == "ALREADY_DECIDED"


@on(config('reason: "p:*", team: payments, quorum: {need: 2, denial: counts}', more=TRUST))
async def test_a_denial_needs_the_quorum_if_the_route_says_so(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await votes(s, "ann", YES)
    await votes(s, "bob", NO)
    assert runs(s) == []
    await votes(s, "cid", NO)

    assert answers(runs(s)[0]) == {"a": NO}


@on(TWO)
async def test_approvals_with_different_payloads_do_not_add_up(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await votes(s, "ann", {"approved": True, "limit": 5})
    receipt = await votes(s, "bob", {"approved": True, "limit": 6})

    assert code(receipt) == "QUORUM_DISAGREES"
    assert receipt["entries"][0]["decided"]["payload"] == {"approved": True, "limit": 5}
    await votes(s, "bob", {"approved": True, "limit": 5})
    assert answers(runs(s)[0]) == {"a": {"approved": True, "limit": 5}}


@on(GROUPS)
async def test_of_each_group_somebody_else(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await votes(s, "ann", YES)
    await votes(s, "dan", YES)
    assert runs(s) == []
    await votes(s, "bob", YES)

    assert len(runs(s)) == 1


@on(GROUPS)
async def test_nobody_stands_for_two_groups(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await votes(s, "bob", YES)
    assert runs(s) == []
    await votes(s, "dan", YES)
    assert runs(s) == []
    await votes(s, "cid", YES)

    assert len(runs(s)) == 1


@on(TWO)
async def test_half_a_quorum_at_the_deadline_came_to_nothing_and_is_told_so(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await votes(s, "ann", YES, decisionId="mine")
    await passes(31)

    assert answers(runs(s)[0]) == {"a": "cancelled"}
    assert code(receipts(s, "payments", "mine")[-1]) == "DEADLINE_PASSED"


@on(config('reason: "p:*", team: payments, requester_may_decide: false', more=TRUST))
async def test_the_requester_may_not_decide(s: System) -> None:
    await pause(s, question("a", "p:x"), headers={"holdshort-principal": "ann"})

    assert code(await votes(s, "ann", YES)) == "REQUESTER_MAY_NOT_DECIDE"
    assert (await votes(s, "bob", YES))["verdict"] == "accepted"


@on(config('reason: "p:*", team: payments, requester_may_decide: false', more=TRUST))
async def test_nobody_decides_four_eyes_if_the_requester_is_not_known(s: System) -> None:
    await pause(s, question("a", "p:x"))

    assert code(await votes(s, "bob", YES)) == "REQUESTER_MAY_NOT_DECIDE"


@on(config('reason: "p:*", team: payments, on_denial: cancel_rest', 'reason: "d:*", team: dba'))
async def test_a_denial_ends_the_other_questions_if_the_route_says_so(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"), question("c", "d:x"))
    await s.decide("dba", "t", {"b": YES})
    await s.decide("payments", "t", {"a": NO})

    assert answers(runs(s)[0]) == {"a": NO, "b": YES, "c": "cancelled"}
    assert s.asked("dba") == {}
    late = await s.decide("dba", "t", {"c": YES})
    assert (code(late), late["entries"][0]["decided"]["cause"]) == ("ALREADY_DECIDED", "denial")


@on(config('reason: "p:*", team: payments', 'reason: "d:*", team: dba'))
async def test_otherwise_the_others_are_still_asked(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "d:x"))
    await s.decide("payments", "t", {"a": NO})

    assert runs(s) == []
    assert list(s.asked("dba")) == ["b"]


KEY = "{key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA, decider: ann}"
MISTAKES: list[tuple[str, str, str, str]] = [
    ("quorum: 2", "{}", "", "add decisions.payments to trust_principal, or keys to team payments"),
    ("quorum: 2", f"{{keys: {{k: {KEY}}}}}", "", "keys of fewer people than the quorum needs"),
    ("requester_may_decide: false", "{}", "trust_principal: [inputs]", "need to know who decides"),
    ("requester_may_decide: false", "{}", "trust_principal: [decisions.payments]", "needs to know who asks"),
    ("signature: required", "{}", "trust_principal: [decisions.payments]", "needs keys of team payments"),
    ("quorum: {groups: [leads]}", "{}", TRUST, "nobody in group leads"),
    ("quorum: 2, answer_by: anyone", "{}", TRUST, "answer_by: anyone would go round"),
    ("quorum: 2, escalate_after: 5m, escalate_to: dba", "{}", TRUST, "decisions.dba"),
    ("escalate_to: dba", "{}", "", "escalate_after and escalate_to need each other"),
    ("overflow_to: payments", "{}", "", "name another team"),
    ("overflow_to: nobody", "{}", "", "not listed under teams"),
    ("ttl: 20d", "{}", "", "ttl is between"),
    ("answer: 1", "{}", "", "of no use"),
    ("on_deadline: answer, answer: {yes: 1}", "{}", "", "is a JSON value"),
    ("name: default", "{}", "", "reserved"),
]


@pytest.mark.parametrize(("route", "team", "more", "expected"), MISTAKES)
def test_a_rule_that_cannot_be_kept_is_a_mistake_in_the_configuration(
    route: str, team: str, more: str, expected: str
) -> None:
    text = config(
        f'reason: "p:*", team: payments, {route}',
        more=more,
        teams=f"{{payments: {team}, dba: {{}}, ops: {{}}}}",
    )

    with pytest.raises(ValidationError, match=expected):
        Config.model_validate(yaml.safe_load(text))
