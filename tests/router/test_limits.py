"""What a gathering keeps is bounded, whatever teams send: else one day it could not be written."""

import msgspec
import orjson
import pytest
from tests.router.pauses import RULES, a_pause, row
from tests.router.scenes import YES, entry

from holdshort.router.decider import RouterDecider
from holdshort.router.fanout import opened
from holdshort.router.gathering import COUNTED_KEPT, RECEIPT_BYTES_KEPT, RECEIPTS_KEPT, Receipt, remembered
from holdshort.stream.decider import Context
from holdshort.stream.records import Record, TopicPartition

LONG = msgspec.Raw(orjson.dumps({"v": "x" * 4000}))


@pytest.mark.parametrize("counted", [True, False])
def test_receipts_are_forgotten_before_they_outgrow_a_record(counted: bool) -> None:
    gathering = opened("t", a_pause("a"), (), RULES)
    for number in range(1000):
        gathering = remembered(gathering, Receipt("payments", f"d{number}", LONG, None, counted))

    kept = gathering.receipts
    assert kept[-1].decision_id == "d999"
    assert sum(len(bytes(one.value)) for one in kept) <= RECEIPT_BYTES_KEPT
    assert len(kept) <= (COUNTED_KEPT if counted else RECEIPTS_KEPT)


def test_what_counted_is_remembered_longer_than_noise() -> None:
    gathering = opened("t", a_pause("a"), (), RULES)
    small = msgspec.Raw(b"{}")
    gathering = remembered(gathering, Receipt("payments", "mine", small, None, True))
    for number in range(500):
        gathering = remembered(gathering, Receipt("payments", f"noise-{number}", LONG, None, False))

    assert "mine" in {one.decision_id for one in gathering.receipts}


def test_answers_as_large_as_may_be_fit_into_a_record_even_twice() -> None:
    """All that a pause may gather, each answer with its predecessor, and every receipt."""
    ids = [f"i{number}" for number in range(8)]
    pause = a_pause(*ids)
    router = RouterDecider(RULES, ["payments"])
    state = router.decide(None, row(pause, 1), Context(0, 1, 1, {}, {})).state
    rows, place = {"pending": row(pause, 1)}, (TopicPartition("inputs", 0), 0)
    for number, id_ in enumerate(ids):
        value = {"v": 1, "decisionId": f"d{number}", "threadId": "t", "generation": 1}
        big = entry(id_, {**YES, "text": "x" * 60_000})
        record = Record(
            "decisions.payments", 0, number, b"t", orjson.dumps({**value, "resume": [big]}), (), 2
        )
        state = router.decide(state, record, Context(0, 2, 2, {place: None}, rows)).state

    assert state is not None
    assert all(one.answer is not None for one in state.asked)
    again = msgspec.structs.replace(
        state, asked=tuple(msgspec.structs.replace(one, previous=one.answer) for one in state.asked)
    )
    for number in range(400):
        again = remembered(again, Receipt("payments", f"noise-{number}", LONG, None, number % 2 == 0))
    assert len(router.encode(b"t", again)) < 2 * 1024 * 1024
