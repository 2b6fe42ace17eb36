"""Contract 5: what other judges of schemas and payloads say, and where they and we are known to differ."""

from typing import Any, NamedTuple

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from holdshort.contract import schemas

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, "", "a", "ab", "ba", "1"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab1"), inner, max_size=3),
    max_leaves=6,
)
LEAVES = st.one_of(
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["integer", "string", "object", "array", "null", "number", "boolean"]),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "minimum": st.integers(-2, 2),
            "exclusiveMaximum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a", "b", "^[0-9]+$"]),
            "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
            "minItems": st.integers(0, 2),
            "maxProperties": st.integers(0, 2),
        },
    ),
    st.just({"uniqueItems": True, "maxItems": 3}),
    st.just({"$ref": "#/$defs/d"}),
)


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    named = st.dictionaries(st.sampled_from("ab1"), inner, max_size=2)
    patterned = st.dictionaries(st.sampled_from(["^a", "1"]), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": named,
            "patternProperties": patterned,
            "additionalProperties": inner,
            "propertyNames": inner,
            "dependentSchemas": named,
            "prefixItems": some,
            "items": inner,
            "contains": inner,
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    )


SCHEMAS = st.fixed_dictionaries(
    {"allOf": st.lists(st.recursive(LEAVES, composed, max_leaves=8), min_size=1, max_size=3)}
)


@given(schema=SCHEMAS, definition=LEAVES.filter(lambda leaf: "$ref" not in str(leaf)), payload=VALUES)
def test_another_validator_says_the_same(schema: Any, definition: Any, payload: Any) -> None:
    whole = {**schema, "$defs": {"d": definition}}
    admission = schemas.admit(whole)
    assert admission.refused is None, admission.refused
    other = jsonschema_rs.Draft202012Validator(whole).is_valid(payload)
    assert (not schemas.misfits(admission, payload)) == other


@given(schema=SCHEMAS, payload=VALUES)
def test_the_work_is_counted_for_every_value_of_a_payload(schema: Any, payload: Any) -> None:
    cost = schemas.admit({**schema, "$defs": {"d": True}}).cost
    more = [payload, payload]
    assert schemas.work(cost, more) > schemas.work(cost, payload) >= cost.keywords


NAMED_DIALECTS = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    DRAFT_7,
]
MORE_VALUES = (
    VALUES | st.floats(-10, 10) | st.lists(st.integers(0, 2), max_size=4) | st.text("ab1\n é", max_size=4)
)
MORE_LEAVES: st.SearchStrategy[Any] = LEAVES | st.fixed_dictionaries(
    {},
    optional={
        "exclusiveMinimum": st.floats(-2, 2),
        "maximum": st.floats(-2, 2),
        "multipleOf": st.sampled_from([0.1, 0.01, 1e-7, 3, 2.5]),
        "minLength": st.integers(0, 3),
        "maxItems": st.integers(0, 3),
        "minProperties": st.integers(0, 2),
        "minContains": st.integers(0, 2),
        "maxContains": st.integers(0, 2),
        "contains": st.sampled_from([True, {"type": "integer"}, {"const": 1}]),
        "dependentRequired": st.dictionaries(st.sampled_from("ab"), st.just(["1"]), max_size=1),
        "pattern": st.sampled_from(["^a*$", "(a|b)1", r"\d", "[^a]", "^.{1,2}$", "é?", "a{2,3}"]),
        "format": st.sampled_from(["date-time", "email", "regex", "x"]),
        "title": st.just("x"),
        "default": st.just({"$ref": "nowhere"}),
        "x-unknown": st.just({"type": 5}),
    },
)


@given(
    dialect=st.sampled_from(NAMED_DIALECTS),
    schema=st.recursive(MORE_LEAVES, composed, max_leaves=6),
    definition=MORE_LEAVES.filter(lambda leaf: "$ref" not in str(leaf)),
    payload=MORE_VALUES,
)
def test_it_does_so_in_every_dialect(dialect: str, schema: Any, definition: Any, payload: Any) -> None:
    """Formats are assertions to it in draft 7 unless told otherwise; all else is taken as it comes."""
    whole = {"$schema": dialect, "allOf": [schema], "$defs": {"d": definition}}
    admission = schemas.admit(whole)
    assert admission.refused is None, admission.refused
    other = jsonschema_rs.validator_for(whole, validate_formats=False).is_valid(payload)
    assert (not schemas.misfits(admission, payload)) == other


class Differs(NamedTuple):
    """A schema and a payload of which the two validators think differently, what we say, and why."""

    schema: Any
    payload: Any
    ours: bool | str
    why: str


