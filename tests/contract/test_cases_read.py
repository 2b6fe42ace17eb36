"""What `holdshort judge` reads, compares and explains, and what it says of bad input."""

import json
from typing import Any

import pytest
from tests.playbook import rules

from holdshort.contract.codes import Code
from holdshort.gatekeeper.cases import Answered, Compared, Source, play, read_cases
from holdshort.gatekeeper.explained import explain
from holdshort.gatekeeper.transcript import MendTranscriptError, Transcript

ASKED = {"id": "a", "reason": "x", "responseSchema": {"type": "boolean"}}
PAUSES: dict[str, Any] = {
    "topic": "agent-events.default",
    "at": 1000,
    "key": "t",
    "value": {"type": "RUN_FINISHED", "runId": "r1", "outcome": {"type": "interrupt", "interrupts": [ASKED]}},
}
ASKS: dict[str, Any] = {"topic": "inputs", "at": 2000, "value": {"threadId": "t", "runId": "r2"}}
ANSWERS: dict[str, Any] = {
    "topic": "inputs",
    "at": 3000,
    "value": {
        "threadId": "t",
        "runId": "r3",
        "resume": [{"interruptId": "a", "status": "resolved", "payload": True}],
    },
}


def played(*texts: str, partitions: int = 1, prefix: str = "holdshort.") -> list[Answered | Compared]:
    given = rules(partitions=partitions)
    cases = read_cases([Source(f"file{n}", text) for n, text in enumerate(texts)], prefix)
    return [told for case in cases for told in play(case, Transcript(given))]


def text(*lines: dict[str, Any]) -> str:
    return "\n".join(json.dumps(line) for line in lines)


@pytest.mark.parametrize("place", ["{}", "[{}]"])
def test_a_name_that_stands_twice_in_a_value_is_judged_as_it_was_written(place: str) -> None:
    entry = '{"interruptId": "a", "status": "cancelled", "status": "resolved"}'
    value = f'{{"threadId": "t", "runId": "r", "resume": [{entry}]}}'
    line = f'{{"topic": "inputs", "at": 1, "value": {value}}}'
    (told,) = played(place.format(line if place == "{}" else f'{{"transcript": [{line}]}}'))
    assert isinstance(told, Answered)
    assert told.answer["code"] == "MALFORMED_INPUT"


def verdicts(told: list[Answered | Compared]) -> list[str]:
    return [one.answer["verdict"] for one in told if isinstance(one, Answered)]


def compared(*texts: str) -> list[Compared]:
    return [one for one in played(*texts) if isinstance(one, Compared)]


# -- expectations -------------------------------------------------------------------------------------------


def test_what_is_expected_of_a_line_is_compared_and_nothing_else() -> None:
    expected = {"verdict": "refused", "code": ["PENDING_INTERRUPTS", "THREAD_BUSY"], "open": ["a"]}
    assert compared(text(PAUSES, {**ASKS, "expect": expected, "says": "a remark"})) == [
        Compared("line 2", [])
    ]
    assert compared(text(PAUSES, ASKS)) == []


def test_each_member_that_differs_is_told_with_what_was_wanted_and_what_came() -> None:
    expected = {"verdict": ["admitted", "replayed"], "code": None, "open": [], "settled": 5, "status": "open"}
    (told,) = compared(text(PAUSES, {**ASKS, "expect": expected}))
    assert told == Compared(
        "line 2",
        [
            "verdict: wanted admitted or replayed, got refused",
            "code: wanted null, got PENDING_INTERRUPTS",
            'open: wanted [], got ["a"]',
            "settled: wanted 5, got null",
        ],
    )


def test_open_is_a_set() -> None:
    asked = {"type": "interrupt", "interrupts": [ASKED, {**ASKED, "id": "b"}]}
    line = {**PAUSES, "value": {**PAUSES["value"], "outcome": asked}}
    assert compared(text({**line, "expect": {"open": ["b", "a"]}})) == [Compared("line 1", [])]
    assert compared(text({**line, "expect": {"open": ["b"]}}))[0].differences
    assert compared(text({**line, "expect": {"open": ["b", "a", "a"]}}))[0].differences


def test_truth_is_not_equality() -> None:
    assert compared(text({**ASKS, "expect": {"settled": False}}))[0].differences
    assert compared(text({**ASKS, "expect": {"generation": 0}}))[0].differences


def test_time_that_passes_may_expect_several_answers_or_none() -> None:
    two = [ASKS, {**ASKS, "value": {"threadId": "u", "runId": "r"}}]
    lost, much = {"verdict": "lost"}, 2000 + 16 * 60_000
    assert compared(text(*two, {"at": much, "expect": [lost, lost]})) == [Compared("line 3", [])]
    assert compared(text(*two, {"at": 2001, "expect": []})) == [Compared("line 3", [])]
    assert compared(text(*two, {"at": much, "expect": lost})) == [
        Compared("line 3", ["wanted 1 answers, got 2"])
    ]


