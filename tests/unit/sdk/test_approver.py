"""Questions reach the function that is meant for them, and only what it answers is answered."""

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from holdshort.sdk.approver import Approval, Approver, Decision, Receipt, approve, claim, deny
from holdshort.sdk.testing import an_approval, decide
from holdshort.stream.records import Record

Json = Any


def asking(app: Approver) -> list[str]:
    """Register a function of each kind; says which one was asked."""
    asked: list[str] = []

    def note(name: str) -> Any:
        async def function(_: Approval) -> None:
            asked.append(name)

        return function

    app.on("payments:refund")(note("exact"))
    app.on("payments:*")(note("namespace"))
    app.on(tool="transfer_money")(note("tool"))
    app.on("confirmation")(note("core"))
    app.on()(note("everything"))
    return asked


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        (an_approval(reason="payments:refund", tool="transfer_money"), "exact"),
        (an_approval(reason="payments:other", tool="transfer_money"), "namespace"),
        (an_approval(reason="tool_call", tool="transfer_money"), "tool"),
        (an_approval(reason="confirmation"), "core"),
        (an_approval(reason="something"), "everything"),
        (an_approval(reason="tool_call"), "everything"),
        (an_approval(reason="core:own"), "everything"),
    ],
)
async def test_the_most_specific_function_is_asked_and_only_that(approval: Approval, expected: str) -> None:
    app = Approver("payments")
    asked = asking(app)

    await app.decide(approval)

    assert asked == [expected]


async def test_a_question_that_no_function_is_meant_for_is_left_to_others() -> None:
    app = Approver("payments")
    app.on(tool="transfer_money")(lambda _: approve())

    assert await decide(app, an_approval(tool="delete_account")) is None
    assert await decide(app, an_approval()) is None


async def test_none_is_no_answer() -> None:
    app = Approver("payments")

    @app.on()
    async def later(_: Approval) -> Decision | None:
        return None

    assert await decide(app, an_approval()) is None


async def test_what_a_function_answers_is_the_decision() -> None:
    app = Approver("payments")

    @app.on(tool="transfer_money")
    async def small(approval: Approval) -> Decision:
        return approve(by="kim") if approval.args["amount"] < 100 else deny()

    record = await decide(app, an_approval(tool="transfer_money", args={"amount": 5}))

    assert record is not None
    assert record["decidedBy"] == "kim"
    assert record["resume"] == [
        {"interruptId": "int-call", "status": "resolved", "payload": {"approved": True}}
    ]


async def test_a_question_may_be_the_record_itself() -> None:
    app = Approver("payments")
    app.on()(lambda _: approve())

    assert await decide(app, an_approval().model_dump(by_alias=True, mode="json")) is not None


async def test_a_function_that_is_not_async_may_block() -> None:
    app = Approver("payments")
    threads = []

    @app.on()
    def blocking(_: Approval) -> Decision:
        threads.append(threading.current_thread())
        return approve()

    assert await decide(app, an_approval()) is not None
    assert threads != [threading.main_thread()]


async def test_what_is_not_a_decision_is_the_functions_mistake() -> None:
    app = Approver("payments")
    app.on()(lambda _: True)  # type: ignore[type-var]  # as users may write it

    with pytest.raises(TypeError, match="approve"):
        await decide(app, an_approval())


def test_a_function_is_registered_once_for_each_kind_of_question() -> None:
    app = Approver("payments")
    asking(app)

    for again in (("payments:*", None), (None, "transfer_money"), (None, None)):
        with pytest.raises(ValueError, match="already"):
            app.on(again[0], tool=again[1])


