"""What a team reads and writes fits the schemas; nothing is approved by arguments that nobody can read."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tests.schemas.catalogue import Schema

from holdshort.contract.rules import Limits
from holdshort.router.decisions import Decision as Judged
from holdshort.router.decisions import read_decision
from holdshort.sdk.approvals import (
    Approval,
    Decision,
    Receipt,
    UnreadableArgumentsError,
    answer,
    approve,
    cancel,
    claim,
    confirm,
    decision_record,
    deny,
    release,
)
from holdshort.sdk.testing import an_approval

Json = Any
NOW = datetime(2026, 11, 30, 12, 0, 0, 5000, tzinfo=UTC)
DECISIONS = [
    approve(),
    approve({"note": "fine"}, edited_args={"amount": 5}, by="kim", comment="less"),
    deny(by="lee"),
    deny({"reason": "no"}, comment=" "),
    answer({"color": "red"}),
    answer(None),
    answer(False, by=""),
    cancel(by="kim"),
]


# -- what is asked ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", Schema("approval.v1").examples("valid"), ids=lambda one: str(one.name))
def test_every_approval_can_be_read(example: Any) -> None:
    approval = Approval.model_validate(example.value)

    assert approval.interrupt_id == example.value["interrupt"]["id"]
    assert approval.reason == example.value["interrupt"]["reason"]
    assert approval.opened_at.timestamp() * 1000 == example.value["openedAt"]


@pytest.mark.parametrize("example", Schema("receipt.v1").examples("valid"), ids=lambda one: str(one.name))
def test_every_receipt_can_be_read(example: Any) -> None:
    receipt = Receipt.model_validate(example.value)

    assert [entry.interrupt_id for entry in receipt.entries] == [
        entry["interruptId"] for entry in example.value["entries"]
    ]


def test_an_approval_of_a_newer_form_is_not_guessed_at() -> None:
    with pytest.raises(ValidationError):
        an_approval(v=2)


def test_an_approval_says_what_it_is_about() -> None:
    schema = {"type": "object"}
    approval = an_approval(
        interrupt={
            "id": "i",
            "reason": "payments:large",
            "message": "Pay?",
            "responseSchema": schema,
            "toolCallId": "c",
        },
        tool="transfer_money",
        args={"amount": 5},
        deadline=1_796_000_000_000,
    )

    assert (approval.reason, approval.message, approval.response_schema) == ("payments:large", "Pay?", schema)
    assert approval.tool is not None
    assert (approval.tool.name, approval.tool.call_id, approval.args) == (
        "transfer_money",
        "c",
        {"amount": 5},
    )
    assert approval.deadline == datetime.fromtimestamp(1_796_000_000, UTC)


@pytest.mark.parametrize(
    "unreadable",
    [
        an_approval(),
        an_approval(tool="t", args=None),
        an_approval(tool="t", args="{"),
        an_approval(tool="t", args="[1]"),
        an_approval(tool="t", args=""),
    ],
)
def test_arguments_that_are_not_known_cannot_be_asked_for(unreadable: Approval) -> None:
    with pytest.raises(UnreadableArgumentsError):
        _ = unreadable.args


def test_what_a_question_lacks_is_none() -> None:
    approval = an_approval(
        interrupt={"id": "i", "reason": "confirmation", "message": 5, "responseSchema": True}
    )

    assert (approval.message, approval.response_schema, approval.deadline) == (None, None, None)


# -- what is answered ---------------------------------------------------------------------------------------


def payload(decision: Decision) -> Json:
    [entry] = decision_record(an_approval(), decision, NOW)["resume"]
    return entry.get("payload", "absent")


def test_answers_have_the_payloads_that_agents_expect() -> None:
    assert payload(approve()) == {"approved": True}
    assert payload(approve(edited_args={"amount": 5})) == {"approved": True, "editedArgs": {"amount": 5}}
    assert payload(approve({"note": "x", "approved": False})) == {"note": "x", "approved": True}
    assert payload(deny()) == {"approved": False}
    assert payload(deny({"approved": True, "reason": "no"})) == {"approved": False, "reason": "no"}
    assert payload(answer(None)) is None
    assert payload(answer([])) == []
    assert payload(cancel()) == "absent"


@pytest.mark.parametrize("decision", DECISIONS)
def test_every_decision_fits_its_schema_and_the_router_reads_it(decision: Decision) -> None:
    approval = an_approval(tool="t", args={})
    record = decision_record(approval, decision, NOW)

    read = read_decision(record, "place", Limits())

    assert Schema("decision.v1").problems(record) == []
    assert isinstance(read, Judged)
    assert read.seen == {approval.interrupt_id: approval.digest}
    assert (read.generation, read.thread) == (approval.generation, approval.thread_id)
    assert read.decided_at == "2026-11-30T12:00:00.005+00:00"


def named(approval: Approval, decision: Decision) -> str:
    return str(decision_record(approval, decision, NOW)["decisionId"])


def test_the_same_answer_to_the_same_question_has_the_same_name_whenever_and_by_whomever() -> None:
    one = named(an_approval(), approve(by="kim"))
    other = decision_record(an_approval(), approve(by="lee", comment="again"), datetime.now(UTC))[
        "decisionId"
    ]

    assert one == other


@pytest.mark.parametrize(
    ("approval", "decision"),
    [
        (an_approval(), deny()),
        (an_approval(), cancel()),
        (an_approval(), answer({"approved": True, "editedArgs": {}})),
        (an_approval(attempt=2), approve()),
        (an_approval(thread="other"), approve()),
        (an_approval(tool="t", args={}), approve()),
    ],
)
def test_another_answer_attempt_or_question_has_another_name(approval: Approval, decision: Decision) -> None:
    assert named(approval, decision) != named(an_approval(), approve())


@given(st.dictionaries(st.text(), st.integers(-(2**53) + 1, 2**53 - 1)))
def test_the_order_of_members_does_not_matter(members: dict[str, int]) -> None:
    backwards = dict(reversed(members.items()))

    assert named(an_approval(), answer(members)) == named(an_approval(), answer(backwards))


def test_an_answer_that_other_parsers_would_read_differently_is_not_given() -> None:
    with pytest.raises(ValueError, match="53 bits"):
        named(an_approval(), answer(2**53 + 1))


# -- holding a question, and saying an answer again ---------------------------------------------------------


ASKED = an_approval()


@pytest.mark.parametrize("made", [claim(by="ann"), release(by="ann"), confirm(by="ann")])
def test_what_is_no_answer_names_the_question_alone(made: Decision) -> None:
    record = decision_record(ASKED, made, NOW)

    assert record["resume"] == [{"interruptId": ASKED.interrupt_id}]
    assert (record["action"], record["decidedBy"]) == (made.action, "ann")
    assert Schema("decision.v1").problems(record) == []
    read = read_decision(record, "place", Limits())
    assert isinstance(read, Judged)
    assert read.action == made.action


def test_a_claim_later_is_another_decision_and_a_confirm_is_the_same() -> None:
    later = NOW + timedelta(minutes=1)

    def named(made: Decision, at: datetime) -> str:
        return str(decision_record(ASKED, made, at)["decisionId"])

    assert named(claim(by="ann"), NOW) != named(claim(by="ann"), later)
    assert named(confirm(), NOW) == named(confirm(), later)


def test_a_claim_is_over_when_its_lease_is() -> None:
    until = int((NOW + timedelta(minutes=10)).timestamp() * 1000)
    held = an_approval(claim={"by": "ann", "until": until})

    assert held.held_by(NOW) == "ann"
    assert held.held_by(NOW + timedelta(minutes=10)) is None
    assert an_approval().held_by(NOW) is None


class Refund(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    amount: Decimal
    paid_at: datetime = Field(alias="paidAt")


def test_a_payload_may_be_a_model() -> None:
    refund = Refund(amount=Decimal("5.20"), paid_at=NOW)
    said = {"amount": "5.20", "paidAt": "2026-11-30T12:00:00.005000Z"}

    assert answer(refund).payload == said
    assert approve(refund).payload == {**said, "approved": True}
    assert deny(refund).payload == {**said, "approved": False}
    assert approve(edited_args=refund).payload == {"editedArgs": said, "approved": True}
    decision_record(an_approval(), approve(refund), NOW)
