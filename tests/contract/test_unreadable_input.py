"""Row *unreadable input* of contract 3: what not every parser would read alike."""

import pytest
from tests.expected import admitted, opened, unreadable
from tests.playbook import Playbook, Said, agent, client, team

UNTOLD = unreadable("MALFORMED_INPUT", emitted=["dead-letters"])
TOLD = unreadable(
    "MALFORMED_INPUT", shown=["RUN_STARTED", "RUN_ERROR"], under=["r1"], dead=["MALFORMED_INPUT"]
)
IDS = '"threadId":"t","runId":"r1"'


def raw(*members: str) -> Said:
    return Said("inputs", "{" + ",".join((IDS, *members)) + "}")


@pytest.mark.parametrize("value", ["", "{", "[]", "null", '"t"', "1"])
def test_what_is_not_a_json_object_is_a_dead_letter(value: str) -> None:
    play = Playbook()
    play >> Said("inputs", value) << UNTOLD


def test_a_record_without_a_value_is_a_dead_letter() -> None:
    play = Playbook()
    play >> Said("inputs", None) << UNTOLD


@pytest.mark.parametrize("member", ["threadId", "runId"])
@pytest.mark.parametrize("value", [None, "", "  ", 1, ["t"]])
def test_without_a_usable_thread_and_run_id_it_is_a_dead_letter(member: str, value: object) -> None:
    play = Playbook()
    play >> client.asks("r1").adding(**{member: value}) << UNTOLD


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400, "01", "+1", ".5"]
)
def test_numbers_that_json_does_not_know_or_that_overflow_are_refused_and_told(number: str) -> None:
    play = Playbook()
    told = number not in ("01", "+1", ".5")
    play >> raw(f'"state":{number}') << (TOLD if told else UNTOLD)


@pytest.mark.parametrize("text", ['"\\ud800"', '"\\udc00\\ud800"', '"a\\uDBFFb"'])
def test_lone_surrogates_are_refused_and_told(text: str) -> None:
    play = Playbook()
    play >> raw(f'"state":{text}') << TOLD


def test_a_lone_surrogate_in_an_id_cannot_be_told() -> None:
    play = Playbook()
    play >> Said("inputs", '{"threadId":"t","runId":"\\ud800"}') << UNTOLD


def test_the_client_is_told_under_its_own_ids() -> None:
    play = Playbook()
    play >> agent.interrupts("r0", "a") << opened("a")
    play >> raw('"state":NaN') << TOLD

    started, error = play.events()
    assert started == {"type": "RUN_STARTED", "threadId": "t", "runId": "r1", "protocolVersion": "1.0"}
    assert (error["type"], error["code"]) == ("RUN_ERROR", "MALFORMED_INPUT")
    assert [one["id"] for one in play.error()["open"]] == ["a"]


def test_it_is_told_only_where_the_key_is_the_thread() -> None:
    play = Playbook()
    play >> raw('"state":NaN').but(key="u") << UNTOLD


def test_under_the_id_of_the_run_in_flight_it_is_not_shown() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> raw('"state":NaN') << UNTOLD


def test_while_another_run_is_in_flight_it_is_shown() -> None:
    play = Playbook()
    play(client.asks("r9"))
    play >> raw('"state":NaN') << TOLD


def test_an_endless_run_id_is_not_repeated() -> None:
    play = Playbook()
    play >> Said("inputs", '{"threadId":"t","runId":"' + "r" * 513 + '","x":NaN}') << UNTOLD


def test_from_resumes_it_is_not_shown() -> None:
    play = Playbook()
    play >> team.abandons(1).but(value="{" + IDS + ',"state":NaN}') << UNTOLD


def test_it_changes_nothing() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"))
    before = play.state()
    play >> raw('"state":NaN') << TOLD
    assert play.state() == before


# -- member names that occur twice --------------------------------------------------------------------------


def resume(entry: str) -> str:
    return f'"resume":[{entry}]'


TWICE = [
    raw('"resume":null', '"resume":[]'),
    raw('"runId":"r1"'),
    raw('"threadId":"t"'),
    raw('"re\\u0073ume":null', '"resume":[]'),
    raw('"a/b":1', '"a\\/b":1'),
    raw('"x":{"a":1}', '"x":{"a":1}'),
    raw(resume('{"interruptId":"a","status":"cancelled","status":"resolved"}')),
    raw(resume('{"interruptId":"a","interruptId":"b","status":"resolved"}')),
    raw(resume('{"interruptId":"a","status":"resolved","payload":{"ok":false,"ok":true}}')),
    raw(resume('{"interruptId":"a","status":"resolved","payload":[[{"x":{"ok":0,"o\\u006b":1}}]]}')),
    raw('"resume":{"a":1,"a":2}'),
    raw('"forwardedProps":{"command":{},"command":{"resume":1}}'),
    raw('"forwardedProps":{"command":{"a":1,"a":1}}'),
    raw('"forwardedProps":[{"a":1,"a":1}]'),
    raw('"forwardedProps":{"\\"":1,"\\u0022":2}'),
    raw('"forwardedProps":{"":1,"":2}'),
]


