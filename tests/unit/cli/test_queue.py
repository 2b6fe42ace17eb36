"""What a person at a terminal reads of a question and of a receipt."""

from typing import Any

import pytest

from holdshort.cli.queue import print_question, print_receipt
from holdshort.sdk.approvals import Receipt
from holdshort.sdk.testing import an_approval


def receipt(code: str, decided: dict[str, Any] | None = None) -> Receipt:
    entry: dict[str, Any] = {
        "interruptId": "i",
        "verdict": "refused",
        "code": code,
        "problems": [],
        "decided": decided,
    }
    whole = {"decisionId": "d", "threadId": "t", "generation": 1, "verdict": "refused", "entries": [entry]}
    return Receipt.model_validate(whole)


def test_a_refusal_is_told_in_words_with_who_was_first(capsys: pytest.CaptureFixture[str]) -> None:
    decided = {"status": "resolved", "payload": {"approved": False}, "decidedBy": "ann", "decidedAt": "today"}
    print_receipt(receipt("ALREADY_DECIDED", decided))

    assert capsys.readouterr().out.splitlines() == [
        "refused",
        "  i refused: ALREADY_DECIDED",
        "    It has been decided already, and differently; the first decision stands.",
        '    decided already: {"approved":false} by ann, today',
    ]


def test_what_the_router_answered_itself_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    decided = {"status": "cancelled", "decidedBy": None, "decidedAt": None, "cause": "deadline"}
    print_receipt(receipt("ALREADY_DECIDED", decided))

    assert "decided already: cancelled by the router (deadline)" in capsys.readouterr().out


@pytest.mark.parametrize(("run", "said"), [("hs-1", "the agent goes on"), (None, "is not sent yet")])
def test_a_batch_that_is_held_is_not_told_as_sent(
    capsys: pytest.CaptureFixture[str], run: str | None, said: str
) -> None:
    batch = {"complete": True, "waitingFor": [], "runId": run}
    print_receipt(receipt("ALREADY_DECIDED").model_copy(update={"verdict": "accepted", "batch": batch}))

    assert said in capsys.readouterr().out


def test_a_code_of_a_newer_router_is_told_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_receipt(receipt("WRONG_MOON"))

    assert capsys.readouterr().out.splitlines() == ["refused", "  i refused: WRONG_MOON"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"quorum": {"need": 2, "have": 1}}, "1 of 2 who must answer alike"),
        ({"quorum": {"need": 2, "have": 1}}, "it matters who decides"),
        ({"requesterMayDecide": False}, "it matters who decides"),
        ({"signature": "required"}, "a signature is required"),
        ({"attempt": 2, "previous": {"status": "cancelled"}}, "nobody knows what became of the last answer"),
        ({"attempt": 2, "attempted": True}, "the tool has had a result already"),
    ],
)
def test_what_matters_before_one_answers_is_told(
    members: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_question(an_approval(**members))

    assert said in capsys.readouterr().out


def test_what_does_not_matter_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    print_question(an_approval())
    said = capsys.readouterr().out

    assert "who" not in said
    assert "again" not in said
