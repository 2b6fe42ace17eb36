"""A payload that certainly fits a plain schema, such as most approvals have: a shorter way to no misfits.

There is no rule in here: where the validator of schemas.py might find anything, this says that it does not
know, and the validator is asked; a test holds both against each other on random schemas and payloads.
"""

from collections.abc import Callable
from typing import Any, Final

Fits = Callable[[Any], bool]
"""Whether a value certainly fits; False says nothing."""

_SAY_NOTHING: Final = frozenset({"$comment", "$schema", "default", "description", "examples", "title"})
_OBJECT: Final = frozenset({"type", "properties", "required", "additionalProperties"})
_STRING: Final = frozenset({"type", "minLength", "maxLength", "enum"})


def plainly(schema: Any) -> Fits | None:
    """The check for a schema of objects, strings, booleans and integers alone; None for any other.

    The schema is one that the admission profile has let through: its keywords are well formed.
    """
    if not isinstance(schema, dict):
        return None
    match schema.get("type"):
        case "boolean" if _has_only(schema, {"type"}):
            return lambda value: value is True or value is False
        case "integer" if _has_only(schema, {"type"}):
            return lambda value: type(value) is int
        case "string" if _has_only(schema, _STRING):
            return _string(schema)
        case "object" if _has_only(schema, _OBJECT):
            return _object(schema)
        case _:
            return None


def _has_only(schema: dict[str, Any], keywords: set[str] | frozenset[str]) -> bool:
    return schema.keys() <= keywords | _SAY_NOTHING


def _string(schema: dict[str, Any]) -> Fits:
    least, most = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    if "enum" not in schema:
        return lambda value: type(value) is str and least <= len(value) <= most
    known = frozenset(one for one in schema["enum"] if isinstance(one, str))
    return lambda value: type(value) is str and value in known and least <= len(value) <= most


def _object(schema: dict[str, Any]) -> Fits | None:
    members: dict[str, Fits] = {}
    for name, below in schema.get("properties", {}).items():
        if (fits := plainly(below)) is None:
            return None
        members[name] = fits
    required = tuple(schema.get("required", ()))
    others = schema.get("additionalProperties", True)
    if not isinstance(others, bool):
        return None

    def fits_object(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        for name, one in value.items():
            check = members.get(name)
            if not (others if check is None else check(one)):
                return False
        return True

    return fits_object
