"""Contract 5: which response schemas are admitted, and what is checked by them."""

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from holdshort.contract import schemas
from holdshort.contract.resume import Work

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def fits(schema: Any, payload: Any) -> bool:
    admission = schemas.admit(schema)
    assert admission.refused is None, admission.refused
    return not schemas.misfits(admission, payload)


def told(schema: Any, payload: Any) -> list[tuple[str, str]]:
    return [(one.pointer, one.message) for one in schemas.misfits(schemas.admit(schema), payload)]


# -- ordinary forms -----------------------------------------------------------------------------------------


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Payee(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=100)]
    iban: Annotated[str, Field(pattern=r"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$")]


class Form(BaseModel):
    """A form as pydantic writes it: $defs, anyOf with null, titles, defaults, enums, numbers."""

    model_config = ConfigDict(title="Approve the transfer")
    approved: bool
    amount: Annotated[float, Field(gt=0, le=10_000, multiple_of=0.01)] | None = None
    level: Level = Level.LOW
    payees: Annotated[list[Payee], Field(max_length=5)] = []
    tags: dict[str, int] = {}
    reason: Literal["policy", "other"] | None = None


PYDANTIC_AI = {
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object"},
        "reason": {"type": "string"},
    },
    "required": ["approved"],
    "type": "object",
}
TANSTACK = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "approved": {"const": True},
                "editedArgs": {"type": "object", "properties": {"amount": {"type": "number"}}},
                "payload": {},
            },
            "required": ["approved"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"approved": {"const": False}, "payload": {}},
            "required": ["approved"],
            "additionalProperties": False,
        },
    ]
}
ZOD = {
    "$schema": DRAFT_7,
    "$ref": "#/definitions/decision",
    "definitions": {
        "decision": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["accept", "edit", "ignore"]},
                "args": {"type": ["object", "null"], "additionalProperties": {}},
                "at": {"type": "string", "format": "date-time"},
            },
            "required": ["action"],
            "additionalProperties": False,
        }
    },
}
ELICITATION = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "format": "email", "title": "Email"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1},
        "plan": {"type": "string", "enum": ["free", "pro"], "enumNames": ["Free", "Pro"]},
    },
    "required": ["email"],
}
CONDITIONAL = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string", "minLength": 1}},
    "if": {"properties": {"approved": {"const": False}}},
    "then": {"required": ["comment"]},
    "$comment": "a denial needs a reason",
}
PYDANTIC = Form.model_json_schema()

