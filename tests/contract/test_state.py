"""The state of a thread as it is stored (contract 1)."""

from pathlib import Path

import msgspec
import pytest
from tests.expected import lost, opened, quietly_refused
from tests.playbook import Playbook, agent, client, later, question, rules, sdk, team

from holdshort.contract.pending import decode_head, decode_pending, encode_pending
from holdshort.contract.rules import AgentRules
from holdshort.contract.state import NOTHING, Pointer, ThreadState, pointer_of
from holdshort.gatekeeper.decider import Gate
from holdshort.stream.errors import Halt


def eventful() -> Playbook:
    """A thread in which everything that is kept has happened."""
    play = Playbook(
        agents={"default": AgentRules(legacy_interrupts=True)}, trust_principal=frozenset({"inputs"})
    )
    play(client.asks("r1").having(principal="ada"), sdk.calls("c", "pay"), sdk.argues("c", "{}"))
    play(sdk.event("MESSAGES_SNAPSHOT"), sdk.event("STATE_SNAPSHOT"))
    play(sdk.interrupts("r1", question("a", toolCallId="c", responseSchema={"type": "boolean"})))
    play >> sdk.interrupts("r1", question("a", toolCallId="c")) << opened("a", superseded=1)
    play(client.resumes("r2", a=True), sdk.results("c", run="r2"), sdk.pauses_legacy({"q": 1.0}, run="r2"))
    play >> later(minutes=16) << lost()
    play >> team.resumes("hs-1", a=True) << quietly_refused("STALE_BINDING")
    play(client.resumes("r3", a=False))
    return play


def test_what_is_written_is_read_back() -> None:
    state = eventful().state()
    assert msgspec.json.decode(msgspec.json.encode(state), type=ThreadState) == state
    assert state.run is not None
    assert state.pause is not None
    assert state.pause.refusal is not None
    assert state.ended[0].lost is not None
    assert state.gone


def test_names_are_those_of_the_wire() -> None:
    written = msgspec.json.decode(msgspec.json.encode(eventful().state()))
    pause = written["pause"]
    for name in ("runId", "openedAt", "inputsEnd", "try", "refusal", "context", "attempted", "principal"):
        assert name in pause
    assert set(pause["interrupts"][0]["tool"]) == {"callId", "name", "args"}
    assert set(pause["context"]["input"]) == {"topic", "partition", "offset"}
    assert {"runId", "admittedAt", "answers", "batch", "looseBatch"} <= set(written["run"])


def test_answers_are_not_in_it_only_digests() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a="my secret"))
    assert b"secret" not in msgspec.json.encode(play.state())


def test_members_that_a_newer_version_added_are_ignored() -> None:
    written = msgspec.json.decode(msgspec.json.encode(eventful().state()))
    written |= {"novel": 1, "pause": written["pause"] | {"novel": 1}}
    assert msgspec.json.decode(msgspec.json.encode(written), type=ThreadState) == eventful().state()


def test_a_code_that_a_newer_version_added_does_not_make_the_state_unreadable() -> None:
    written = encode_pending("t", eventful().state(), None).replace(b'"STALE_BINDING"', b'"NOVEL"')
    pause = decode_pending(written).pause
    assert pause is not None
    assert pause.refusal is not None
    assert pause.refusal.code == "NOVEL"
    assert encode_pending("t", decode_pending(written), None) == written


def test_a_record_of_a_newer_version_halts_the_lane_and_says_so() -> None:
    newer = encode_pending("t", eventful().state(), None).replace(b'"v":1', b'"v":2', 1)
    for read in (Gate(rules()).decode, Gate(rules()).mark_of):
        with pytest.raises(Halt, match="a record of pending has version 2, not 1: upgrade first"):
            read(newer)


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"{}", b'{"v":"1"}', b'{"v":1}', b'{"v":1,"threadId":5}']
)
def test_a_record_that_cannot_be_read_halts_the_lane_too(value: bytes) -> None:
    with pytest.raises(Halt, match="a record of pending cannot be read"):
        Gate(rules()).decode(value)


def test_a_record_of_the_first_version_is_read() -> None:
    """As version 1 wrote it on its first day: what was added since then has its default."""
    record = (Path(__file__).parent / "cases" / "pending-first.json").read_bytes()
    state = decode_pending(record)
    assert state.pause is not None
    assert (state.generation, state.pause.ids, state.pause.status) == (1796040002000, ("a",), "open")
    assert state.pause.inputs_end == 1
    assert [run.outcome for run in state.ended] == ["interrupt"]
    head = decode_head(record)
    assert head.due == 1796126402000
    assert head.pause is not None
    assert head.pause.size == state.pause.size


def test_a_thread_with_nothing_in_it_has_no_state() -> None:
    assert NOTHING.empty
    assert Playbook().state().empty
    assert not eventful().state().empty


def test_a_descriptor_is_stored_exactly_as_the_agent_wrote_it() -> None:
    play = Playbook()
    descriptor = '{ "reason":"x" ,"id":"a","n":1.0e2,"s":"\\u00e9\\/" }'
    outcome = '{"type":"interrupt","interrupts":[' + descriptor + "]}"
    play(agent.finishes("r1").but(value='{"type":"RUN_FINISHED","runId":"r1","outcome":' + outcome + "}"))
    assert descriptor.encode() in msgspec.json.encode(play.state())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "inputs",
        "inputs/0",
        "inputs/0/x",
        "inputs/0/01",
        "inputs/+0/1",
        "inputs/0/1 ",
        "inputs/ 0/1",
        "٣/٣/٣",
        "x" * 400,
    ],
)
def test_a_pointer_is_read_only_as_it_is_written(text: str) -> None:
    assert pointer_of(text.encode()) is None


def test_a_pointer_is_its_place() -> None:
    assert pointer_of(b"agent-events.a/b/3/17") == Pointer("agent-events.a/b", 3, 17)
    assert str(Pointer("inputs", 3, 17)) == "inputs/3/17"
    assert pointer_of(b"\xff/0/1") is None
    assert pointer_of(b"x/" + b"9" * 200 + b"/1") is not None
