"""The schemas and their examples as they lie in `schemas/`, and two validators that must agree."""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import jsonschema_rs
import yaml
from jsonschema import Draft202012Validator

SCHEMAS: Final = Path(__file__).parents[2] / "schemas"
SUFFIX: Final = ".schema.json"


class Example(NamedTuple):
    """One example file."""

    schema: str
    kind: str
    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def raw(self) -> bytes:
        return self.path.read_bytes()

    @property
    def value(self) -> Any:
        return yaml.safe_load(self.raw) if self.path.suffix == ".yaml" else json.loads(self.raw)


class Schema:
    """One schema file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.document: dict[str, Any] = json.loads((SCHEMAS / f"{name}{SUFFIX}").read_text())

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return Draft202012Validator(self.document)

    @cached_property
    def _second_opinion(self) -> jsonschema_rs.Draft202012Validator:
        return jsonschema_rs.Draft202012Validator(self.document)

    def problems(self, value: Any) -> list[str]:
        """Where a value does not fit; none if it does."""
        found = [f"{error.json_path}: {error.message[:200]}" for error in self._validator.iter_errors(value)]
        assert self._second_opinion.is_valid(value) == (not found), "the validators disagree"
        return found

    def examples(self, kind: str) -> list[Example]:
        folder = SCHEMAS / "examples" / self.name / kind
        return [Example(self.name, kind, path) for path in sorted(folder.glob("*"))]


RECORDS: Final = tuple(sorted(p.name.removesuffix(SUFFIX) for p in SCHEMAS.glob(f"*.v[0-9]*{SUFFIX}")))
CONFIG: Final = "config"
ALL: Final = {name: Schema(name) for name in (*RECORDS, CONFIG)}


def examples(kind: str, *names: str) -> list[Example]:
    return [example for name in names or ALL for example in ALL[name].examples(kind)]


def called(example: Example) -> str:
    """The name of a test about an example."""
    return f"{example.schema}-{example.name}"


def subschemas(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that describes a value: the document, its definitions, members, items, alternatives."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for word in ("properties", "$defs"):
        for name, one in schema.get(word, {}).items():
            yield from subschemas(one, f"{place}/{word}/{name}")
    for word in ("items", "additionalProperties"):
        yield from subschemas(schema.get(word), f"{place}/{word}")
    for word in ("anyOf", "prefixItems"):
        for number, one in enumerate(schema.get(word, [])):
            yield from subschemas(one, f"{place}/{word}/{number}")


# -- members by their path ----------------------------------------------------------------------------------


def members(schema: Schema) -> set[str]:
    """Every member that a schema names, by its path: `pause.interrupts.tool.args`."""
    return set(_members(schema.document, schema.document, ""))


def _members(schema: Any, document: dict[str, Any], path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    if reference := schema.get("$ref"):
        yield from _members(document["$defs"][reference.rpartition("/")[2]], document, path)
    for name, one in schema.get("properties", {}).items():
        if one.get("not") != {}:
            yield f"{path}{name}"
            yield from _members(one, document, f"{path}{name}.")
    for one in (schema.get("items"), schema.get("then"), schema.get("else"), *schema.get("anyOf", [])):
        yield from _members(one, document, path)


def present(value: Any, path: str = "") -> Iterator[str]:
    """Every member of a value, named in the same way."""
    match value:
        case dict():
            for name, one in value.items():
                yield f"{path}{name}"
                yield from present(one, f"{path}{name}.")
        case list():
            for one in value:
                yield from present(one, path)
        case _:
            pass
