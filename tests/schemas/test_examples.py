"""The examples: the schema takes the valid ones and refuses the others, and so does the code that reads."""

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson
import pytest
from tests.schemas.both import TEAMS, rules
from tests.schemas.catalogue import ALL, CONFIG, RECORDS, Example, called, examples

from holdshort.contract.canon import canonical, sha256
from holdshort.contract.pending import UpgradeFirstError, decode_head, decode_pending, encode_pending
from holdshort.contract.state import Interrupt, ToolCall
from holdshort.router.decider import RouterDecider
from holdshort.router.gathering import encode_gathering
from holdshort.router.records import seen_digest
from holdshort.settings import MendSettingsError, load_config
from holdshort.stream.decider import Context
from holdshort.stream.errors import Halt
from holdshort.stream.positions import decode_positions, encode_positions
from holdshort.stream.records import Record


class RefusedError(Exception):
    """The code does not take the record."""


def read_pending(example: Example) -> bytes:
    try:
        state = decode_pending(example.raw)
        head = decode_head(example.raw)
    except UpgradeFirstError as error:
        raise RefusedError from error
    return encode_pending(example.value["threadId"], state, head.due)


def read_gathering(example: Example) -> bytes:
    try:
        return encode_gathering(RouterDecider(rules(), TEAMS).decode(example.raw))
    except Halt as halt:
        raise RefusedError from halt


def read_positions(example: Example) -> bytes:
    try:
        return encode_positions(decode_positions(example.raw))
    except Halt as halt:
        raise RefusedError from halt


def read_decision(example: Example) -> bytes:
    """The receipt of the decision; one that cannot be judged at all is refused."""
    key = str(example.value.get("threadId", "order-4711")).encode()
    record = Record("decisions.payments", 0, 7, key, example.raw, (), 0)
    step = RouterDecider(rules(), TEAMS).decide(None, record, Context(0, 0, 0, {}, {"pending": None}))
    written = {output.topic: output.value for output in step.outputs}
    receipt = written.get("receipts.payments")
    if receipt is None or orjson.loads(receipt)["code"] is not None:
        raise RefusedError(*written)
    return receipt


def read_config(example: Example) -> None:
    try:
        load_config(example.path)
    except MendSettingsError as error:
        raise RefusedError from error


# Approvals, receipts, audit and dead letters are read by others than this program.
READERS: Final[dict[str, Callable[[Example], bytes | None]]] = {
    "pending.v1": read_pending,
    "gathering.v1": read_gathering,
    "positions.v1": read_positions,
    "decision.v1": read_decision,
    "config": read_config,
}
LATER_MEMBERS: Final = "a member that a later version of this form adds must not stop an older reader"
OWN_WRITING: Final = "the reader trusts what only we write, and needs no second judgement of it"
MORE_LENIENT: Final = {
    ("pending.v1", "a-code-nobody-knows"): LATER_MEMBERS,
    ("pending.v1", "a-digest-cut-short"): OWN_WRITING,
    ("pending.v1", "a-pause-without-the-end-of-inputs"): OWN_WRITING,
    ("pending.v1", "an-open-pause-without-questions"): OWN_WRITING,
    ("pending.v1", "an-unknown-member"): LATER_MEMBERS,
    ("pending.v1", "resuming-without-a-run"): OWN_WRITING,
    ("gathering.v1", "an-unknown-member"): LATER_MEMBERS,
    ("gathering.v1", "held-for-a-reason-nobody-knows"): LATER_MEMBERS,
    ("positions.v1", "a-partition-called-by-a-name"): OWN_WRITING,
    ("positions.v1", "a-place-without-its-time"): "no time known is as good as the beginning of time",
    ("positions.v1", "an-unknown-member"): LATER_MEMBERS,
    ("decision.v1", "an-unknown-member"): "teams may keep members of their own beside ours",
    ("decision.v1", "decided-at-as-a-number"): "handed on as it came, never judged by",
}
# What JSON Schema cannot say, or the generated schema does not: the code is the stricter one.
STRICTER_CODE: Final = {
    "a-quorum-that-nobody-proves": "what several places say together",
    "a-route-of-both-kinds": "one member of two",
    "a-star-in-the-middle": "the form of a reason",
    "a-team-nobody-listed": "one name in two places",
}


of_ours = [one for one in examples("valid") if one.schema != CONFIG]
broken = [one for one in examples("invalid") if one.schema != CONFIG]
read_by_us = [one for one in examples("valid") if one.schema in READERS]
refused_by_us = [
    one for one in examples("invalid") if one.schema in READERS and (one.schema, one.name) not in MORE_LENIENT
]


