"""Contract 3.2: what the client sees."""

import hashlib
from typing import Any

import orjson
import pytest
from tests.expected import ignored, lost, opened, passed, refused, replayed
from tests.playbook import (
    Agent,
    Client,
    Playbook,
    Said,
    agent,
    cancelled,
    client,
    later,
    pause_of,
    question,
    resolved,
    sdk,
)

from holdshort.contract.codes import Code
from holdshort.contract.messages import PROTOCOL_VERSION
from holdshort.contract.routes import Route, RouteTable
from holdshort.contract.rules import Limits

SCHEMA = {"type": "boolean"}


def open_ab() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", responseSchema=SCHEMA), "b") << opened("a", "b")
    return play


def interrupts(play: Playbook) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = play.events()[-1]["outcome"]["interrupts"]
    return found


# -- refused ------------------------------------------------------------------------------------------------


def test_a_refusal_is_run_started_and_run_error_under_the_callers_run_id() -> None:
    play = open_ab()
    play >> client.asks("r2") << refused("PENDING_INTERRUPTS", under=["r2"])

    started, error = play.events()
    assert started == {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r2",
        "protocolVersion": PROTOCOL_VERSION,
    }
    assert set(error) == {"type", "message", "code", "metadata"}
    assert error["message"] == Code.PENDING_INTERRUPTS.sentence
    assert [emit["headers"].get("holdshort-code") for emit in play.got["emits"]] == [
        None,
        "PENDING_INTERRUPTS",
    ]
    assert all(emit["headers"]["content-type"] == "application/json" for emit in play.got["emits"])


def test_its_metadata_say_generation_whether_to_retry_what_is_wrong_and_what_is_open() -> None:
    play = open_ab()
    shown_then = interrupts(play)
    play >> client.resumes("r2", a=1) << refused("PARTIAL_RESUME")
    assert play.error() == {
        "generation": play.nth(1),
        "retryable": False,
        "problems": [{"code": "PARTIAL_RESUME", "interruptId": "b", "path": None, "message": ""}],
        "open": shown_then,
    }


def test_before_the_first_pause_there_is_no_generation() -> None:
    play = Playbook()
    play >> client.resumes("r1", a=1) << refused("UNKNOWN_INTERRUPT_ID")
    assert play.error()["generation"] is None
    assert play.error()["open"] == []


def refusals() -> list[tuple[str, Said]]:
    return [
        ("DUPLICATE_INTERRUPT_ID", client.resumes("r2").adding(resume=[cancelled.entry("a")] * 2)),
        ("UNKNOWN_INTERRUPT_ID", client.resumes("r2", z=1)),
        ("STALE_BINDING", client.resumes("r2", a=1, b=1).echoing(9)),
        ("PARTIAL_RESUME", client.resumes("r2", a=1)),
        ("INVALID_PAYLOAD", client.resumes("r2", a="no", b=1)),
        ("INVALID_RESUME", client.resumes("hs-2", a=1, b=1)),
        (
            "CONFLICTING_CHANNELS",
            client.resumes("r2", a=1, b=1).adding(forwardedProps={"command": {"resume": 1}}),
        ),
    ]


@pytest.mark.parametrize(("code", "said"), refusals(), ids=lambda one: one if isinstance(one, str) else "")
def test_no_refusal_of_a_record_with_a_resume_is_retryable(code: str, said: Said) -> None:
    play = open_ab()
    play >> said << refused(code)
    assert play.error()["retryable"] is False
    assert len(play.error()["open"]) == 2
    errors = play.events()[1]["metadata"]["tanstack"]["interruptErrors"]
    assert not any(error["retryable"] for error in errors)


def test_problems_are_told_in_tanstacks_vocabulary_too() -> None:
    play = open_ab()
    play >> client.resumes("r2", a="no", b=1).adding(parentRunId="r1") << refused("INVALID_PAYLOAD")
    common = {
        "threadId": "t",
        "interruptedRunId": "r1",
        "generation": play.nth(1),
        "source": "server",
        "retryable": False,
    }
    assert play.events()[1]["metadata"]["tanstack"]["interruptErrors"] == [
        {
            **common,
            "scope": "item",
            "interruptId": "a",
            "code": "invalid-payload",
            "path": [],
            "message": 'must be of type "boolean"',
        },
        {
            **common,
            "scope": "batch",
            "interruptIds": ["a", "b"],
            "code": "item-validation-failed",
            "message": Code.INVALID_PAYLOAD.sentence,
        },
    ]


def test_only_ids_that_were_sent_are_told_there_for_its_client_drops_the_list_otherwise() -> None:
    play = open_ab()
    play >> client.resumes("r2", a=True) << refused("PARTIAL_RESUME", about=["b"])
    (batch,) = play.events()[1]["metadata"]["tanstack"]["interruptErrors"]
    assert batch["interruptIds"] == ["a"]
    assert batch["code"] == "incomplete-batch"


def test_an_input_without_a_resume_is_not_told_there() -> None:
    play = open_ab()
    play >> client.asks("r2") << refused("PENDING_INTERRUPTS")
    assert "tanstack" not in play.events()[1]["metadata"]


