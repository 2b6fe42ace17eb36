"""Contract 4: the registry of codes."""

import re

import pytest

from holdshort.contract.codes import Code

NAMES = [
    "MALFORMED_INPUT",
    "MALFORMED_EVENT",
    "MISKEYED_RECORD",
    "TOO_LARGE",
    "INVALID_RESUME",
    "STALE_BINDING",
    "ABANDONED",
    "RUN_ID_IN_USE",
    "RESUME_CONFLICT",
    "THREAD_BUSY",
    "PENDING_INTERRUPTS",
    "CONFLICTING_CHANNELS",
    "UNKNOWN_AGENT",
    "UNKNOWN_INTERRUPT_ID",
    "DUPLICATE_INTERRUPT_ID",
    "RESERVED_FOR_TEAM",
    "PARTIAL_RESUME",
    "INTERRUPT_EXPIRED",
    "INVALID_PAYLOAD",
    "SCHEMA_REFUSED",
    "RUN_LOST",
    "INVALID_OUTCOME",
    "FOREIGN_RUN",
    "STALE_RUN",
    "TOO_MANY_PAUSES",
]
# The closed vocabulary of TanStack AI 0.58.0; its client rejects anything else.
ITEMS = {
    "invalid-payload",
    "invalid-edited-args",
    "invalid-tool-output",
    "invalid-response-schema",
    "unknown-interrupt",
    "expired",
    "stale",
    "conflict",
    "legacy-unsupported",
}
BATCHES = {
    "incomplete-batch",
    "item-validation-failed",
    "stale",
    "expired",
    "conflict",
    "transport",
    "server",
    "protocol",
    "invalid-response-schema",
}


def test_the_codes_are_those_that_clients_and_alerts_depend_on() -> None:
    assert [code.name for code in Code] == NAMES


@pytest.mark.parametrize("code", list(Code))
def test_a_code_is_its_own_name_on_the_wire(code: Code) -> None:
    assert code.value == code.name == str(code)


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_a_sentence_for_people_and_says_whether_a_retry_can_succeed(code: Code) -> None:
    assert re.fullmatch(r"[A-Z][^\n]*[^.\s]\.", code.sentence)
    assert code.retry


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_told_in_tanstacks_closed_vocabulary(code: Code) -> None:
    assert code.tanstack_item in ITEMS
    assert code.tanstack_batch in BATCHES


def test_sentences_are_as_different_as_the_codes() -> None:
    assert len({code.sentence for code in Code}) == len(Code)
