"""What is wrong with settings, in our words: where and what to write; never a value, it may be a secret."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import yaml
from pydantic import ValidationError

ALIKE: Final = 0.9  # so that KAFKA_SASL_MECHANISMS is one of ours misspelt, KAFKA_SSL_KEYSTORE_FILE is not
_OURS: Final = ("KAFKA", "HOLD")
_STRICT: Final = "HOLDSHORT_"  # nobody else's: what of it is not known is an error
_PREFIXES: Final = {"KafkaSettings": "KAFKA_", "Settings": "HOLDSHORT_"}
_UNIONS: Final = ("int", "str", "bool", "float", "QuorumConfig")  # what pydantic adds to the place of a union
_NAME: Final = "a name is lower-case letters, digits and -, at most 40, with a letter or digit at both ends"
_SIZE: Final = "a size is a number and a unit: 64KiB, 2MiB"
_NUMBER: Final = "must be a whole number"
_SENTENCES: Final = {
    "extra_forbidden": "there is no such setting",
    "missing": "must be given",
    "literal_error": "must be {expected}",
    "int_parsing": _NUMBER,
    "int_type": _NUMBER,
    "int_from_float": _NUMBER,
    "float_type": "must be a number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text; quote it",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "does not have the form that it must have ({pattern})",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "list_type": "must be a list",
    "too_long": "must have at most {max_length} entries",
    "byte_size": _SIZE,
    "byte_size_unit": _SIZE,
}


class TwiceError(yaml.MarkedYAMLError):
    """A key of a mapping stands twice: one of them would be lost without a word."""


class Loader(yaml.SafeLoader):
    """YAML's safe loader, which takes no key twice."""

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
                raise TwiceError(problem=f"{key.value} stands there twice", problem_mark=key.start_mark)
            seen.add((key.tag, str(key.value)))
        return node


def parsed(text: str, where: str) -> Any:
    """The value of a YAML text. Raises ValueError with a sentence that begins with `where` and the line."""
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        kind = "" if isinstance(error, TwiceError) else " not YAML:"
        raise ValueError(f"{where}:{line}{kind} {error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{where}: not YAML: {str(error).splitlines()[0]}") from error


def explained(error: ValidationError, where: str = "") -> str:
    """One line a mistake, each beginning with `where`."""
    prefix = _PREFIXES.get(error.title, "")
    lines = []
    for one in error.errors(include_input=False, include_url=False):
        place = _place(one["loc"])
        name = prefix + place.upper() if prefix and place else place
        lines.append(f"{where}{name}{': ' if name else ''}{_sentence(one)}")
    return "\n".join(dict.fromkeys(lines))


def _place(parts: Sequence[int | str]) -> str:
    """As one would look for it in the file: `routes[0].team`."""
    place = ""
    for before, part in zip((None, *parts), parts, strict=False):
        if isinstance(part, int):
            place += f"[{part}]"
        elif part != "[key]" and (part not in _UNIONS or before == "metadata"):
            place += f".{part}" if place else part
    return place


def _sentence(one: Any) -> str:
    if (
        one["type"] == "string_pattern_mismatch"
        and one["loc"][-1] != "prefix"
        and "a-z0-9]" in str(one["ctx"])
    ):
        return _NAME
    sentence = _SENTENCES.get(one["type"])
    if sentence is None:
        return str(one["msg"].removeprefix("Value error, "))
    return sentence.format(**one.get("ctx", {}))


def unread(environment: Collection[str], known: Collection[str]) -> Iterator[str]:
    """What of the environment looks like one of our variables and is none: a sentence each.

    A variable that only begins like ours is somebody else's, as is one beside which ours is set, too.
    """
    for name in sorted(environment):
        if name in known or not name.startswith(_OURS) or name.startswith(_STRICT):
            continue
        near = get_close_matches(name, known, n=1, cutoff=ALIKE)
        if near and near[0] not in environment:
            yield f"{name} is not read; do you mean {near[0]}?"


def unknown(environment: Collection[str], known: Collection[str]) -> Iterator[str]:
    """Variables that begin with HOLDSHORT_ and are no settings: a sentence each."""
    for name in sorted(environment):
        if name.startswith(_STRICT) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=ALIKE)
            yield f"{name}: there is no such setting{f'; do you mean {near[0]}?' if near else ''}"


def variables(models: Mapping[str, Collection[str]]) -> set[str]:
    """The names of variables by their prefixes and fields."""
    return {prefix + name.upper() for prefix, names in models.items() for name in names}
