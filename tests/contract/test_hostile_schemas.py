"""Contract 5: response schemas come from agents, so they are hostile; each attack in a process of its own.

The attacks are those that hang, crash, fetch or fail open with `jsonschema` at its defaults.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
REFUSED, UNFIT, FITS = "SCHEMA_REFUSED", "INVALID_PAYLOAD", None
MOST_SECONDS = 3.0


class Attack(NamedTuple):
    """A schema (or its text), a payload, and the code by which the answer is refused."""

    schema: Any
    payload: Any = "x"
    code: str | None = REFUSED


def deep(levels: int, inner: Any = True, name: str = "not") -> Any:
    for _ in range(levels):
        inner = {name: inner}
    return inner


def chain(length: int) -> dict[str, Any]:
    links: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": links | {f"d{length}": {"type": "integer"}}}


def doubling(levels: int) -> dict[str, Any]:
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": defs | {f"d{levels}": {"type": "string"}}}


def hidden_id(**inside: Any) -> dict[str, Any]:
    """A reference through a subschema with an $id: what refers from there would refer inside of it."""
    hidden = {"$id": "urn:x", "foo": inside, "properties": {"z": {"$ref": "#/foo"}}}
    reference = {"$ref": "#/properties/p/$defs/y/properties/z"}
    return {"properties": {"p": {"$defs": {"y": hidden}}, "q": reference}, "foo": True}


CATASTROPHE = "a" * 33 + "!"
BACKTRACKING = {
    "nested quantifier": Attack({"pattern": "^(a+)+$"}, CATASTROPHE, UNFIT),
    "alternation": Attack({"pattern": "^(a|a)*$"}, CATASTROPHE, UNFIT),
    "in patternProperties": Attack({"patternProperties": {"^(a+)+$": {}}}, {CATASTROPHE: 1}, FITS),
    "in additionalProperties": Attack(
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {CATASTROPHE: 1}, UNFIT
    ),
    "in propertyNames": Attack({"propertyNames": {"pattern": "^(a+)+$"}}, {CATASTROPHE: 1}, UNFIT),
    "long text, long program": Attack({"pattern": ".{0,1000}Z$"}, "a" * 60_000, UNFIT),
    "text that thrashes the automaton": Attack({"pattern": "(a|b)*a(a|b){120}Z"}, "ab" * 30_000, UNFIT),
    "lookahead": Attack({"pattern": "(?=x)x"}),
    "lookbehind": Attack({"pattern": "(?<=x)y"}),
    "back reference": Attack({"pattern": r"(a)\1"}),
    "unbalanced": Attack({"pattern": "("}),
    "too long": Attack({"pattern": "a" * 257}),
    "no string": Attack({"pattern": 5}),
    "null": Attack({"pattern": None}),
    "repetition too large": Attack({"pattern": "a{1001}"}),
    "program too large": Attack({"pattern": r"(?i)(\pL{1,200}){1,5}"}),
    "many programs": Attack({"anyOf": [{"pattern": f".{{0,900}}{n}"} for n in range(100)]}),
    "bad pattern of a property": Attack({"patternProperties": {"(": {}}}, {"x": 1}),
    "bad pattern out of use": Attack({"$defs": {"x": {"pattern": "("}}}),
}
REFERENCES = {
    "http": Attack({"$ref": "http://127.0.0.1:1/schema.json"}),
    "https": Attack({"$ref": "https://example.org/schema.json#/x"}),
    "file": Attack({"$ref": "file:///etc/hostname"}),
    "relative": Attack({"$ref": "other.json"}),
    "metaschema": Attack({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
    "id and relative": Attack({"$id": "http://127.0.0.1:1/", "$ref": "x"}),
    "id": Attack({"$id": "urn:x"}),
    "id below": Attack({"properties": {"a": {"$id": "urn:x"}}}),
    "id of no string": Attack({"$defs": {"a": {"$id": 5}}, "properties": {"q": {"$ref": "#/$defs/a"}}}),
    "anchor": Attack({"$anchor": "a", "$ref": "#a"}),
    "dynamic": Attack({"$dynamicAnchor": "a", "$dynamicRef": "#a"}),
    "recursive 2019": Attack(
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"}
    ),
    "itself": Attack({"$ref": "#"}),
    "itself below": Attack({"properties": {"a": {"$ref": "#"}}}, {"a": {}}),
    "each other": Attack(
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    ),
    "each other out of use": Attack({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    "nothing": Attack({"$ref": "#/$defs/nowhere"}),
    "encoded": Attack({"$ref": "#/%24defs/a", "$defs": {"a": True}}),
    "no string": Attack({"$ref": ["#"]}),
    "null": Attack({"$ref": None}),
    "a list": Attack({"$ref": "#/allOf", "allOf": [True]}),
    "a text": Attack({"$ref": "#/title/0", "title": "abc"}),
    "beyond a list": Attack({"$ref": "#/allOf/7", "allOf": [True]}),
    "odd index": Attack({"$ref": "#/allOf/-1", "allOf": [True]}),
    "an enum's value": Attack({"$ref": "#/enum/0", "enum": [{"$ref": "http://127.0.0.1:1/"}]}),
    "a default": Attack({"$ref": "#/default", "default": {"pattern": "(?=x)"}}),
    "through an unknown keyword": Attack({"$ref": "#/x/y", "x": {"y": {"pattern": "(?=x)"}}}),
    "through a hidden id, remote": Attack(hidden_id(**{"$ref": "http://127.0.0.1:1/"}), {"q": "x"}),
    "through a hidden id, pattern": Attack(hidden_id(pattern="^(a+)+$(?=x)"), {"q": CATASTROPHE}),
    "through a hidden id, recursive": Attack(hidden_id(**{"$ref": "#/foo"}), {"q": "x"}),
    "doubling": Attack(doubling(26)),
    "doubling out of use": Attack({"$defs": doubling(26)["$defs"]}),
    "a long chain": Attack(chain(400)),
    "an endless chain": Attack(chain(995)),
}
SIZES = {
    "too many bytes": Attack({"title": "x" * 33_000}),
    "too deep": Attack(deep(40)),
    "far too deep": Attack(deep(240)),
    "too many nodes": Attack({"enum": list(range(2100))}),
    "too costly": Attack({"$defs": {"a": {"enum": list(range(900))}}, "allOf": [{"$ref": "#/$defs/a"}] * 6}),
    "unique items without a limit": Attack({"uniqueItems": True}, [{"n": n} for n in range(2000)]),
    "unique items with a large one": Attack({"uniqueItems": True, "maxItems": 257}, []),
    "unique items with an odd one": Attack({"uniqueItems": True, "maxItems": "9"}, []),
    "unique items below": Attack({"not": {"uniqueItems": True}}, []),
    "unevaluated items": Attack({"unevaluatedItems": False}, []),
    "unevaluated properties": Attack({"unevaluatedProperties": False}, {}),
    "a large payload for a costly schema": Attack(
        {"items": {"anyOf": [{"const": n} for n in range(300)]}}, ["x"] * 5000, UNFIT
    ),
    "many branches": Attack(
        {"oneOf": [{"required": [f"r{n}"]} for n in range(300)]}, {"a": "x" * 60_000}, UNFIT
    ),
    "a deep payload": Attack({"type": "integer"}, deep(200, 1), UNFIT),
    "a deep payload and a constant": Attack({"const": deep(25)}, deep(200), UNFIT),
    "a deep payload and unique items": Attack(
        {"uniqueItems": True, "maxItems": 9}, [deep(200), deep(201)], FITS
    ),
    "a payload of many names": Attack(
        {"additionalProperties": {"type": "integer"}}, {f"n{n}": n for n in range(3000)}, FITS
    ),
}
DIALECTS = {
    "draft 4": Attack({"$schema": "http://json-schema.org/draft-04/schema#"}),
    "draft 6": Attack({"$schema": "http://json-schema.org/draft-06/schema#"}),
    "a remote one": Attack({"$schema": "http://127.0.0.1:1/schema"}),
    "no string": Attack({"$schema": 5}),
    "below the root": Attack({"not": {"$schema": "http://json-schema.org/draft-04/schema#"}}),
    "below the root, the same": Attack({"not": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}),
    "vocabulary": Attack({"$vocabulary": {}}),
    "an unknown type": Attack({"type": "text"}),
    "a keyword of the wrong type": Attack({"minimum": "5"}),
    "a list where a schema must stand": Attack({"not": [True]}),
    "a text where a schema must stand": Attack({"properties": {"a": "string"}}),
    "properties that are a list": Attack({"properties": [{"type": "string"}]}),
    "required that is a text": Attack({"required": "approved"}),
    "a step of zero": Attack({"multipleOf": 0}, 1),
    "dependencies of draft 7": Attack(
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": 5}}, {}
    ),
}
ATTACKS = {
    f"{kind}: {name}": attack
    for kind, attacks in {
        "pattern": BACKTRACKING,
        "reference": REFERENCES,
        "size": SIZES,
        "dialect": DIALECTS,
    }.items()
    for name, attack in attacks.items()
}


def attacked(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.contract.attacked"]
    ran = subprocess.run(
        command, input=json.dumps(lines), capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    answers: list[dict[str, Any]] = json.loads(ran.stdout)
    return answers


def question(schema: Any, id_: str = "a") -> dict[str, Any]:
    return {"id": id_, "reason": "x", "responseSchema": schema}


def asked(*questions: Any) -> dict[str, Any]:
    outcome = {"type": "interrupt", "interrupts": list(questions)}
    value = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r0", "outcome": outcome}
    return {"topic": "agent-events.default", "at": 1, "key": "t", "value": value}


def answered(**payloads: Any) -> dict[str, Any]:
    entries = [{"interruptId": id_, "status": "resolved", "payload": one} for id_, one in payloads.items()]
    return {"topic": "inputs", "at": 2, "value": {"threadId": "t", "runId": "r1", "resume": entries}}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_opens_a_pause_all_the_same_and_is_judged_in_no_time(attack: Attack) -> None:
    opened, judged = attacked(asked(question(attack.schema)), answered(a=attack.payload))

    assert (opened["verdict"], opened["open"]) == ("opened", ["a"])
    assert judged["code"] == attack.code
    assert judged["verdict"] == ("refused" if attack.code else "admitted")
    assert opened["seconds"] + judged["seconds"] < MOST_SECONDS


def test_the_worst_pause_does_not_hold_the_partition() -> None:
    """Sixteen different schemas, each as large and as slow to admit as the profile lets pass."""
    patterns = [f"(.{{0,30}}){{{n}}}" for n in range(20, 33)]
    fields = {f"p{n}": {"type": "string", "minLength": 1} for n in range(220)}
    schemas = [
        {"title": str(k), "properties": fields, "anyOf": [{"pattern": p + str(k)} for p in patterns]}
        for k in range(16)
    ]
    (opened,) = attacked(asked(*[question(schema, f"i{k}") for k, schema in enumerate(schemas)]))
    assert opened["verdict"] == "opened"
    assert opened["seconds"] < MOST_SECONDS


def test_the_work_budget_is_one_for_all_searches_of_a_record() -> None:
    """One search of a long text with a long pattern takes a second; seven of them must not take seven."""
    slow = {"pattern": ".{0,1000}Z$"}
    payloads = {f"i{n}": "a" * 60_000 for n in range(7)}
    opened, judged = attacked(asked(*[question(slow, id_) for id_ in payloads]), answered(**payloads))
    assert (opened["verdict"], judged["code"]) == ("opened", UNFIT)
    assert judged["seconds"] < 1


def test_a_confined_process_really_is_one() -> None:
    """The hook is what proves that nothing is fetched: it must bite."""
    code = "from tests.contract.attacked import confine; confine(); open('/etc/hostname')"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert "PermissionError: open" in ran.stderr
