"""Transcripts (contract 8): what a line may say, and what is said about it."""

from typing import Any

import pytest
from tests.playbook import rules

from holdshort.contract.keys import partition_of
from holdshort.gatekeeper.transcript import MendTranscriptError, Transcript

ASKS = {"topic": "inputs", "at": 1000, "value": {"threadId": "t", "runId": "r1"}}
STARTS = {
    "topic": "agent-events.default",
    "at": 1000,
    "value": {"type": "RUN_STARTED", "threadId": "t", "runId": "x"},
}


def played(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    gate = Transcript(rules())
    return [answer for line in lines for answer in gate.play(line)]


def test_one_answer_a_record_with_these_members() -> None:
    (answer,) = played(ASKS)
    assert set(answer) == {
        "verdict", "code", "problems", "generation", "status", "open", "settled", "superseded", "emits",
    }  # fmt: skip
    assert set(answer["emits"][0]) == {"topic", "key", "value", "headers"}


def test_the_key_defaults_to_the_values_thread_id() -> None:
    (answer,) = played(ASKS)
    assert answer["emits"][0]["key"] == "t"
    (miskeyed,) = played({**ASKS, "key": "u"})
    assert miskeyed["code"] == "MISKEYED_RECORD"


def test_the_key_defaults_to_the_thread_id_of_raw_bytes_too() -> None:
    (answer,) = played({**ASKS, "value": '{"threadId": "t", "runId": "r1"}'})
    assert (answer["verdict"], answer["emits"][0]["key"]) == ("admitted", "t")
    (twice,) = played({**ASKS, "value": '{"threadId": "t", "runId": "r1", "runId": "r2"}'})
    assert [emit["key"] for emit in twice["emits"]] == ["t", "t", "t"]
    for value in ("{", "[]", '{"threadId": 5}', '{"threadId": "\\ud800"}', None):
        assert played({**ASKS, "value": value})[0]["emits"][0]["key"] is None
    (keyless,) = played({**ASKS, "key": None})
    assert keyless["code"] == "MISKEYED_RECORD"


def test_offsets_are_counted_in_each_topic() -> None:
    admitted, _, busy = played(ASKS, STARTS, {**ASKS, "offset": 7, "value": {"threadId": "u", "runId": "r"}})
    assert admitted["emits"][0]["headers"]["holdshort-admission"] == "inputs/0/0"
    assert busy["emits"][0]["headers"]["holdshort-admission"] == "inputs/0/7"


def test_the_partition_defaults_to_the_threads() -> None:
    gate = Transcript(rules(partitions=12))
    (answer,) = gate.play(ASKS)
    admission = answer["emits"][0]["headers"]["holdshort-admission"]
    assert admission == f"inputs/{partition_of(b't', 12)}/0"


def test_a_value_that_is_a_string_is_raw_bytes() -> None:
    (answer,) = played({**ASKS, "key": "t", "value": "{"})
    assert answer["code"] == "MALFORMED_INPUT"


def test_times_are_rfc_3339_or_epoch_milliseconds() -> None:
    ways = ["12:00:00Z", "13:00:00+01:00", "12:00:00", "12:00:00.0009999Z", "11:59:60Z"]
    for at in (1796040000000, *(f"2026-11-30T{way}" for way in ways), "2026-11-30t12:00:00z"):
        (answer,) = played({**ASKS, "at": at})
        assert answer["emits"][0]["headers"]["holdshort-start-by"] == str(1796040000000 + 15 * 60_000)


def test_the_clock_defaults_to_the_time() -> None:
    (answer,) = played({**ASKS, "clock": 5000})
    assert answer["emits"][0]["headers"]["holdshort-start-by"] == str(5000 + 15 * 60_000)


def test_the_inputs_end_defaults_to_the_next_offset_of_inputs() -> None:
    interrupt = {"type": "interrupt", "interrupts": [{"id": "a", "reason": "x"}]}
    pauses = {**STARTS, "value": {"type": "RUN_FINISHED", "runId": "x", "outcome": interrupt}, "key": "t"}
    entries = [{"interruptId": "a", "status": "resolved"}]
    answer = {**ASKS, "value": {"threadId": "t", "runId": "r", "resume": entries}}
    assert played(pauses, answer)[-1]["verdict"] == "admitted"
    assert played({**pauses, "inputs_end": 9}, {**answer, "offset": 8})[-1]["code"] == "STALE_BINDING"


def test_a_time_alone_lets_deadlines_fire_and_only_they_are_said() -> None:
    admitted, lost = played(ASKS, {"at": 1000 + 16 * 60_000}, {"at": 1000 + 48 * 3_600_000})
    assert (admitted["verdict"], lost["verdict"]) == ("admitted", "lost")


def test_deadlines_do_not_fire_by_themselves_when_records_come_late() -> None:
    *_, finished = played(
        ASKS, {**STARTS, "at": 10**9, "value": {"type": "RUN_FINISHED", "runId": "r1"}, "key": "t"}
    )
    assert finished["verdict"] == "passed"


@pytest.mark.parametrize(
    "line",
    [
        {"topic": "events", "at": 1},
        {"topic": 5, "at": 1},
        {"at": "soon"},
        {"at": None},
        {"at": True},
        {"at": 1.5},
    ],
)
def test_what_is_no_line_says_what_to_mend(line: dict[str, Any]) -> None:
    with pytest.raises(MendTranscriptError, match=r"must be|is RFC 3339"):
        Transcript(rules()).play(line)
