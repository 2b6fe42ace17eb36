"""Contract 9: each limit, on both sides."""

import msgspec
import pytest
from tests.expected import admitted, ignored, lost, opened, passed, refused, settled, violated
from tests.playbook import Agent, Playbook, agent, client, later, pause_of, question, run_of, sdk

from holdshort.contract.pending import decode_head, encode_pending
from holdshort.contract.rules import AgentRules, Limits

KIB = 1024
MIB = 1024 * KIB


def running(**limits: int) -> Playbook:
    play = Playbook(limits=Limits(**limits))
    play(agent.starts("r1"))
    return play


def asking(*ids: str, **limits: int) -> Playbook:
    play = Playbook(limits=Limits(**limits))
    play >> agent.interrupts("r1", *ids) << opened(*ids)
    return play


def test_the_limits_are_those_of_the_contract() -> None:
    limits = Limits()
    assert (limits.input, limits.event) == (MIB, MIB)
    assert (limits.interrupts, limits.descriptors) == (64, 256 * KIB)
    assert (limits.payload, limits.entries) == (64 * KIB, 512 * KIB)
    assert limits.tool_args == 64 * KIB
    assert (limits.remembered, limits.memory_ms) == (16, 24 * 3600 * 1000)
    assert (limits.open_pauses, limits.open_bytes) == (100_000, 256 * MIB)
    assert (limits.schemas, limits.work) == (16, 25_000)


def test_input() -> None:
    play = Playbook()
    play >> client.asks("r1").padded(MIB + 1) << refused("TOO_LARGE")
    play >> client.asks("r1").padded(MIB) << admitted()


def test_input_counts_headers() -> None:
    play = Playbook(limits=Limits(input=200))
    said = client.asks("r1").but(headers={"note": "x" * 50})
    play >> said.padded(201) << refused("TOO_LARGE")
    play >> said.padded(200) << admitted()


def test_event() -> None:
    play = running()
    play >> agent.says(run="r1").padded(MIB + 1) << violated("TOO_LARGE")
    play >> agent.says(run="r1").padded(MIB) << passed()


def test_event_for_an_interrupt_outcome() -> None:
    play = running()
    play >> agent.interrupts("r1", "a").padded(MIB) << opened("a")
    play = running()
    play >> agent.interrupts("r1", "a").padded(MIB + 1) << violated("TOO_LARGE", generation=None)


def test_interrupts() -> None:
    ids = [f"i{n}" for n in range(65)]
    play = running()
    play >> agent.interrupts("r1", *ids[:64]) << opened(*ids[:64])
    play = running()
    play >> agent.interrupts("r1", *ids) << violated("TOO_LARGE", generation=None)


def test_descriptors() -> None:
    bare = len('{"id":"a","reason":"test:question","message":""}')
    fitting = 256 * KIB - bare
    play = running()
    play >> agent.interrupts("r1", question("a", message="m" * fitting)) << opened("a")
    play = running()
    play >> agent.interrupts("r1", question("a", message="m" * (fitting + 1))) << violated("TOO_LARGE")


def test_descriptors_together() -> None:
    half = 128 * KIB - len('{"id":"a","reason":"test:question","message":""}')
    one, other = question("a", message="m" * half), question("b", message="m" * half)
    play = running()
    play >> agent.interrupts("r1", one, other) << opened("a", "b")
    play = running()
    other["message"] += "m"
    play >> agent.interrupts("r1", one, other) << violated("TOO_LARGE")


def test_interrupt_ids() -> None:
    play = running()
    play >> agent.interrupts("r1", "i" * 512) << opened("i" * 512)
    play = running()
    play >> agent.interrupts("r1", "i" * 513) << violated("TOO_LARGE")


def test_schemas() -> None:
    def with_schemas(number: int) -> list[bool]:
        asked = [question(f"i{n}", responseSchema={"maximum": n}) for n in range(number)]
        play = running()
        play(agent.interrupts("r1", *asked, question("again", responseSchema={"maximum": 0})))
        return [one.cancel_only for one in pause_of(play).interrupts]

    assert with_schemas(16) == [False] * 17
    assert with_schemas(17) == [False] * 16 + [True, False]


def test_schemas_that_python_takes_for_equal_are_different() -> None:
    play = running(schemas=1)
    asked = [question(id_, responseSchema={"const": value}) for id_, value in (("a", 1), ("b", True))]
    play(agent.interrupts("r1", *asked))
    assert [one.cancel_only for one in pause_of(play).interrupts] == [False, True]


def test_payload() -> None:
    play = asking("a")
    play >> client.resumes("r2", a="x" * (64 * KIB - 1)) << refused("TOO_LARGE")
    play >> client.resumes("r2", a="x" * (64 * KIB - 2)) << admitted()


