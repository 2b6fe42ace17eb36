"""A response schema as a form: what is asked, how a person's words are read, and what is asked again."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdshort.cli.forms import fill_in
from holdshort.sdk.approvals import Approval
from holdshort.sdk.testing import an_approval


def filled(schema: Any, *typed: str) -> tuple[Any, list[str], list[str]]:
    """The answer, the questions asked, and what was said about wrong ones."""
    words: Iterator[str] = iter(typed)
    asked: list[str] = []
    told: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return next(words)

    base = an_approval()
    approval = Approval.model_validate(
        base.model_dump(by_alias=True) | {"interrupt": {"id": "i", "reason": "x", "responseSchema": schema}}
    )
    return fill_in(approval, ask, told.append), asked, told


def members(required: list[str] | None = None, **properties: Any) -> Any:
    return {"type": "object", "properties": properties, "required": required or []}


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "string"}, "12", "12"),
        ({"type": "integer"}, "12", 12),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"enum": ["low", 2]}, "2", 2),
        ({"enum": ["low", 2]}, "low", "low"),
        ({"type": "array"}, '["a", 1]', ["a", 1]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
        ({"type": "string", "default": "usual"}, "", "usual"),
    ],
)
def test_each_kind_of_value_is_read_as_the_schema_wants_it(schema: Any, typed: str, value: Any) -> None:
    assert filled(schema, typed)[0] == value


@pytest.mark.parametrize(
    ("schema", "wrong", "said"),
    [
        ({"type": "integer"}, "many", "must be a number"),
        ({"type": "number"}, "true", "must be a number"),
        ({"type": "boolean"}, "perhaps", "must be y or n"),
        ({"enum": [1]}, "2", "must be one of those named"),
        ({"type": "array"}, "[", "must be JSON (text stands in quotes)"),
    ],
)
def test_what_cannot_be_read_is_asked_again(schema: Any, wrong: str, said: str) -> None:
    right = {"integer": "1", "number": "1", "boolean": "y", "array": "[]"}.get(schema.get("type"), "1")

    _, asked, told = filled(schema, wrong, right)

    assert len(asked) == 2
    assert said in told[0]


def test_members_are_asked_one_by_one_and_optional_ones_may_be_left_out() -> None:
    schema = members(["name"], name={"type": "string"}, note={"type": "string", "description": "Why"})

    value, asked, _ = filled(schema, "ann", "")

    assert value == {"name": "ann"}
    assert asked == ["name (text)", "note (text, optional): Why"]


def test_only_the_member_that_does_not_fit_is_asked_again() -> None:
    schema = members(["amount"], name={"type": "string"}, amount={"type": "integer", "maximum": 10})

    value, asked, told = filled(schema, "ann", "11", "9")

    assert value == {"name": "ann", "amount": 9}
    assert [one.partition(" ")[0] for one in asked] == ["name", "amount", "amount"]
    assert told[0].strip().startswith("/amount")


def test_a_required_text_may_be_empty_and_a_constant_is_not_asked() -> None:
    schema = members(["kind", "text"], kind={"const": "payment"}, text={"type": "string"})

    value, asked, _ = filled(schema, "")

    assert value == {"kind": "payment", "text": ""}
    assert asked == ["text (text)"]


def test_a_schemas_words_cannot_paint_the_terminal() -> None:
    schema = members(["a\x1b[2J"], **{"a\x1b[2J": {"type": "string", "description": "b\u202e\r"}})

    _, [question], _ = filled(schema, "x")

    assert question == r"a\u{1b}[2J (text): b\u{202e}\u{d}"
