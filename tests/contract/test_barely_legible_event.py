"""JSON that is not strict: an agent's word is passed on as it came, and never taken for what it is not."""

from typing import Any

import pytest
from tests.playbook import Playbook, agent, client

from holdshort.contract.rules import AgentRules
from holdshort.contract.verdicts import Verdict

HALF = '"cut \\ud83d"'  # as JavaScript writes half a surrogate pair
DEEP = "[" * 400 + "]" * 400
PARTS = {"half a pair": HALF, "no float": "1e400", "deep": DEEP}


def verdict_on(text: str) -> Verdict:
    """Of a run that has called a tool, and says this next."""
    play = Playbook()(client.asks("r1"), agent.starts("r1"), agent.calls("c", "pay"), agent.argues("c", "{}"))
    return play.verdict(agent.says().but(value=text))


@pytest.mark.parametrize("part", [HALF, "1e400"])
def test_a_word_is_passed_on_as_it_came(part: str) -> None:
    value = f'{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":{part}}}'

    verdict = verdict_on(value)

    assert (verdict.kind, verdict.emits[0].value) == ("passed", value.encode())


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_a_question_with_one_is_malformed_and_not_a_success(part: str) -> None:
    asked = f'{{"id":"a","reason":"x","metadata":{{"m":{part}}}}}'
    outcome = f'{{"type":"interrupt","interrupts":[{asked}]}}'

    verdict = verdict_on(f'{{"type":"RUN_FINISHED","threadId":"t","runId":"r1","outcome":{outcome}}}')

    assert (verdict.kind, verdict.code) == ("violated", "INVALID_OUTCOME")


def test_a_success_with_one_is_a_success() -> None:
    value = f'{{"type":"RUN_FINISHED","threadId":"t","runId":"r1","result":{HALF}}}'

    verdict = verdict_on(value)

    assert (verdict.kind, verdict.emits[-1].value) == ("passed", value.encode())


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_a_question_beside_one_is_malformed_too(part: str) -> None:
    asked = '"outcome":{"type":"interrupt","interrupts":[{"id":"a","reason":"x"}]}'
    value = f'{{"type":"RUN_FINISHED","threadId":"t","runId":"r1","x":{part},{asked}}}'

    assert verdict_on(value).code == "INVALID_OUTCOME"


@pytest.mark.parametrize("part", [HALF, "1e400"])
def test_a_legacy_question_with_one_is_malformed_too(part: str) -> None:
    play = Playbook(agents={"default": AgentRules(legacy_interrupts=True)})
    play(client.asks("r1"), agent.starts("r1"))
    line = {"topic": "agent-events.default", "key": "t", "headers": {"holdshort-run": "r1"}}

    play.transcript.play({**line, "value": f'{{"type":"CUSTOM","name":"on_interrupt","value":{part}}}'})
    (ended,) = play.transcript.play({**line, "value": {"type": "RUN_FINISHED", "runId": "r1"}})

    assert (ended["verdict"], ended["code"]) == ("violated", "TOO_LARGE")


def test_arguments_with_one_are_not_shown_in_part() -> None:
    value = f'{{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":{HALF}}}'

    (change,) = verdict_on(value).changes
    call: Any = change.run.calls[0]  # type: ignore[union-attr]

    assert (call.name, call.args) == ("pay", None)


@pytest.mark.parametrize(
    "text", ["NaN", '{"type":"X","n":NaN}', '{"type":"X","n":Infinity}', '{"type":"X"', "\ufeff{}"]
)
def test_what_is_no_json_is_unreadable(text: str) -> None:

    assert verdict_on(text).kind == "unreadable"
