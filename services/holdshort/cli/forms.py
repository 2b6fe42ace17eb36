"""A response schema as a form in the terminal: a question a member, and what is wrong told at the member.

The schema is the agent's, so it only suggests what is asked; whether an answer fits is said by the same code
that judges it later.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
import typer

from holdshort.cli.answers import Misfit, misfits
from holdshort.cli.showing import plain, short
from holdshort.sdk.approvals import Approval

ABSENT: Final = object()
YES: Final = ("y", "yes", "true")
NO: Final = ("n", "no", "false")

Ask = Callable[[str], str]


def ask_line(question: str) -> str:
    """One line of a person's; empty if they only press Enter."""
    return str(typer.prompt(question, default="", show_default=False))


def fill_in(approval: Approval, ask: Ask = ask_line, tell: Callable[[str], None] = typer.echo) -> Any:
    """An answer that fits the question's schema; members that do not fit are asked for again.

    `ask` and `tell` are the terminal.
    """
    schema = approval.response_schema or {}
    members = _members(schema)
    if members is None:
        return _whole(approval, schema, ask, tell)
    given: dict[str, Any] = {}
    wanted: Sequence[str] = list(members)
    while True:
        for name in wanted:
            value = _ask_member(name, members[name], name in schema.get("required", ()), ask, tell)
            given.pop(name, None)
            if value is not ABSENT:
                given[name] = value
        wrong = misfits(approval, given)
        if not wrong:
            return given
        _tell(wrong, tell)
        wanted = _named_by(wrong, members) or list(members)


def _members(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The members of an object that can be asked for one by one; None for any other schema."""
    members = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(members, dict) or not members:
        return None
    return members


def _whole(approval: Approval, schema: Mapping[str, Any], ask: Ask, tell: Callable[[str], None]) -> Any:
    while True:
        value = _ask_member("answer", schema, True, ask, tell)
        wrong = misfits(approval, value)
        if not wrong:
            return value
        _tell(wrong, tell)


def _tell(wrong: Sequence[Misfit], tell: Callable[[str], None]) -> None:
    for one in wrong:
        tell(plain(f"  {one.pointer or '(the whole)'} {one.message}"))


def _named_by(wrong: Sequence[Misfit], members: Mapping[str, Any]) -> list[str]:
    """The members to ask for again: those that a pointer leads into, or that are missing."""
    names = {one.pointer.split("/")[1].replace("~1", "/").replace("~0", "~") for one in wrong if one.pointer}
    return [name for name in members if name in names]


def _ask_member(name: str, schema: Any, required: bool, ask: Ask, tell: Callable[[str], None]) -> Any:
    """One value; Enter leaves an optional member out and takes a default if the schema has one."""
    known = schema if isinstance(schema, dict) else {}
    if "const" in known:
        return known["const"]
    while True:
        text = ask(_question(name, known, required)).strip()
        if not text and "default" in known:
            return known["default"]
        if not text and not required:
            return ABSENT
        try:
            return _read(text, known)
        except ValueError as error:
            tell(f"  {error}")


def _question(name: str, schema: Mapping[str, Any], required: bool) -> str:
    hints = [_kind(schema)] + ([] if required else ["optional"])
    if "default" in schema:
        hints.append(f"Enter: {short(orjson.dumps(schema['default']).decode(), 30)}")
    about = schema.get("description") or schema.get("title")
    said = f": {short(about, 80)}" if isinstance(about, str) else ""
    return f"{short(name)} ({', '.join(hints)}){said}"


def _kind(schema: Mapping[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        return " | ".join(short(_bare(one), 30) for one in schema["enum"])
    return {"string": "text", "boolean": "y/n", "integer": "whole number", "number": "number"}.get(
        str(schema.get("type")), "JSON"
    )


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _read(text: str, schema: Mapping[str, Any]) -> Any:
    """What a person typed, as the schema wants it. Raises ValueError, in words for them."""
    if isinstance(schema.get("enum"), list):
        return _read_choice(text, schema["enum"])
    match schema.get("type"):
        case "string":
            return text
        case "boolean":
            return _read_boolean(text)
        case "integer" | "number":
            return _read_json(text, "a number", (int, float))
        case _:
            return _read_json(text, "JSON (text stands in quotes)", None)


def _read_choice(text: str, choices: Sequence[Any]) -> Any:
    for one in choices:
        if text == _bare(one):
            return one
    raise ValueError("must be one of those named")


def _read_boolean(text: str) -> bool:
    if text.lower() in YES:
        return True
    if text.lower() in NO:
        return False
    raise ValueError("must be y or n")


def _read_json(text: str, what: str, kinds: tuple[type, ...] | None) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError(f"must be {what}") from None
    if kinds is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
        raise ValueError(f"must be {what}")
    return value