@pytest.mark.parametrize("said", TWICE, ids=[str(said.value)[30:80] for said in TWICE])
def test_a_name_twice_at_the_top_in_resume_or_in_forwarded_props_is_refused(said: Said) -> None:
    play = Playbook()
    play >> said << TOLD


BUT_FOR_CASE = [
    raw('"resume":null', '"Resume":[]'),
    raw('"RunId":"r2"'),
    raw('"THREADID":"u"'),
    raw('"re\\u017fume":[]', '"resume":[]'),
    raw(resume('{"interruptId":"a","status":"cancelled","Status":"resolved"}')),
    raw(resume('{"interruptId":"a","status":"resolved","payload":false,"Payload":true}')),
    raw(resume('{"interruptId":"a","status":"cancelled"},{"INTERRUPTID":"b","interruptId":"a"}')),
    raw('"forwarded_props":{"a":1,"a":2}'),
]


@pytest.mark.parametrize("said", BUT_FOR_CASE, ids=[str(said.value)[30:80] for said in BUT_FOR_CASE])
def test_a_judged_name_twice_but_for_its_case_is_refused(said: Said) -> None:
    """Go reads a name whatever its case, and the last wins: cancelled here, resolved there."""
    play = Playbook()
    play >> said << TOLD


ONCE = [
    raw('"messages":[{"id":"1","id":"2"}]'),
    raw('"state":{"a":1,"a":2}'),
    raw('"tools":[{"x":{"a":1,"a":2}}]'),
    raw('"state":{"resume":1,"forwardedProps":2,"runId":"r1"}'),
    raw('"forwardedProps":{"a":{"x":1},"b":{"x":1},"c":"x"}'),
    raw('"forwardedProps":{"a":"\\"a\\":1","b":"\\u0022"}'),
    raw('"forwardedProps":{"a":"\\\\u0022","b":"\\\\\\\\u0022"}'),
    raw('"messages":[{"content":"\\u0022resume\\u0022: \\"resume\\""}]'),
    raw('"Resume":null', '"parentRunId":"a"', '"ParentRunId":"b"'),
    raw('"state":{"a":1,"A":1,"resume":1,"Resume":2}'),
    raw('"a":1', '"A":1', '"\\u00e9":1', '"e\\u0301":1'),
]


@pytest.mark.parametrize("said", ONCE, ids=[str(said.value)[30:80] for said in ONCE])
def test_elsewhere_and_what_only_looks_like_it_is_let_through(said: Said) -> None:
    play = Playbook()
    play >> said << admitted()


def test_many_names_take_no_time() -> None:
    """A look for each of 90,000 names through a megabyte would hold the partition for a minute."""
    play = Playbook()
    many = {f"n{n}": 1 for n in range(60_000)}
    play >> client.asks("r1", forwardedProps=many) << admitted()
    play >> client.asks("r2").but(key="u").adding(threadId="u", **many) << admitted()


# -- nesting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [252, 300, 900, 985, 990, 1000, 1015, 1023, 1024, 10_000])
@pytest.mark.parametrize(
    "place", ['"state":{}', '"forwardedProps":{{"a":{}}}', '"forwardedProps":{{"\\u0022":{}}}']
)
def test_what_is_nested_deeper_than_any_parser_agrees_on_is_refused(depth: int, place: str) -> None:
    play = Playbook()
    (
        play
        >> raw(place.replace("{{", "{").replace("}}", "}").replace("{}", "[" * depth + "]" * depth, 1))
        << (unreadable("MALFORMED_INPUT"))
    )


def test_what_is_nested_less_deep_is_read() -> None:
    play = Playbook()
    play >> raw('"state":' + "[" * 251 + "]" * 251) << admitted(emitted=["runs.default"])


def test_strange_but_valid_json_is_forwarded_byte_for_byte() -> None:
    play = Playbook()
    text = ' {"runId" : "r1",\n"threadId":"\\u0074", "n":1.0e2,"big":123456789012345678901234567890} '
    verdict = play.verdict(Said("inputs", text))

    assert verdict.kind == "admitted"
    assert verdict.emits[0].value == text.encode()
