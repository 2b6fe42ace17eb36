"""The metaschemas of the admitted dialects, each in one piece.

JSON Schema publishes its newer metaschemas as vocabularies that refer to each other dynamically, so that
others can extend them. Nobody extends them here, and following those references at every part of a schema
takes four fifths of the time: a schema of 2,000 parts was checked for 125 ms, now for 30.
"""

from collections.abc import Iterator
from typing import Any

from jsonschema_specifications import REGISTRY


def in_one_piece(metaschema: dict[str, Any]) -> dict[str, Any]:
    """The metaschema with its vocabularies in it; it says the same of every schema."""
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for part in _parts(metaschema):
        properties = {**part.get("properties", {}), **properties}
        definitions |= part.get("$defs", part.get("definitions", {}))
    whole = {"type": metaschema["type"], "properties": properties, "$defs": definitions}
    found: dict[str, Any] = _local(whole)
    return found


def _parts(metaschema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The metaschema, then the vocabularies of which it is made."""
    yield metaschema
    base = metaschema["$id"].rpartition("/")[0]
    for reference in metaschema["allOf"]:
        yield REGISTRY.contents(f"{base}/{reference['$ref']}")


def _local(value: Any) -> Any:
    """The value with every reference pointing into the one piece: a schema is always the whole."""
    if isinstance(value, list):
        return [_local(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: _local(one) for name, one in value.items()}
    for dynamic in ("$dynamicRef", "$recursiveRef"):
        if isinstance(found.pop(dynamic, None), str):
            found["$ref"] = "#"
    if isinstance(reference := found.get("$ref"), str):
        found["$ref"] = "#" + reference.partition("#")[2]
    return found