FORMS: dict[str, tuple[Any, Any, Any]] = {
    "pydantic-ai": (PYDANTIC_AI, {"approved": True, "editedArgs": {"to": "x"}}, {"approved": "true"}),
    "tanstack, approved": (TANSTACK, {"approved": True, "editedArgs": {"amount": 5}}, {"approved": 1}),
    "tanstack, denied": (TANSTACK, {"approved": False}, {"approved": False, "editedArgs": {}}),
    "zod": (ZOD, {"action": "edit", "args": {"x": 1}}, {"action": "nuke"}),
    "zod, formats are not asserted": (ZOD, {"action": "accept", "at": "whenever"}, {"at": "whenever"}),
    "elicitation": (ELICITATION, {"email": "a@b.c", "seats": 3}, {"email": "a@b.c", "seats": 0}),
    "conditional": (CONDITIONAL, {"approved": False, "comment": "no"}, {"approved": False}),
    "confirmation": ({"type": "boolean"}, False, 0),
    "free text": ({"type": "string", "minLength": 1}, "yes", ""),
    "choice": ({"enum": ["a", "b", None]}, None, "c"),
    "anything": ({}, {"x": [None]}, NotImplemented),
    "pydantic, short": (PYDANTIC, {"approved": True}, {"approved": None}),
    "pydantic, money": (PYDANTIC, {"approved": True, "amount": 19.99}, {"approved": True, "amount": 19.999}),
    "pydantic, null": (PYDANTIC, {"approved": True, "amount": None}, {"approved": True, "amount": "5"}),
    "pydantic, nested": (
        PYDANTIC,
        {"approved": True, "payees": [{"name": "Ada", "iban": "DE89370400440532013000"}]},
        {"approved": True, "payees": [{"name": "Ada", "iban": "DE89370400440532013000", "x": 1}]},
    ),
    "pydantic, pattern": (
        PYDANTIC,
        {"approved": True, "level": "high", "tags": {"a": 1}},
        {"approved": True, "payees": [{"name": "Ada", "iban": "de89"}]},
    ),
    "names of letters": ({"pattern": r"^[\p{L}\p{N} ]{1,100}$"}, "Ærøskøbing", "a_b"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_ordinary_forms_are_admitted_and_do_their_work(form: tuple[Any, Any, Any]) -> None:
    schema, good, bad = form
    assert fits(schema, good)
    if bad is not NotImplemented:
        assert not fits(schema, bad)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_ordinary_answers_are_far_within_the_work_budget(form: tuple[Any, Any, Any]) -> None:
    schema, good, _ = form
    assert Work(5_000).spend(schemas.admit(schema).cost, good)


# -- the profile, on both sides -----------------------------------------------------------------------------


def admitted(schema: Any) -> bool:
    return schemas.admit(schema).refused is None


def nested(levels: int, innermost: Any = ()) -> Any:
    schema: Any = dict(innermost)
    for _ in range(levels - 1):
        schema = {"not": schema}
    return schema


def sized(size: int) -> Any:
    return {"title": "x" * (size - len('{"title":""}'))}


def costing(keywords: int) -> Any:
    """One keyword for the root, two for its members, and the rest by references to one enum."""
    half = {"enum": list(range(1000))}
    return {"$defs": {"h": half}, "allOf": [{"$ref": "#/$defs/h"}] * 4, "enum": list(range(keywords - 4024))}


@pytest.mark.parametrize(
    ("below", "beyond"),
    [
        (sized(32 * 1024), sized(32 * 1024 + 1)),
        (nested(32), nested(33)),
        (nested(32, {"type": "string"}), nested(33, {"type": "string"})),
        ({"enum": list(range(1998))}, {"enum": list(range(1999))}),
        (costing(4980), costing(5005)),
        ({"uniqueItems": True, "maxItems": 256}, {"uniqueItems": True, "maxItems": 257}),
        ({"pattern": "a" * 256}, {"pattern": "a" * 257}),
        ({"pattern": "(.{0,30}){33}"}, {"pattern": "(.{0,100}){10}.{0,1000}" * 11}),
    ],
    ids=["bytes", "depth", "depth of scalars", "nodes", "cost", "unique items", "pattern", "program"],
)
def test_each_limit_of_the_profile_on_both_sides(below: Any, beyond: Any) -> None:
    assert admitted(below), schemas.admit(below).refused
    assert not admitted(beyond)


def test_a_chain_of_references_may_be_as_long_as_the_validator_can_follow() -> None:
    def chain(length: int) -> Any:
        links: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(length)}
        return {"$ref": "#/$defs/d0", "$defs": links | {f"d{length}": {"type": "integer"}}}

    assert fits(chain(60), 5)
    assert not fits(chain(60), "x")
    assert not admitted(chain(70))


def test_a_chain_is_as_long_whatever_the_order_in_which_it_is_met() -> None:
    links: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n - 1}"} for n in range(1, 71)}
    assert not admitted({"$defs": {"d0": {"type": "integer"}} | links, "$ref": "#/$defs/d70"})


@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
    ],
)
def test_three_dialects_and_none_at_all_are_admitted(dialect: str) -> None:
    assert fits({"$schema": dialect, "type": "integer"}, 5)
    assert not fits({"$schema": dialect, "type": "integer"}, "x")


def test_each_dialect_means_its_own() -> None:
    tuples = {"items": [{"type": "integer"}], "additionalItems": False}
    assert not fits({"$schema": DRAFT_7, **tuples}, [1, 2])
    assert not fits({"prefixItems": [{"type": "integer"}], "items": False}, [1, 2])
    assert not admitted(tuples)
    dependent = {"dependencies": {"a": ["b"]}}
    assert not fits({"$schema": DRAFT_7, **dependent}, {"a": 1})


@pytest.mark.parametrize(
    "reference", ["#/$defs/a", "#/properties/p", "#/allOf/0", "#/$defs/x~1y", "#/$defs/~0"]
)
def test_local_references_are_followed(reference: str) -> None:
    integer = {"type": "integer"}
    schema = {
        "$defs": {"a": integer, "x/y": integer, "~": integer},
        "properties": {"p": integer, "q": {"$ref": reference}},
        "allOf": [integer] if reference == "#/allOf/0" else [True],
    }
    payload: Any = 5 if reference == "#/allOf/0" else {"q": "no"}
    assert fits(schema, payload) is (reference == "#/allOf/0")