def test_a_case_expects_something_of_its_last_answers_and_has_a_gate_of_its_own() -> None:
    last = [{"verdict": "refused"}, {"verdict": "admitted"}]
    case = {"case": "one", "says": "x", "transcript": [PAUSES, ASKS, ANSWERS], "expect": last}
    for given in (json.dumps([case, case], indent=1), text(case, case)):
        told = played(given)
        assert verdicts(told) == ["opened", "refused", "admitted"] * 2
        assert [one.differences for one in told if isinstance(one, Compared)] == [[], []]


def test_a_case_that_is_shorter_than_its_expectations_is_not_met() -> None:
    (told,) = compared(json.dumps([{"case": "one", "transcript": [PAUSES], "expect": [{}, {}]}]))
    assert told == Compared("case one", ["wanted 2 answers, got 1"])


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{", "line 1: it is not JSON: "),
        (text(ASKS) + "\n\nx", "line 3: it is not JSON: "),
        ("5", "line 1: it is not an object"),
        (text({**ASKS, "topics": 1}), "line 1: a line has no member 'topics'; it may have topic, at, key, "),
        (text(PAUSES, {**ASKS, "topic": "events"}), "line 2: topic must be inputs, resumes or agent-events."),
        (text({**ASKS, "topic": None}), "line 1: topic must be inputs"),
        (text({**ASKS, "at": "soon"}), "line 1: a time is RFC 3339 or epoch milliseconds, not 'soon'"),
        (text({**ASKS, "clock": []}), "line 1: a time is RFC 3339"),
        (text({**ASKS, "key": 5}), "line 1: key must be str or null, not int"),
        (text({**ASKS, "offset": "5"}), "line 1: offset must be int or null, not str"),
        (text({**ASKS, "partition": 1.5}), "line 1: partition must be int or null, not float"),
        (text({**ASKS, "inputs_end": {}}), "line 1: inputs_end must be int or null, not object"),
        (text({**ASKS, "headers": ["a"]}), "line 1: headers must be object or null, not array"),
        (text({**ASKS, "headers": {"a": None}}), "line 1: headers[...] must be "),
        (text({**ASKS, "expect": 5}), "line 1: expect must be an object, or a list"),
        (text({**ASKS, "expect": {"verdikt": 5}}), "line 1: expect: an answer has no member 'verdikt'"),
        (text({**ASKS, "expect": {"open": "a"}}), "line 1: expect: open must be a list"),
        ("[1]", "case 1: it is not an object"),
        (json.dumps([{"case": "x", "transcript": 5}]), "case x: transcript must be a list"),
        (json.dumps([{"case": "x", "transcript": [], "more": 1}]), "case x: a case has no member 'more'"),
        (json.dumps([{"case": "x", "transcript": [{"at": ""}]}]), "case x, record 1: a time is"),
        ("{}", "line 1: it is neither a record, which has a topic, nor a time that passes (at)"),
        ('{"topic":"inputs","topic":"resumes","at":1}', "line 1: a name stands twice in it"),
        ("[" * 100_000, "it is not JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_told_in_a_sentence_with_its_place(given: str, says: str) -> None:
    with pytest.raises(MendTranscriptError) as told:
        played(given)
    assert str(told.value).startswith(says)
    assert "\n" not in str(told.value)


def test_of_several_files_the_one_is_named() -> None:
    with pytest.raises(MendTranscriptError, match=r"^file1, line 1: it is not"):
        played(text(ASKS), "x")


def test_separators_inside_of_a_value_do_not_end_a_line() -> None:
    line = json.dumps({**ASKS, "value": {"threadId": "t", "runId": "r\u2028\x0b"}}, ensure_ascii=False)
    assert verdicts(played(line)) == ["admitted"]


# -- dumps --------------------------------------------------------------------------------------------------


def kcat(line: dict[str, Any], offset: int, **more: Any) -> dict[str, Any]:
    return {
        "topic": "holdshort." + line["topic"],
        "partition": 0,
        "offset": offset,
        "tstype": "logappend",
        "ts": line["at"],
        "broker": 1,
        "headers": ["holdshort-principal", "ada", "x", None],
        "key": line["value"].get("threadId", "t"),
        "payload": json.dumps(line["value"]),
        **more,
    }


def test_a_dump_of_kcat_is_read_topic_by_topic_and_judged_in_the_order_of_its_times() -> None:
    dump = text(kcat(ASKS, 0), kcat(ANSWERS, 1), kcat(PAUSES, 0))
    told = played(dump)
    assert verdicts(told) == ["opened", "refused", "admitted"]
    assert [one.where for one in told] == ["agent-events.default/0/0", "inputs/0/0", "inputs/0/1"]
    assert isinstance(told[0], Answered)
    assert told[0].moment is not None
    assert told[0].moment.record.headers == (("holdshort-principal", b"ada"), ("x", b""))


def columns(line: dict[str, Any], offset: int, headers: str = "NO_HEADERS") -> str:
    key, value = line["value"].get("threadId", "t"), json.dumps(line["value"])
    return f"LogAppendTime:{line['at']}\tPartition:0\tOffset:{offset}\t{headers}\t{key}\t{value}"


def test_a_dump_of_the_console_consumer_is_read_when_its_topic_is_said() -> None:
    inputs = Source("i", columns(ASKS, 0, "a:1,2,b:x:y") + "\n" + columns(ANSWERS, 1), "inputs")
    events = Source("e", columns(PAUSES, 0), "agent-events.default")
    (case,) = read_cases([inputs, events], "holdshort.")
    answered = [one for one in play(case, Transcript(rules())) if isinstance(one, Answered)]
    assert verdicts([*answered]) == ["opened", "refused", "admitted"]
    assert answered[1].moment is not None
    assert answered[1].moment.record.headers == (("a", b"1,2"), ("b", b"x:y"))
    with pytest.raises(MendTranscriptError, match="say TOPIC=FILE"):
        read_cases([Source("i", columns(ASKS, 0))], "")


def test_deadlines_fire_between_the_records_of_a_dump() -> None:
    late = {**ASKS, "at": ASKS["at"] + 16 * 60_000, "value": {"threadId": "u", "runId": "r"}}
    assert verdicts(played(text(kcat(ASKS, 0), kcat(late, 1)))) == ["admitted", "lost", "admitted"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (kcat(ASKS, 0, payload={}), "line 1: payload must be a string, as kcat -J prints it, or null"),
        (kcat(ASKS, 0, headers=["a"]), "line 1: headers must be a list of names and values"),
        (kcat(ASKS, 0, ts=None), "a dump's record has topic, partition, offset and time"),
        (kcat(ASKS, 0, topic="holdshort.events"), "events/0/0: topic must be inputs"),
    ],
)
def test_a_dump_that_cannot_be_used_is_told(line: dict[str, Any], says: str) -> None:
    with pytest.raises(MendTranscriptError) as told:
        played(text(line))
    assert str(told.value).startswith(says)


def test_columns_without_times_or_keys_are_told_what_to_print() -> None:
    with pytest.raises(MendTranscriptError, match="line 1: print time, partition, offset, headers and key"):
        read_cases([Source("i", "CreateTime:5\tx", "inputs")], "")


def test_a_transcript_and_a_dump_do_not_mix() -> None:
    with pytest.raises(MendTranscriptError, match="cannot be judged together"):
        played(text(ASKS), text(kcat(ASKS, 0)))


# -- in words -----------------------------------------------------------------------------------------------


def words(*lines: dict[str, Any]) -> list[str]:
    return [explain(told, rules()) for told in played(text(*lines)) if isinstance(told, Answered)]


def test_a_refusal_is_explained_by_its_row_its_code_its_problems_and_what_is_open() -> None:
    wrong = json.loads(json.dumps(ANSWERS).replace("true", "5"))
    _, refused = words(PAUSES, wrong)
    code = Code.INVALID_PAYLOAD
    assert refused.splitlines() == [
        "line 2: inputs/0/0 at 1970-01-01T00:00:03.000+00:00, thread t",
        "  refused: It does not reach the agent, and what is open stays open.",
        "  Decided by the row *payload refused* for inputs.",
        f"  {code}: {code.sentence} Sending it again helps: {code.retry}.",
        '  - interrupt a: must be of type "boolean"',
        "  Pause 1000 is open and waits for a.",
        "  Written: events (RUN_STARTED), events (RUN_ERROR).",
    ]


def test_every_kind_of_answer_has_words() -> None:
    abandons = {
        "topic": "resumes",
        "at": 4000,
        "value": {"threadId": "t", "runId": "hs-1"},
        "headers": {"holdshort-action": "abandon", "holdshort-generation": "1000"},
    }
    said = words(
        PAUSES, PAUSES, ANSWERS, ANSWERS, {"at": 10**7}, abandons,
        {**ASKS, "at": 4001, "key": "t", "value": "{"}, {**PAUSES, "at": 4002, "value": "x"},
    )  # fmt: skip
    firsts = [text.splitlines()[1].strip().split(":")[0] for text in said]
    assert firsts == [
        "opened", "ignored", "admitted", "duplicate", "lost", "settled", "unreadable", "unreadable",
    ]  # fmt: skip
    assert "a deadline" in said[4]
    assert "An event of the run whose pause is there: RUN_FINISHED." in said[1]
    assert "Nothing is written." in said[3]
    assert "Pause 1000 has been answered; its run is in flight." in said[2]
    assert "Pause 1000 is settled." in said[5]
    assert "No pause is there now." in said[5]
    assert "It is no event that can be placed." in said[7]
