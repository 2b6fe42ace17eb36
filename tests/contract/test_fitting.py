"""The shorter way of a payload that fits says what the validator says, or nothing; and it is taken."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdshort.contract import schemas
from holdshort.contract.fitting import plainly

NAMES = st.sampled_from(["approved", "comment", "a", ""])
WORDS = st.sampled_from(["", "a", "ab", "abc", "\U0001f600", "é"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.5, 1.0]), WORDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
LEAVES = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "integer", "title": "how many"}),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 2),
            "maxLength": st.sampled_from([0, 1, 2.0]),
            "enum": st.lists(st.one_of(WORDS, st.booleans(), st.none()), min_size=1, max_size=3),
        },
    ),
)
OTHERS = st.sampled_from(
    [
        {},
        {"type": "number"},
        {"type": ["string", "null"]},
        {"type": "string", "pattern": "^a"},
        {"type": "integer", "minimum": 1},
        {"type": "boolean", "const": True},
        {"type": "object", "minProperties": 1},
        {"type": "object", "additionalProperties": {"type": "boolean"}},
        {"type": "object", "patternProperties": {"a": {"type": "boolean"}}},
        True,
        False,
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(NAMES, st.one_of(inner, OTHERS), max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "description": st.just("what is asked"),
        },
    ),
    max_leaves=4,
)


LEAF_SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 2},
    {"type": "string", "enum": ["a", "abc", True], "maxLength": 2},
)
LEAF_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -2,
    "",
    "a",
    "ab",
    "abc",
    "\U0001f600",
    [],
    {},
    ["a"],
)


@pytest.mark.parametrize("schema", LEAF_SCHEMAS)
def test_of_every_leaf_it_knows_what_fits(schema: Any) -> None:
    admission = schemas.admit(schema)
    assert admission.fits is not None
    for value in LEAF_VALUES:
        assert admission.fits(value) == (list(admission.validator.iter_errors(value)) == []), value


@given(st.one_of(SCHEMAS, OTHERS), VALUES)
def test_what_certainly_fits_fits(schema: Any, payload: Any) -> None:
    admission = schemas.admit(schema)
    if admission.fits is not None and admission.fits(payload):
        assert list(admission.validator.iter_errors(payload)) == []


@given(SCHEMAS, VALUES)
def test_it_only_shortens_the_way(schema: Any, payload: Any) -> None:
    """Of a plain schema it knows all that fits, but for numbers that are integers only by their value."""
    admission = schemas.admit(schema)
    if admission.fits is not None and not _holds_a_float(payload):
        assert admission.fits(payload) == (list(admission.validator.iter_errors(payload)) == [])


def _holds_a_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_a_float(one) for one in value.values())
    return isinstance(value, float)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "boolean"},
        {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "comment": {"type": "string", "maxLength": 500},
                "reason": {"type": "string", "enum": ["price", "policy"]},
                "amount": {"type": "integer"},
                "address": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
            "required": ["approved"],
            "additionalProperties": False,
        },
    ],
)
def test_schemas_of_approvals_have_a_shorter_way(schema: Any) -> None:
    assert schemas.admit(schema).fits is not None


@pytest.mark.parametrize(
    "schema", [True, {}, {"type": "array"}, {"$ref": "#"}, {"type": "string", "format": "date"}]
)
def test_other_schemas_have_none(schema: Any) -> None:
    assert plainly(schema) is None