def test_entries() -> None:
    ids = [f"i{n}" for n in range(10)]
    bare = len('{"interruptId":"i0","status":"resolved","payload":""},') * 10 + 1
    room = 512 * KIB - bare
    answers = dict.fromkeys(ids, "x" * (room // 10))
    answers["i0"] += "x" * (room % 10)
    play = asking(*ids)
    play >> client.resumes("r2", {**answers, "i0": answers["i0"] + "x"}) << refused("TOO_LARGE")
    play >> client.resumes("r2", answers) << admitted()


def test_tool_arguments() -> None:
    bare = len('{"callId":"c","name":"pay","args":""}')
    for extra, kept in ((0, True), (1, False)):
        play = running()
        play(agent.calls("c", "pay"), agent.argues("c", "x" * (64 * KIB - bare + extra)))
        assert (run_of(play).calls[0].args is not None) is kept


def test_tool_arguments_together() -> None:
    play = running(tool_args=200)
    play(agent.calls("c", "pay"), agent.argues("c", "x" * 100), agent.calls("d", "mail"))
    play(agent.argues("d", "x" * 100))
    assert [(call.call_id, call.args is None) for call in run_of(play).calls] == [("c", False), ("d", True)]
    play(agent.argues("d", "x"))
    assert run_of(play).calls[1].args is None


def test_half_of_the_arguments_would_mislead_so_none_are_kept() -> None:
    play = running(tool_args=100)
    play(agent.calls("c", "pay"), agent.argues("c", '{"eur":'), agent.argues("c", "9" * 100))
    play(agent.argues("c", "}"))
    assert run_of(play).calls[0].args is None


def test_a_call_with_an_endless_name_is_not_kept_at_all() -> None:
    play = running(tool_args=100)
    play(agent.calls("c", "n" * 200))
    assert run_of(play).calls == ()


def test_tool_arguments_of_all_interrupts_about_one_call() -> None:
    """Sixty-four times the same 64 KiB would not fit in the state's record."""
    ids = [f"i{n}" for n in range(64)]
    play = running()
    play(agent.calls("c", "pay"), agent.argues("c", "x" * 60 * KIB))
    play >> agent.interrupts("r1", *[question(id_, toolCallId="c") for id_ in ids]) << opened(*ids)

    tools = [one.tool for one in pause_of(play).interrupts]
    assert tools[0] is not None
    assert tools[1] is not None
    assert tools[0].args is not None
    assert (tools[1].name, tools[1].args) == ("pay", None)


def test_an_interrupt_about_no_call_takes_none_of_that_room() -> None:
    bare = len('{"callId":"c","name":"pay","args":""}')
    play = running()
    play(agent.calls("c", "pay"), agent.argues("c", "x" * (64 * KIB - bare)))
    play >> agent.interrupts("r1", "a", question("b", toolCallId="c")) << opened("a", "b")
    tool = pause_of(play).interrupts[1].tool
    assert tool is not None
    assert tool.args is not None


def test_ended_runs_remembered() -> None:
    play = Playbook()
    for n in range(17):
        play(client.asks(f"r{n}"), sdk.finishes(f"r{n}"))
    assert [run.run_id for run in play.state().ended] == [f"r{n}" for n in range(16, 0, -1)]
    play >> sdk.finishes("r1") << ignored()
    play >> sdk.finishes("r0") << violated("STALE_RUN")


def test_gone_pauses_remembered() -> None:
    play = Playbook()
    play(agent.interrupts("r", "i0"))
    for n in range(1, 18):
        play(agent.interrupts("r", f"i{n}"))
    assert len(play.state().gone) == 16
    assert play.state().gone[0].ids == ("i16",)
    play >> client.resumes("x", i1=1).echoing(2) << refused("RESUME_CONFLICT")
    play >> client.resumes("x", i0=1).echoing(1) << refused("UNKNOWN_INTERRUPT_ID")


def test_memory() -> None:
    play = Playbook(limits=Limits(memory_ms=10_000))
    play(client.asks("r1"), sdk.finishes("r1"))
    play(client.asks("r2").but(after=9))
    assert len(play.state().ended) == 1


def test_open_pauses() -> None:
    play = Playbook(limits=Limits(open_pauses=2))
    play >> Agent(thread="u").interrupts("r1", "a") << opened("a")
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> Agent(thread="v").interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES")


def test_sealed_pauses_do_not_count() -> None:
    play = Playbook(limits=Limits(open_pauses=1))
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> Agent(thread="u").interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES")
    play(client.resumes("r2", a=1), sdk.finishes("r2"))
    play >> Agent(thread="v").interrupts("r1", "a") << opened("a")


def test_open_bytes() -> None:
    size = len('{"id":"a","reason":"test:question"}')
    play = Playbook(limits=Limits(open_bytes=size))
    play >> agent.interrupts("r1", "a") << opened("a")
    play = Playbook(limits=Limits(open_bytes=size - 1))
    play >> agent.interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES")


def test_open_bytes_of_others_count() -> None:
    size = len('{"id":"a","reason":"test:question"}')
    play = Playbook(limits=Limits(open_bytes=2 * size))
    play >> Agent(thread="u").interrupts("r1", "a") << opened("a")
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> Agent(thread="v").interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES")


def test_open_bytes_count_the_calls_that_are_kept_too() -> None:
    play = Playbook(limits=Limits(open_bytes=1000))
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.argues("c", "x" * 1000))
    play >> sdk.interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES")


@pytest.mark.parametrize("size", [2 * MIB, 2 * MIB - 100, 5 * MIB])
def test_dead_letters_fit_in_a_record(size: int) -> None:
    play = Playbook()
    verdict = play.verdict(agent.says(run=None).but(value="x" * size))
    (letter,) = verdict.emits
    assert letter.value is None
    assert dict(letter.headers)["holdshort-dead-letter-cut"] == str(size + 1).encode()


def test_a_dead_letter_that_fits_is_whole() -> None:
    play = Playbook()
    size = 2 * MIB - 8 * KIB
    verdict = play.verdict(agent.says(run="r1").but(value="x" * size, headers={"mine": "1"}))
    (letter,) = verdict.emits
    assert letter.value == b"x" * size
    assert dict(letter.headers)["mine"] == b"1"


def test_a_dead_letters_own_headers_cannot_be_made_to_grow() -> None:
    play = Playbook()
    attempts = {"holdshort-dead-letter-attempts": "9" * 3 * MIB, "holdshort-dead-letter-code": "x" * MIB}
    verdict = play.verdict(agent.says(run="r1").but(value="{", headers=attempts))
    headers = dict(verdict.emits[0].headers)
    assert headers["holdshort-dead-letter-attempts"] == b"0"
    assert headers["holdshort-dead-letter-code"] == b"MALFORMED_EVENT"


def test_attempts_are_counted_on() -> None:
    play = Playbook()
    verdict = play.verdict(agent.says().but(value="{", headers={"holdshort-dead-letter-attempts": "3"}))
    assert dict(verdict.emits[0].headers)["holdshort-dead-letter-attempts"] == b"3"


def worst() -> Playbook:
    """As much as an agent can make the gate keep in one thread: gone pauses, a lost run and one in flight."""
    run, ids = "\x01" * 512, [f"{n:02}" + "\x01" * 85 for n in range(64)]
    play = Playbook(agents={"default": AgentRules(legacy_interrupts=True)})
    play(client.asks(run), sdk.calls("c", "pay", run), sdk.argues("c", "\x01" * 10 * KIB, run))
    for n in range(18):
        asked = [question(id_, toolCallId="c", message="m" * 2900, n=n) for id_ in ids]
        play(sdk.interrupts(run, *asked))
    for answering in ("r2", "r3"):
        play(client.resumes(answering, dict.fromkeys(ids, True)))
        play(sdk.pauses_legacy("x" * 127 * KIB, answering))
        if answering == "r2":
            play >> later(minutes=16) << lost()
    return play


def test_the_largest_state_fits_in_a_record() -> None:
    state = worst().state()
    assert len(state.gone) == 16
    assert state.run is not None
    assert state.ended[0].lost is not None
    assert MIB < len(msgspec.json.encode(state)) < 2 * MIB - 64 * KIB


def test_the_largest_question_can_be_shown_refused_and_answered() -> None:
    """The playbook fails where an emit does not fit in a record."""
    ids = [f"i{n}" for n in range(64)]
    play = running()
    asked = [question(id_, message="m" * 3900) for id_ in ids]
    play >> agent.interrupts("r1", *asked).padded(MIB) << opened(*ids)
    play >> client.asks("r2") << refused("PENDING_INTERRUPTS")
    play >> client.resumes("r3", dict.fromkeys(ids, "x" * 8000)) << admitted()
    play >> sdk.finishes("r3") << settled(1)


def test_a_pause_counts_the_same_whether_it_was_restored_or_not() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.argues("c", '{"a":"é"}'), sdk.calls("d", "mail"))
    play >> sdk.interrupts("r1", question("a", toolCallId="c"), "b") << opened("a", "b")
    head = decode_head(encode_pending("t", play.state(), None)).pause
    assert head is not None
    assert head.size == pause_of(play).size