CONTENT = {"$schema": DRAFT_7, "contentMediaType": "application/json"}
DIFFERENCES = [
    Differs({"pattern": r"^\s$"}, "\xa0", False, r"RE2's \s, \d and \w are of ASCII alone"),
    Differs({"pattern": r"\bé\b"}, "é", False, r"and so is its \b"),
    Differs({"pattern": "^.$"}, "\r", True, "RE2's dot stops at a newline alone, ECMA-262's at every break"),
    Differs({"pattern": "[[:digit:]]"}, "5", True, "RE2 knows classes of POSIX, ECMA-262 does not"),
    Differs({"pattern": r"\cA"}, "\x01", "a pattern that RE2 does not know", "RE2 has no control escapes"),
    Differs({"pattern": r"\u0041"}, "A", "a pattern that RE2 does not know", r"nor \u escapes"),
    Differs({"dependencies": {"a": ["b"]}}, {"a": 1}, True, "no keyword since 2019-09; the other keeps it"),
    Differs(CONTENT, "{", True, "content is an annotation to us in every dialect"),
    Differs({"$schema": DRAFT_7, "format": "ipv4"}, "x", True, "and so are formats (contract 5)"),
]


@pytest.mark.parametrize("one", DIFFERENCES, ids=lambda one: one.why)
def test_where_the_two_differ_is_known(one: Differs) -> None:
    admission = schemas.admit(one.schema)
    ours = admission.refused or not schemas.misfits(admission, one.payload)
    assert ours == one.ours
    assert jsonschema_rs.validator_for(one.schema).is_valid(one.payload) is (one.ours is not True)


def test_what_no_dialect_allows_is_refused_by_both() -> None:
    for schema in ({"required": ["a", "a"]}, {"minLength": -1}, {"enum": 5}):
        assert schemas.admit(schema).refused
        assert not jsonschema_rs.meta.is_valid(schema)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "$ref",
                    "$defs",
                    "$id",
                    "not",
                    "allOf",
                    "items",
                    "properties",
                    "pattern",
                    "dependencies",
                    "x",
                ]
            )
            | st.text(max_size=2),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
POINTERS = st.sampled_from(["#", "#/not", "#/allOf/0", "#/properties/x", "#/$defs/x", "#/x", "#/items", "#/"])


@given(
    schema=st.dictionaries(st.sampled_from(["not", "allOf", "items", "properties", "$defs"]), JUNK),
    at=POINTERS,
    payload=VALUES,
)
def test_whatever_an_agent_writes_is_admitted_or_refused_and_never_raises(
    schema: Any, at: str, payload: Any
) -> None:
    for dialect in (None, DRAFT_7, "https://json-schema.org/draft/2019-09/schema"):
        whole = {**schema, "x": {"$ref": at}, **({"$schema": dialect} if dialect else {})}
        admission = schemas.admit(whole)
        if admission.refused is None:
            schemas.misfits(admission, payload)


# -- the metaschemas in one piece ---------------------------------------------------------------------------


def _keywords(dialect: Any) -> set[str]:
    """Every keyword that the dialect's metaschema knows."""
    return set(schemas._METASCHEMAS[dialect].schema["properties"])


DIALECTS: dict[str, Any] = {
    "2020-12": Draft202012Validator,
    "2019-09": Draft201909Validator,
    "draft-07": Draft7Validator,
}
KEYWORDS = sorted({name for one in DIALECTS.values() for name in _keywords(one)})
WRONG = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.text(max_size=3)
SUBSCHEMAS: st.SearchStrategy[Any] = st.recursive(
    WRONG | st.just({}),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=3)
        | st.sampled_from(["string", ["string", "null"], ["a", "a"], [], "text"])
    ),
    max_leaves=8,
)


def by_the_dialect(dialect: Any, schema: Any) -> bool:
    try:
        dialect.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError:
        return False
    return True


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@given(schema=st.dictionaries(st.sampled_from(KEYWORDS), SUBSCHEMAS, max_size=3))
def test_the_metaschema_in_one_piece_says_what_its_vocabularies_say(dialect: Any, schema: Any) -> None:
    assert schemas._METASCHEMAS[dialect].is_valid(schema) == by_the_dialect(dialect, schema)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_it_does_so_for_every_keyword_and_every_kind_of_value(dialect: Any, keyword: str) -> None:
    kinds: list[Any] = [
        None, True, 0, -1, 1.5, "", "x", "#x", "string", [], [1], ["a"], ["a", "a"], [{}], [True, 5], {},
        {"a": {}}, {"a": 5}, {"a": ["b"]}, {"a": ["b", "b"]}, {"not": {"type": 5}},
    ]  # fmt: skip
    for value in kinds:
        for schema in ({keyword: value}, {"properties": {"p": {keyword: value}}}, {"not": {keyword: value}}):
            judged = schemas._METASCHEMAS[dialect].is_valid(schema)
            assert judged == by_the_dialect(dialect, schema), schema