# -- schemas ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("kind", ["valid", "invalid"])
def test_a_schema_has_at_least_three_examples_named_for_their_point(name: str, kind: str) -> None:
    found = ALL[name].examples(kind)

    assert len(found) >= 3
    assert all(re.fullmatch(r"[a-z0-9-]+", one.name) for one in found)


@pytest.mark.parametrize("example", of_ours, ids=called)
def test_a_valid_example_fits(example: Example) -> None:
    assert ALL[example.schema].problems(example.value) == []


@pytest.mark.parametrize("example", broken, ids=called)
def test_an_invalid_example_does_not_fit(example: Example) -> None:
    assert ALL[example.schema].problems(example.value) != []


# -- the code that reads them -------------------------------------------------------------------------------


@pytest.mark.parametrize("example", read_by_us, ids=called)
def test_a_valid_example_is_read(example: Example) -> None:
    READERS[example.schema](example)


@pytest.mark.parametrize("example", refused_by_us, ids=called)
def test_an_invalid_example_is_refused_when_read(example: Example) -> None:
    with pytest.raises(RefusedError):
        READERS[example.schema](example)


@pytest.mark.parametrize(
    "example", [one for one in broken if (one.schema, one.name) in MORE_LENIENT], ids=called
)
def test_the_code_is_more_lenient_where_that_is_meant(example: Example) -> None:
    READERS[example.schema](example)


def test_nothing_is_excused_that_is_not_there() -> None:
    there = {(one.schema, one.name) for one in examples("invalid")}

    assert MORE_LENIENT.keys() <= there


@pytest.mark.parametrize(
    "example", [one for one in read_by_us if one.schema not in ("decision.v1", CONFIG)], ids=called
)
def test_what_is_read_is_written_again_alike(example: Example) -> None:
    written = READERS[example.schema](example)

    assert written is not None
    assert ALL[example.schema].problems(orjson.loads(written)) == []
    assert orjson.loads(written) == _without_defaults(example)


def _without_defaults(example: Example) -> Any:
    """The example as we write it: the one that writes defaults out is there to show that others may."""
    if example.name != "defaults-written-out":
        return example.value
    return {"v": 1, "threadId": example.value["threadId"]}


@pytest.mark.parametrize("example", examples("valid", "decision.v1"), ids=called)
def test_the_receipt_of_a_valid_decision_fits_its_schema(example: Example) -> None:
    receipt = read_decision(example)

    assert ALL["receipt.v1"].problems(orjson.loads(receipt)) == []


# -- what examples say of themselves ------------------------------------------------------------------------


@pytest.mark.parametrize("example", examples("valid", "approval.v1"), ids=called)
def test_an_approval_is_named_as_its_schema_says(example: Example) -> None:
    value = example.value
    name = canonical([value["threadId"], value["generation"], value["interrupt"]["id"]])

    assert name is not None
    digest = base64.urlsafe_b64encode(hashlib.sha256(name).digest())
    assert value["approvalId"] == digest.decode()[:22]


@pytest.mark.parametrize("example", examples("valid", "approval.v1"), ids=called)
def test_the_digest_of_an_approval_is_that_of_what_it_shows(example: Example) -> None:
    value, tool = example.value, example.value["tool"]
    interrupt = Interrupt(
        id=value["interrupt"]["id"],
        descriptor=msgspec.Raw(orjson.dumps(value["interrupt"])),
        tool=ToolCall(tool["callId"], tool["name"], tool["args"]) if tool else None,
    )

    assert value["digest"] == seen_digest(interrupt)


def test_the_first_two_examples_of_the_audit_are_a_chain() -> None:
    first, second = (
        next(one.value for one in examples("valid", "audit.v1") if one.name == name)
        for name in ("the-first-of-a-chain", "a-pause-opened")
    )

    assert second["previous"] == sha256(msgspec.json.encode(first))


# -- the configuration file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("example", examples("valid", CONFIG), ids=called)
def test_a_valid_configuration_fits_the_published_schema(example: Example) -> None:
    assert ALL[CONFIG].problems(example.value) == []


@pytest.mark.parametrize("example", examples("invalid", CONFIG), ids=called)
def test_an_invalid_configuration_does_not_fit_where_a_schema_can_tell(example: Example) -> None:
    found = ALL[CONFIG].problems(example.value)

    assert found != [] or example.name in STRICTER_CODE


def test_every_record_is_read_here_or_by_others() -> None:
    assert set(RECORDS) - READERS.keys() == {"approval.v1", "audit.v1", "dead-letter.v1", "receipt.v1"}