def test_names_of_properties_are_not_keywords() -> None:
    names = {"$ref": {"type": "integer"}, "$id": {}, "pattern": {}, "$schema": {}, "unevaluatedItems": {}}
    assert fits({"properties": names}, {"$ref": 1, "$id": "x"})
    assert not fits({"properties": names}, {"$ref": "x"})


def test_unknown_keywords_and_annotations_are_nobodys_business() -> None:
    assert fits({"x-widget": {"$ref": "nowhere"}, "examples": [{"$id": 5}], "default": {"pattern": "("}}, 1)


@pytest.mark.parametrize("schema", [True, False, None, [], "x", 5])
def test_a_schema_is_an_object(schema: Any) -> None:
    assert not admitted(schema)


# -- what a payload is checked by ---------------------------------------------------------------------------


def test_patterns_are_searched_as_json_schema_says_and_not_as_pythons_re_does() -> None:
    digits = {"pattern": "^[0-9]+$"}
    assert fits(digits, "123")
    assert not fits(digits, "123\n")
    assert not fits({"pattern": r"^\d+$"}, "١٢٣")
    assert fits({"pattern": "b"}, "abc")
    assert fits({"pattern": "b"}, 5)


@pytest.mark.parametrize(
    ("step", "good", "bad"),
    [
        (0.01, 19.99, 19.999),
        (0.1, 0.3, 0.35),
        (3, 9, 10),
        (1e-7, 3e-7, 3.5e-7),
        (0.01, 1e15, 0.001),
        (2, 4.0, 5.0),
    ],
)
def test_multiples_are_exact(step: float, good: float, bad: float) -> None:
    assert fits({"multipleOf": step}, good)
    assert not fits({"multipleOf": step}, bad)


def test_bools_and_other_things_are_no_multiples_of_anything() -> None:
    odd: Any
    for odd in (True, "x", None, [], {}):
        assert fits({"multipleOf": 7}, odd)


def test_items_are_unique_by_json_and_not_by_python() -> None:
    unique = {"uniqueItems": True, "maxItems": 9}
    good: list[Any]
    for good in ([1, True], [0, False], [{"a": 1}, {"a": True}], ["1", 1], [[], {}]):
        assert fits(unique, good)
    for bad in ([1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [[1], [1.0]], [None, None]):
        assert not fits(unique, bad)
    assert fits({"uniqueItems": False}, [1, 1])


def test_a_bool_is_no_number() -> None:
    assert not fits({"type": "integer"}, True)
    assert not fits({"const": 1}, True)
    assert not fits({"enum": [0]}, False)
    assert fits({"type": "integer"}, 1.0)


def test_formats_are_not_asserted() -> None:
    assert fits({"format": "date-time"}, "whenever")
    assert fits({"format": "regex"}, "(")


def test_places_are_json_pointers() -> None:
    schema = {"additionalProperties": {"items": {"type": "integer"}}}
    assert [pointer for pointer, _ in told(schema, {"a/b": ["x"], "c~d": [1, "y"]})] == ["/a~1b/0", "/c~0d/1"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": ["object", "null"]}, 'must be of type ["object","null"]'),
        ({"enum": ["a", 1]}, 'must be one of ["a",1]'),
        ({"const": {"a": 1}}, 'must be {"a":1}'),
        ({"maxLength": 3}, "must have at most 3 characters"),
        ({"pattern": "^a"}, "must match the pattern ^a"),
        ({"not": {}}, "does not fit the schema's not"),
        ({"anyOf": [{"type": "null"}, False]}, "does not fit the schema's anyOf"),
        ({"enum": ["x" * 300]}, "does not fit the schema's enum"),
        ({"allOf": [False]}, "must not be there"),
    ],
)
def test_messages_name_what_is_asked_and_never_what_came(schema: Any, message: str) -> None:
    assert told(schema, "secret") == [("", message)]


def test_keywords_without_a_message_of_ours_do_not_quote_the_payload() -> None:
    schema = {
        "dependentRequired": {"secret": ["b"]},
        "propertyNames": {"maxLength": 3},
        "minProperties": 9,
        "contains": {},
        "additionalProperties": False,
        "patternProperties": {"^z": {}},
        "required": ["c"],
        "oneOf": [True, True],
    }
    assert "secret" not in str([message for _, message in told(schema, {"secret": "secret"})])
