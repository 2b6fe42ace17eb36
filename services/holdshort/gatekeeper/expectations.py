"""What a transcript expects of its answers, and how what came differs. Pure.

An expectation is an object of members that an answer has; only what it names is compared. `verdict` and
`code` may be lists of what is acceptable, `open` is a set of ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from holdshort.gatekeeper.transcript import MendTranscriptError

MEMBERS: Final = (
    "verdict", "code", "problems", "generation", "status", "open", "settled", "superseded", "emits",
)  # fmt: skip
_ANY_OF: Final = ("verdict", "code")


def read_expected(expected: Any) -> list[dict[str, Any]]:
    """The expectations of a line, one for each answer in its order. Raises MendTranscriptError."""
    several = expected if isinstance(expected, list) else [expected]
    for one in several:
        if not isinstance(one, dict):
            raise MendTranscriptError("expect must be an object, or a list of one for each answer")
        if unknown := [name for name in one if name not in MEMBERS]:
            known = ", ".join(MEMBERS)
            raise MendTranscriptError(f"expect: an answer has no member {unknown[0]!r}; it has {known}")
        if not isinstance(one.get("open", []), list):
            raise MendTranscriptError("expect: open must be a list of interrupt ids")
    return several


def unmet(expected: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the answers are not as expected: one sentence for each member that differs."""
    if len(expected) != len(answers):
        return [f"wanted {len(expected)} answers, got {len(answers)}"]
    told = []
    for number, (wanted, got) in enumerate(zip(expected, answers, strict=True), 1):
        which = f"answer {number}: " if len(answers) > 1 else ""
        told += [
            f"{which}{name}: wanted {_wanted(name, value)}, got {_text(got[name])}"
            for name, value in wanted.items()
            if not _fits(name, value, got[name])
        ]
    return told


def _fits(name: str, wanted: Any, got: Any) -> bool:
    if name in _ANY_OF and isinstance(wanted, list):
        return got in wanted
    if name == "open":
        return sorted(map(str, wanted)) == sorted(got)
    return bool(orjson.dumps(wanted, option=_SORTED) == orjson.dumps(got, option=_SORTED))


_SORTED: Final = orjson.OPT_SORT_KEYS


def _wanted(name: str, value: Any) -> str:
    if name in _ANY_OF and isinstance(value, list):
        return " or ".join(_text(one) for one in value)
    return _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