def test_a_parent_run_id_that_is_no_id_is_not_repeated() -> None:
    for parent in (5, "", "p" * 1000, {"x": 1}):
        play = open_ab()
        play >> client.resumes("r2", z=1).adding(parentRunId=parent) << refused("UNKNOWN_INTERRUPT_ID")
        (item, _) = play.events()[1]["metadata"]["tanstack"]["interruptErrors"]
        assert item["interruptedRunId"] is None


def test_endless_answers_are_refused_in_an_event_that_can_be_written() -> None:
    """The playbook fails where an emit does not fit in a record."""
    play = Playbook()
    play(agent.interrupts("r1", *[question(f"i{n}", message="m" * 3900) for n in range(64)]))
    for said, code in (
        (client.resumes("r2", {f"z{n}": "\x01" * 30 for n in range(2000)}), "UNKNOWN_INTERRUPT_ID"),
        (client.asks("r2", resume=[1] * 250_000), "INVALID_RESUME"),
        (client.resumes("r2", z=1).adding(parentRunId="p" * 900_000), "UNKNOWN_INTERRUPT_ID"),
        (client.resumes("r" * 512, {"\x01" * 500 + str(n): 1 for n in range(64)}), "UNKNOWN_INTERRUPT_ID"),
    ):
        play >> said << refused(code)


def test_where_both_lists_of_problems_would_not_fit_ours_is_told_alone() -> None:
    """The longest ids there can be, each character of which JSON writes as six."""
    thread, run = "\x01" * 512, "\x02" * 512
    limits = Limits(descriptors=768 * 1024)
    play = Playbook(limits=limits)
    asked = [question(f"{n:02}" + "\x01" * 84, message="m" * 11_000) for n in range(64)]
    play(Agent(thread=thread).interrupts(run, *asked))

    sent = {f"{n:03}" + "\x01" * 509: 1 for n in range(64)}
    said = Client(thread=thread).resumes("\x03" * 512, sent).adding(parentRunId="\x04" * 512)
    verdict = play.verdict(said)
    metadata = orjson.loads(verdict.emits[-1].value or b"")["metadata"]
    assert len(verdict.emits[-1].value or b"") < 2 * 1024 * 1024 - 64 * 1024
    assert len(metadata["holdshort"]["problems"]) == len(metadata["holdshort"]["open"]) == 64
    assert "tanstack" not in metadata


def test_as_many_problems_are_told_as_a_pause_has_interrupts() -> None:
    play = open_ab()
    play >> client.resumes("r2", {f"z{n}": 1 for n in range(64)}) << refused("UNKNOWN_INTERRUPT_ID")
    assert len(play.got["problems"]) == len(play.error()["problems"]) == 64
    play >> client.resumes("r2", {f"z{n}": 1 for n in range(65)}) << refused("UNKNOWN_INTERRUPT_ID")
    assert len(play.got["problems"]) == len(play.error()["problems"]) == 64


# -- not shown ----------------------------------------------------------------------------------------------


def test_nothing_is_shown_under_the_id_of_the_run_in_flight_whatever_its_row() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    for said in (
        client.asks("r1", x=1),
        client.asks("r1", resume="x"),
        client.resumes("r1", a=1),
        client.asks("r1").padded(1024 * 1024 + 1),
        client.asks("r1").but(value='{"threadId":"t","runId":"r1","x":NaN}'),
    ):
        play >> said
        assert play.unchecked[0]["emitted"] == ["dead-letters"]
        play.unchecked.clear()


# -- opened -------------------------------------------------------------------------------------------------


def test_each_interrupt_is_bound_to_its_pause() -> None:
    play = open_ab()
    first, second = interrupts(play)
    binding = {"v": 1, "generation": play.nth(1), "interruptedRunId": "r1", "openedAt": play.at}
    assert first["metadata"]["holdshort:binding"].pop("responseSchemaHash").startswith("sha256:")
    assert first["metadata"]["holdshort:binding"] == second["metadata"]["holdshort:binding"] == binding


def test_a_schema_is_named_by_the_hash_of_its_canonical_form() -> None:
    play = Playbook()
    schema = {"type": "object", "properties": {"b": {"maximum": 1.0}, "a": {}}}
    play(agent.interrupts("r1", question("a", responseSchema=schema)))
    (
        play
        >> agent.interrupts("r1", question("a", responseSchema=schema))
        << ignored(shown=["RUN_STARTED", "RUN_FINISHED"])
    )
    form = b'{"properties":{"a":{},"b":{"maximum":1}},"type":"object"}'
    (interrupt,) = interrupts(play)
    expected = "sha256:" + hashlib.sha256(form).hexdigest()
    assert interrupt["metadata"]["holdshort:binding"]["responseSchemaHash"] == expected
    assert interrupt["metadata"]["tanstack:interruptBinding"]["responseSchemaHash"] == expected