@pytest.mark.parametrize(
    ("reason", "tool", "why"),
    [
        ("payments:*", "transfer_money", "either by reason, or by tool"),
        ("payments*", None, "ends with a separator"),
        ("pay*ments:x", None, "only at the end"),
        ("core:x", None, "reserved"),
    ],
)
def test_what_could_never_match_is_refused(reason: str, tool: str | None, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Approver("payments").on(reason, tool=tool)


@pytest.mark.parametrize("name", ["Payments", "", "-x", "a b"])
def test_names_are_those_of_the_configuration(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Approver(name)


# -- as a router --------------------------------------------------------------------------------------------


def test_it_is_a_router_for_any_faststream_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    from faststream.kafka import KafkaBroker

    monkeypatch.setenv("HOLDSHORT_PREFIX", "test.")
    app = Approver("payments", service="limits")
    app.on_receipt(lambda _: None)
    broker = KafkaBroker()
    broker.include_router(app.router)

    subscribers: list[Any] = list(broker.subscribers)
    subscribed = {(topic, one.group_id) for one in subscribers for topic in one.topic_names}
    assert subscribed == {
        ("test.approvals.payments", "test.team-payments.limits"),
        ("test.receipts.payments", "test.team-payments.limits.receipts"),
    }


async def test_a_question_whose_arguments_nobody_can_read_is_left_to_people_at_once() -> None:
    app = Approver("payments")
    app.on()(lambda approval: approve() if approval.args["amount"] < 100 else None)
    value = an_approval(tool="transfer_money", args='{"amount": hunter2').model_dump_json(by_alias=True)

    with capture_logs() as logs:
        await app._consider(Record("approvals.payments", 0, 0, b"a", value.encode(), [], 0))

    assert [(log["error"], log["again_in_s"]) for log in logs] == [("UnreadableArgumentsError", None)]
    assert "hunter2" not in str(logs)


async def test_a_tombstone_asks_nobody() -> None:
    app = Approver("payments")
    asked = asking(app)

    await app._consider(Record("approvals.payments", 0, 0, b"a", None, [], 0))

    assert asked == []


async def test_what_is_held_already_is_not_claimed_again_and_again() -> None:
    """A claim changes the approval, so the function is asked anew each time."""
    app = Approver("payments")
    app.on()(lambda _: claim(by="ann"))
    held = an_approval(claim={"by": "ann", "until": 4_000_000_000_000})
    wire = held.model_dump(by_alias=True, mode="json")
    wire["openedAt"] = 1_796_000_000_000

    await app._consider(Record("approvals.payments", 0, 0, b"a", json.dumps(wire).encode(), [], 0))

    assert "_wire" not in vars(app), "nothing was published"


@pytest.mark.parametrize("by", ["bob", None])
async def test_what_somebody_else_holds_is_asked_again_when_their_lease_is_over(by: str | None) -> None:
    app = Approver("payments")
    app.on()(lambda _: approve(by=by))
    until = (datetime.now(UTC) + timedelta(minutes=10)).timestamp() * 1000
    wire = an_approval(claim={"by": "ann", "until": int(until)}).model_dump(by_alias=True, mode="json")
    wire["openedAt"] = 1_796_000_000_000

    again = await app._consider(Record("approvals.payments", 0, 7, b"a", json.dumps(wire).encode(), [], 0))

    assert again is not None
    assert 600 < again < 610, "a lease ends by the broker's clock"
    assert "_wire" not in vars(app), "nothing was published"


async def test_an_answer_is_a_new_decision_for_what_the_router_has_written_anew_and_only_then() -> None:
    app = Approver("payments")
    app.on()(lambda _: approve(by="limits"))

    async def named(place: str) -> str:
        record = await decide(app, an_approval(), place=place)
        assert record is not None
        return str(record["decisionId"])

    assert await named("0/5") == await named("0/5")
    assert await named("0/5") != await named("0/7")


def receipt(value: bytes) -> Record:
    return Record("receipts.payments", 0, 0, b"t", value, [], 0)


async def test_receipts_are_told() -> None:
    app = Approver("payments")
    told: list[Receipt] = []
    app.on_receipt(told.append)

    await app._told(receipt(b'{"v":1,"decisionId":"d","threadId":"t","generation":1,"verdict":"accepted"}'))

    assert [one.verdict for one in told] == ["accepted"]


async def test_a_receipt_that_cannot_be_told_is_logged_without_its_content() -> None:
    app = Approver("payments")
    app.on_receipt(lambda _: None)

    with capture_logs() as logs:
        await app._told(receipt(b'{"secret": "hunter2"}'))

    assert [log["error"] for log in logs] == ["ValidationError"]
    assert "hunter2" not in str(logs)


def test_imports_stay_light() -> None:
    """An agent's developers do not pay for frameworks that they do not use."""
    import subprocess
    import sys

    code = (
        "import sys, holdshort.sdk.agent, holdshort.sdk.approver, holdshort.sdk.testing;"
        "print([name for name in ('pydantic_ai', 'faststream', 'aiokafka', 'ag_ui', 'confluent_kafka') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
