"""Response schemas come from agents: which of them are safe to use, and payloads checked against them.

A schema passes the admission profile of contract section 5 before the validator sees it. The validator
resolves nothing remote, matches patterns in linear time (RE2), and says in its problems which keyword failed
where, never with which value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson
import re2
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from holdshort.contract.canon import canonical
from holdshort.contract.fitting import Fits, plainly
from holdshort.contract.metaschemas import in_one_piece

MAX_BYTES: Final = 32 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 2_000
MAX_COST: Final = 5_000
MAX_EXPANDED: Final = 64  # levels, references expanded: the validator recurses as deep
MAX_UNIQUE_ITEMS: Final = 256
MAX_PATTERN: Final = 256
MAX_PROGRAM: Final = 150_000  # instructions of all different patterns of a schema; RE2 compiles 2 a µs
MAX_PROBLEMS: Final = 20
MAX_TOLD: Final = 200  # characters of a pointer or a name in a problem
MAX_SAFE_INTEGER: Final = 2**53 - 1
STRING_UNIT: Final = 256  # so many characters weigh as much as one value
SEARCH_UNIT: Final = 8_000  # so many instructions x characters of a search take as long as one keyword

Schema = dict[str, Any] | bool


class Cost(NamedTuple):
    """What checking one value may take, references expanded: keywords, instructions of patterns, levels."""

    keywords: int
    program: int = 0
    depth: int = 1


class Admission(NamedTuple):
    """What the profile says of one schema: a validator and its cost, or why it was refused.

    `fits` is a shorter way for a payload that certainly fits, if there is one.
    """

    validator: Any  # a jsonschema validator; its protocol lacks half of what validators have
    cost: Cost
    refused: str | None = None
    fits: Fits | None = None


def _refused(why: str) -> Admission:
    return Admission(None, Cost(0), why)


class Misfit(NamedTuple):
    """One place where a payload does not fit: its JSON pointer, and what the schema asks for there."""

    pointer: str
    message: str


def admit(schema: Any) -> Admission:
    """Judge a response schema by the profile; never raises, the same schema is judged once."""
    try:
        raw = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return _refused("too deep")
    if len(raw) > MAX_BYTES:
        return _refused("too large")
    return _admit(raw)


def admit_written(raw: bytes) -> Admission:
    """The same for a schema as it was written; the same bytes are parsed once."""
    return _admit_written(raw) if len(raw) <= MAX_BYTES else admit(orjson.loads(raw))


@lru_cache(maxsize=256)
def _admit_written(raw: bytes) -> Admission:
    return admit(orjson.loads(raw))


@lru_cache(maxsize=256)
def _admit(raw: bytes) -> Admission:
    schema = orjson.loads(raw)
    try:
        return _Profile(schema).admission()
    except _RefusedError as refused:
        return _refused(str(refused))
    except RecursionError:
        return _refused("a chain of references that is too long")


def misfits(admission: Admission, payload: Any) -> list[Misfit]:
    """Where the payload does not fit, at most MAX_PROBLEMS places."""
    assert admission.validator is not None
    if admission.fits is not None and admission.fits(payload):
        return []
    try:
        errors = islice(admission.validator.iter_errors(payload), MAX_PROBLEMS)
        return [Misfit(_pointer(error.absolute_path), _message(error)) for error in errors]
    except RecursionError:
        return [Misfit("", "too deeply nested")]


def work(cost: Cost, payload: Any) -> int:
    """What checking the payload may take, in units of the work budget.

    A search may visit every instruction of its pattern at every character, in the worst case.
    """
    values, characters = _size(payload)
    units = cost.keywords * (values + characters // STRING_UNIT)
    return units + cost.program * characters // SEARCH_UNIT


def _size(payload: Any) -> tuple[int, int]:
    """How many values there are in it, and how many characters in its strings and names."""
    values = characters = 0
    waiting = [payload]
    while waiting:
        value = waiting.pop()
        values += 1
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, dict):
            characters += sum(len(name) for name in value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return values, characters


def unsafe_number(payload: Any) -> bool:
    """Whether a number in it is an integer that JavaScript cannot hold: readers would differ about it."""
    waiting = [payload]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, int | float) and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return True
    return False


# -- the admission profile ----------------------------------------------------------------------------------

_DIALECTS: Final[Mapping[str | None, Any]] = {
    None: Draft202012Validator,
    "json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "json-schema.org/draft/2019-09/schema": Draft201909Validator,
    "json-schema.org/draft-07/schema": Draft7Validator,
}
_METASCHEMAS: Final[Mapping[Any, Any]] = {
    Draft202012Validator: Draft202012Validator(in_one_piece(Draft202012Validator.META_SCHEMA)),
    Draft201909Validator: Draft201909Validator(in_one_piece(Draft201909Validator.META_SCHEMA)),
    Draft7Validator: Draft7Validator(Draft7Validator.META_SCHEMA),
}
_BANNED: Final = (
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_SCHEMA: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
)
_SCHEMAS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED: Final = ("dependencies", "dependentSchemas", "patternProperties", "properties")
_UNUSED: Final = ("$defs", "definitions")  # cost something only where a reference points at them
_DATA: Final = ("enum", "const", "required", "type", "dependentRequired", "dependencies")


class _RefusedError(Exception):
    """The schema is outside the profile; the message says which rule."""


class _Profile:
    """One pass over one schema."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.costs: dict[int, Cost] = {}
        self.open: set[int] = set()
        self.programs: dict[str, int] = {}

    def admission(self) -> Admission:
        if not isinstance(self.root, dict):
            raise _RefusedError("not an object")
        _check_shape(self.root)
        dialect = _dialect(self.root.get("$schema"))
        cost = self.cost(self.root)
        for name in _UNUSED:
            for schema in _members(self.root.get(name)):
                self.cost(schema)
        _check_schema(dialect, self.root)
        validator = _SAFE[dialect](self.root, registry=Registry())
        return Admission(validator, cost, fits=plainly(self.root))

    def cost(self, schema: Any) -> Cost:
        """What checking one value against the schema may cost, references expanded."""
        if isinstance(schema, bool):
            return Cost(1)
        if not isinstance(schema, dict):
            raise _RefusedError("not a schema where one must stand")
        if (known := self.costs.get(id(schema))) is not None:
            return known
        if id(schema) in self.open:
            raise _RefusedError("recursive")
        self.open.add(id(schema))
        self.check_keywords(schema)
        keywords = 1 + len(schema) + sum(_nodes(schema.get(name)) for name in _DATA)
        program = sum(self.program(pattern) for pattern in _patterns(schema))
        depth = 1
        for child in self.children(schema):
            below = self.cost(child)
            keywords, program = keywords + below.keywords, program + below.program
            depth = max(depth, 1 + below.depth)
        if keywords > MAX_COST or depth > MAX_EXPANDED:
            raise _RefusedError("too costly")
        self.open.remove(id(schema))
        self.costs[id(schema)] = cost = Cost(keywords, program, depth)
        return cost

    def children(self, schema: dict[str, Any]) -> Iterator[Any]:
        for name in _SCHEMA:
            if name in schema and not isinstance(schema[name], list):
                yield schema[name]
        for name in _SCHEMAS:
            if isinstance(schema.get(name), list):
                yield from schema[name]
        for name in _NAMED:
            yield from (child for child in _members(schema.get(name)) if not isinstance(child, list))
        if "$ref" in schema:
            yield self.target(schema["$ref"])

    def check_keywords(self, schema: dict[str, Any]) -> None:
        for name in _BANNED:
            if name in schema:
                raise _RefusedError(f"uses {name}")
        if "$schema" in schema and schema is not self.root:
            raise _RefusedError("uses $schema below the root")
        if schema.get("uniqueItems") is True:
            most = schema.get("maxItems")
            if not isinstance(most, int) or most > MAX_UNIQUE_ITEMS:
                raise _RefusedError("uniqueItems without a small maxItems")

    def program(self, pattern: Any) -> int:
        """The instructions of a pattern; a few characters can mean many."""
        if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
            raise _RefusedError("a pattern that is no string or too long")
        self.programs[pattern] = size = _compiled(pattern).programsize
        if sum(self.programs.values()) > MAX_PROGRAM:
            raise _RefusedError("patterns that are too costly")
        return int(size)

    def target(self, reference: Any) -> Any:
        """What a local reference points at; only `#` and `#/...` are allowed."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise _RefusedError("a reference that is not local")
        if "%" in reference:
            raise _RefusedError("an encoded reference")
        found = self.root
        for part in reference.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = _step(found, name)
            if isinstance(found, dict) and "$id" in found:  # what refers from there would refer elsewhere
                raise _RefusedError("a reference through a schema with an $id")
        return found


def _step(value: Any, name: str) -> Any:
    if isinstance(value, dict) and name in value:
        return value[name]
    if isinstance(value, list) and name.isdecimal() and name.isascii() and int(name) < len(value):
        return value[int(name)]
    raise _RefusedError("a reference to nothing")


def _check_shape(root: Any) -> None:
    nodes = 0
    waiting: list[tuple[Any, int]] = [(root, 1)]
    while waiting:
        value, depth = waiting.pop()
        nodes += 1
        if nodes > MAX_NODES:
            raise _RefusedError("too many parts")
        if depth > MAX_DEPTH and isinstance(value, dict | list):  # a scalar is no level of its own
            raise _RefusedError("too deep")
        below: Iterable[Any] = ()
        if isinstance(value, dict):
            below = value.values()
        elif isinstance(value, list):
            below = value
        waiting.extend((child, depth + 1) for child in below)


def _dialect(name: Any) -> Any:
    if isinstance(name, str):
        name = name.removeprefix("https://").removeprefix("http://").removesuffix("#")
    elif name is not None:
        raise _RefusedError("a dialect that is not a string")
    if name not in _DIALECTS:
        raise _RefusedError("an unknown dialect")
    return _DIALECTS[name]


def _check_schema(dialect: Any, schema: Any) -> None:
    """Against the metaschema; no format is asserted, for RE2 has judged the patterns already."""
    try:
        valid = _METASCHEMAS[dialect].is_valid(schema)
    except RecursionError:
        valid = False
    if not valid:
        raise _RefusedError("not a valid schema of its dialect")


def _patterns(schema: dict[str, Any]) -> Iterator[Any]:
    if "pattern" in schema:
        yield schema["pattern"]
    if isinstance(named := schema.get("patternProperties"), dict):
        yield from named


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 2 * 1024 * 1024
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise _RefusedError("a pattern that RE2 does not know") from None


def _members(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else ()


def _nodes(value: Any) -> int:
    if value is None:
        return 0
    values, characters = _size(value)
    return values + characters // STRING_UNIT


# -- the validator ------------------------------------------------------------------------------------------
# The stock keywords below search with Python's re (exponential), compare items in quadratic time, divide by
# floats (19.99 would not be a multiple of 0.01) or quote the instance; these do not.


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _compiled(pattern).search(instance):
        yield ValidationError(f"must match the pattern {pattern}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Schema], instance: Any, _: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, schema in patterns.items():
        for name, value in instance.items():
            if _compiled(pattern).search(name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, schema: Schema, instance: Any, parent: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns = [_compiled(pattern) for pattern in parent.get("patternProperties", ())]
    for name in instance:
        if name not in parent.get("properties", ()) and not any(p.search(name) for p in patterns):
            if schema is False:
                yield ValidationError("is not a member that the schema knows", path=[name])
            else:
                yield from validator.descend(instance[name], schema, path=name)


def _unique_items(_: Any, unique: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    if unique and isinstance(instance, list):
        forms = {canonical(item) for item in instance}
        if len(forms) != len(instance) or None in forms:
            yield ValidationError("must not hold the same item twice")


def _multiple_of(_: Any, step: float, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    if (Fraction(str(instance)) / Fraction(str(step))).denominator != 1:
        yield ValidationError(f"must be a multiple of {step}")


def _required(_: Any, names: Sequence[str], instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError(f"must have a member {_short(name)}")


_OURS: Final = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    "multipleOf": _multiple_of,
    "required": _required,
}
_SAFE: Final[Mapping[Any, Any]] = {
    dialect: extend(dialect, _OURS)  # type: ignore[no-untyped-call]  # the stubs leave it out
    for dialect in set(_DIALECTS.values())
}
_SAYS: Final = {
    "type": "must be of type {}",
    "enum": "must be one of {}",
    "const": "must be {}",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} members",
    "maxProperties": "must have at most {} members",
}


def _message(error: ValidationError) -> str:
    """What the schema asks for; made of the schema's own words, never of the payload's."""
    if error.validator in _OURS:
        return error.message
    if str(error.validator) == "None":  # the schema `false`
        return "must not be there"
    asked = orjson.dumps(error.validator_value).decode()
    if (says := _SAYS.get(str(error.validator))) and len(asked) <= MAX_TOLD:
        return says.format(asked)
    return f"does not fit the schema's {error.validator}"


def _pointer(path: Iterable[str | int]) -> str:
    return _short("".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path))


def _short(text: str) -> str:
    """Names are the agent's and the caller's to choose: twenty long ones would not fit in one answer."""
    return text if len(text) <= MAX_TOLD else text[:MAX_TOLD] + "…"