def test_a_tanstack_client_gets_a_generic_binding_for_it_leaves_unbound_items_out() -> None:
    play = open_ab()
    assert interrupts(play)[1]["metadata"]["tanstack:interruptBinding"] == {
        "v": 1,
        "kind": "generic",
        "interruptId": "b",
        "interruptedRunId": "r1",
        "generation": play.nth(1),
    }


def test_an_agents_own_tanstack_binding_keeps_everything_but_run_and_generation() -> None:
    own = {"v": 1, "kind": "tool-approval", "toolName": "pay", "generation": 0, "interruptedRunId": "x"}
    play = Playbook()
    (
        play
        >> agent.interrupts("r1", question("a", metadata={"tanstack:interruptBinding": own, "mine": 1.0}))
        << (opened("a"))
    )
    metadata = interrupts(play)[0]["metadata"]
    assert metadata["tanstack:interruptBinding"] == {
        **own,
        "interruptedRunId": "r1",
        "generation": play.nth(1),
    }
    assert metadata["mine"] == 1.0


@pytest.mark.parametrize("own", [None, "x", 1, []])
def test_a_tanstack_binding_that_is_no_object_is_replaced(own: Any) -> None:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", metadata={"tanstack:interruptBinding": own})) << opened("a")
    assert interrupts(play)[0]["metadata"]["tanstack:interruptBinding"]["kind"] == "generic"


def test_a_reserved_pause_is_not_for_tanstack_clients_to_answer() -> None:
    play = Playbook(routes=RouteTable([Route(name="r", team="x", reason="test:question")]))
    play >> agent.interrupts("r1", "a") << opened("a")
    assert set(interrupts(play)[0]["metadata"]) == {"holdshort:binding"}


def test_an_agent_cannot_forge_our_binding() -> None:
    play = Playbook()
    forged = question("a", metadata={"holdshort:binding": {"generation": 5, "x": 1}})
    play >> agent.interrupts("r1", forged) << opened("a")
    binding = interrupts(play)[0]["metadata"]["holdshort:binding"]
    assert binding["generation"] == play.nth(1)
    assert "x" not in binding


def test_nothing_else_is_touched() -> None:
    play = Playbook()
    descriptor = '{"id":"a","reason":"x","n":1.0e2,"u":"\\u00e9","metadata":{"m":1.50},"z":[1e-7]}'
    outcome = '{"z":1.10,"interrupts":[' + descriptor + '],"type":"interrupt"}'
    raw = '{"usage":{"n":1E2},"type":"RUN_FINISHED","runId":"r1","outcome":' + outcome + ',"threadId":"t"}'
    verdict = play.verdict(agent.finishes("r1").but(value=raw))

    shown = (verdict.emits[1].value or b"").decode()
    for kept in ('"n":1.0e2', '"u":"\\u00e9"', '"m":1.50', '"z":[1e-7]', '"z":1.10', '{"n":1E2}'):
        assert kept in shown


@pytest.mark.parametrize("metadata", ["x", 1, [], True])
def test_metadata_that_is_not_agui_is_left_alone(metadata: Any) -> None:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", metadata=metadata)) << opened("a")
    assert interrupts(play)[0]["metadata"] == metadata


def test_null_metadata_are_none() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", metadata=None)) << opened("a")
    assert "holdshort:binding" in interrupts(play)[0]["metadata"]


# -- whose run it is ----------------------------------------------------------------------------------------


def test_every_event_shown_says_which_run_the_gate_took_it_for() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.starts("r1").adding(runId="x") << passed(under=["r1"])
    play >> sdk.says(run="r1").adding(runId="y") << passed(under=["r1"])
    play >> sdk.interrupts("r1", "a").adding(runId="z") << opened("a", under=["r1"])
    assert play.events()[0]["runId"] == "z"


def test_the_first_event_after_a_run_was_lost_is_preceded_by_a_run_started_of_ours() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> later(minutes=16) << lost(shown=["RUN_ERROR"])
    play >> sdk.finishes("r1") << passed(shown=["RUN_STARTED", "RUN_FINISHED"])


# -- messages -----------------------------------------------------------------------------------------------


def test_messages_never_contain_a_payload_a_message_or_an_argument() -> None:
    play = open_ab()
    secret = "my-secret"
    for said in (
        client.resumes("r2", a=secret, b={"x": secret}),
        client.resumes("r2", a=resolved(True, mine=secret), b=secret, c=secret),
        client.asks("r2", messages=[secret], state=secret),
        client.asks("r2", resume=[{"interruptId": "a", "status": secret}]),
        client.asks("r2", forwardedProps={"command": {"resume": secret}}),
    ):
        play >> said
        assert secret not in str(play.unchecked[0]["emits"])
        play.unchecked.clear()


# -- replayed -----------------------------------------------------------------------------------------------


def test_a_replay_shows_the_thread_as_it_is_now() -> None:
    play = open_ab()
    shown_then = interrupts(play)
    play(client.resumes("r2", a=True, b=1), sdk.fails("r2"))
    play >> client.resumes("r2", a=True, b=1).but(at=play.at - 1) << replayed(open=["a", "b"])
    assert interrupts(play) == shown_then
    assert pause_of(play).status == "open"
