"""What an answer is judged by is read from a descriptor's bytes alone, and is what the whole of it says."""

import json
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdshort.contract import schemas
from holdshort.contract.descriptors import expires_at, parsed_descriptor
from holdshort.contract.resume import Entry, Work, payload_problems
from holdshort.contract.state import Interrupt
from holdshort.contract.times import read_time

NAMES = st.sampled_from(["expiresAt", "responseSchema", "id", "metadata", "expires\\u0041t"])
SCHEMAS = st.sampled_from([None, {"type": "boolean"}, {"type": "string"}, {"type": "nothing"}, {}])
MEMBERS = st.sampled_from(
    [None, 7, "2030-01-01T00:00:00Z", "2031-01-01", "never", {"expiresAt": "2032-01-01"}]
)


def interrupt_of(pairs: list[tuple[str, Any]]) -> Interrupt:
    """As an agent may write it: names escaped, or twice."""
    members = ",".join(f'"{name}": {json.dumps(value)}' for name, value in pairs)
    return Interrupt(id="a", descriptor=msgspec.Raw(f"{{{members}}}".encode()))


@given(st.lists(st.tuples(NAMES, MEMBERS), max_size=4))
@example([("expiresAt", "2030-01-01"), ("expires\\u0041t", "2031-01-01")])
def test_the_expiry_is_that_of_the_whole_descriptor(pairs: list[tuple[str, Any]]) -> None:
    interrupt = interrupt_of(pairs)
    whole = orjson.loads(bytes(interrupt.descriptor))
    assert expires_at(interrupt) == read_time(whole.get("expiresAt"))


@given(
    st.lists(st.tuples(st.just("responseSchema"), SCHEMAS), max_size=2), st.sampled_from([True, "x", None])
)
def test_the_schema_is_that_of_the_whole_descriptor(pairs: list[tuple[str, Any]], payload: Any) -> None:
    interrupt = interrupt_of(pairs)
    schema = orjson.loads(bytes(interrupt.descriptor)).get("responseSchema")
    told = payload_problems(Entry("a", True, payload, {}), interrupt, Work(1_000), check_unusable=True)
    if schema is None:
        assert told == []
    elif (admission := schemas.admit(schema)).refused:
        assert [problem.message for problem in told] == ["this interrupt can only be cancelled"]
    else:
        assert len(told) == len(schemas.misfits(admission, payload))


@pytest.mark.parametrize(
    "schema", [b'{"type":"boolean"}', b'{ "type" : "boolean" }', b'{"type":"no"}', b"[]"]
)
def test_a_written_schema_is_judged_as_a_parsed_one(schema: bytes) -> None:
    written, parsed = schemas.admit_written(schema), schemas.admit(orjson.loads(schema))
    assert (written.refused, written.cost) == (parsed.refused, parsed.cost)


def test_a_schema_that_is_too_large_only_by_its_blanks_is_no_other() -> None:
    blanks = b" " * schemas.MAX_BYTES
    assert schemas.admit_written(b'{"type":' + blanks + b'"boolean"}').refused is None


def test_a_descriptor_is_parsed_once_while_it_is_asked_for() -> None:
    assert parsed_descriptor(b'{"id":"a"}') is parsed_descriptor(b'{"id":"a"}')
    long = orjson.dumps({"id": "a", "message": "x" * 20_000})
    assert parsed_descriptor(long) == parsed_descriptor(long)
    assert parsed_descriptor(long) is not parsed_descriptor(long)
