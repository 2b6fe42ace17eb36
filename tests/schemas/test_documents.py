"""The schema files: named, described, closed where a record is ours, of one mind with the registries."""

from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from tests.schemas.catalogue import ALL, RECORDS, SCHEMAS, Schema, subschemas

from holdshort.contract.audit import ATTEMPTED
from holdshort.contract.codes import Code
from holdshort.contract.verdicts import Kind
from holdshort.gatekeeper.decider import QUIET
from holdshort.router.codes import DecisionCode
from holdshort.router.decider import HELD

# Objects that others write, AG-UI's above all, and a place where one record stands inside another.
OPEN: Final = {
    "approval.v1": {"/properties/interrupt", "/properties/interrupt/properties/responseSchema"},
    "audit.v1": {"/properties/digests"},  # closed by service, in /$defs/gate and /$defs/router
    "decision.v1": {
        "",
        "/$defs/bare",
        "/$defs/decision/properties/resume/items",
        "/$defs/decision/properties/resume/items/properties/metadata",
        "/$defs/resume/items",
        "/$defs/resume/items/properties/metadata",
    },
    "gathering.v1": {
        "/properties/receipts/items/properties/value",
        "/$defs/answer/properties/metadata",
    },
    "pending.v1": {
        "/$defs/interrupt/properties/descriptor",
        "/$defs/interrupt/properties/descriptor/properties/responseSchema",
    },
}

records = pytest.mark.parametrize("schema", [ALL[name] for name in RECORDS], ids=lambda schema: schema.name)


def test_there_is_a_schema_for_every_record_of_ours() -> None:
    assert set(RECORDS) == {
        "approval.v1",
        "audit.v1",
        "dead-letter.v1",
        "decision.v1",
        "gathering.v1",
        "pending.v1",
        "positions.v1",
        "receipt.v1",
    }


@records
def test_a_schema_is_2020_12_and_says_its_name(schema: Schema) -> None:
    Draft202012Validator.check_schema(schema.document)

    assert schema.document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema.document["$id"] == f"urn:holdshort:schema:{schema.name}"
    assert schema.document["title"] == schema.name


@records
def test_a_record_says_its_version(schema: Schema) -> None:
    version = schema.document["properties"].get("v") if "properties" in schema.document else None
    if schema.name == "dead-letter.v1":
        assert version is None, "headers have no version; a new form would have new names"
    elif schema.name == "decision.v1":
        assert schema.document["$defs"]["decision"]["properties"]["v"]["const"] == 1
    else:
        assert version == {**(version or {}), "const": int(schema.name.rpartition("v")[2])}
        assert "v" in schema.document["required"]


@records
def test_every_member_is_described_by_a_sentence(schema: Schema) -> None:
    undescribed = [
        place
        for place, one in subschemas(schema.document)
        if "description" not in one and "$ref" not in one and not _is_null_or_alternative(place, one)
    ]
    assert undescribed == []
    sentences = [one["description"] for _, one in subschemas(schema.document) if "description" in one]
    assert [one for one in sentences if not one.endswith(".")] == []


def _is_null_or_alternative(place: str, one: dict[str, Any]) -> bool:
    return one == {"type": "null"} or "/anyOf/" in place.rpartition("/properties/")[2]


@records
def test_an_object_of_ours_is_closed(schema: Schema) -> None:
    left_open = {
        place
        for place, one in subschemas(schema.document)
        if _is_object(one) and one.get("additionalProperties", True) is True
    }
    assert left_open == OPEN.get(schema.name, set())


def _is_object(one: dict[str, Any]) -> bool:
    types = one.get("type", [])
    return "object" in types if isinstance(types, list) else types == "object"


def test_a_reason_for_being_open_is_needed_only_where_it_is() -> None:
    assert set(OPEN) <= set(RECORDS)


# -- registries ---------------------------------------------------------------------------------------------


def _enumerated(name: str, *path: str) -> set[Any]:
    found: Any = ALL[name].document
    for step in path:
        found = found[step]
    return set(found["enum"])


def test_pending_knows_every_code_of_the_contract() -> None:
    assert _enumerated("pending.v1", "$defs", "code") == set(Code)


def test_a_receipt_knows_every_code_of_the_router_and_only_known_ones() -> None:
    known = _enumerated("receipt.v1", "$defs", "code")

    assert set(DecisionCode) <= known <= {*DecisionCode, *Code}


def test_the_audit_knows_every_verdict_that_is_not_quiet() -> None:
    said = _enumerated("audit.v1", "$defs", "gate", "properties", "verdict")
    assert said == (set(Kind) - QUIET) | {ATTEMPTED}


def test_a_gathering_is_held_for_the_reasons_that_the_router_knows() -> None:
    assert _enumerated("gathering.v1", "properties", "held") == {*HELD, None}


@pytest.mark.parametrize("code", sorted({*Code, *DecisionCode}))
def test_every_code_has_the_form_that_audit_and_dead_letters_expect(code: str) -> None:
    audit = ALL["audit.v1"].document["properties"]["code"]
    dead = ALL["dead-letter.v1"].document["properties"]["holdshort-dead-letter-code"]

    assert Draft202012Validator(audit).is_valid(code)
    assert Draft202012Validator(dead).is_valid(code)


# -- README -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ALL))
def test_the_readme_lists_the_schema(name: str) -> None:
    assert f"[`{name}`]({name}.schema.json)" in (SCHEMAS / "README.md").read_text()
