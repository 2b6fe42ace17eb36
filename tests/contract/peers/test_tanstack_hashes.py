"""Hashes are RFC 8785 by a library, and equal to those that TanStack's package computes."""

import json
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.contract.peers.peer import Peer
from tests.playbook import Playbook, client, question, sdk

from holdshort.contract.canon import canonical, schema_hash, sha256
from holdshort.contract.resume import digests, read_entries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # makes and asks other processes

SAFE = 2**53 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
MANY = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def theirs(clients: Peer, values: list[Any]) -> list[dict[str, str]]:
    answer: list[dict[str, str]] = clients.ask(
        {"do": "hashes", "texts": [json.dumps(one) for one in values]}
    )["answer"]
    return answer


@MANY
@given(values=st.lists(VALUES, min_size=1, max_size=30))
@example(
    values=[
        -0.0,
        1e21,
        1e-7,
        5e-324,
        0.1 + 0.2,
        333333333.3333333,
        {"ö": 1, "z": 2, "\U0001f600": 3, "\ufb33": 4},
    ]
)
@example(values=['\u0000\u001f\u007f\u2028"\\/', {"": {}, "a": []}, [[[]]]])
def test_the_canonical_form_is_theirs(values: list[Any], clients: Peer) -> None:
    for value, their in zip(values, theirs(clients, values), strict=True):
        ours = canonical(value)
        assert ours is not None
        assert (ours.decode(), "sha256:" + sha256(ours)) == (their["canonical"], their["hash"])


@MANY
@given(schemas=st.lists(st.dictionaries(TEXT, VALUES, max_size=5), min_size=1, max_size=8))
def test_a_schema_is_bound_under_the_hash_that_they_compute(
    schemas: list[dict[str, Any]], clients: Peer
) -> None:
    """Whatever stands in it: also one that can only be cancelled has its hash."""
    asked = [question(f"i{n}", responseSchema=schema) for n, schema in enumerate(schemas)]
    play = Playbook()(client.asks("r1"), sdk.starts("r1")) >> sdk.interrupts("r1", *asked)
    (got,) = play.unchecked
    shown = got["emits"][-1]["value"]["outcome"]["interrupts"]
    for their, interrupt in zip(theirs(clients, schemas), shown, strict=True):
        for name in ("holdshort:binding", "tanstack:interruptBinding"):
            assert interrupt["metadata"][name]["responseSchemaHash"] == their["hash"]


def test_an_integer_that_javascript_would_round_has_no_hash_here(clients: Peer) -> None:
    """They hash the rounded number, which is another schema; the question is bound without a hash."""
    (their,) = theirs(clients, [{"const": 2**53 + 1}])
    assert their["canonical"] == '{"const":9007199254740992}'
    assert schema_hash({"const": 2**53 + 1}) is None


# -- batches ------------------------------------------------------------------------------------------------

IDS = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=8),
    min_size=1,
    max_size=5,
    unique=True,
)


@st.composite
def batches(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries without metadata, whose ids both sides put into the same order."""
    entries = []
    for id_ in draw(IDS):
        entry: dict[str, Any] = {"interruptId": id_, "status": "cancelled"}
        if draw(st.booleans()):
            entry["status"] = "resolved"
            entry |= draw(st.fixed_dictionaries({}, optional={"payload": VALUES}))
        entries.append(entry)
    return entries


def fingerprints(clients: Peer, *some: list[dict[str, Any]]) -> list[str]:
    answer = clients.ask({"do": "fingerprints", "batches": [json.dumps(one) for one in some]})["answer"]
    return [one["fingerprint"] for one in answer]


def ours(batch: list[dict[str, Any]]) -> str:
    entries, problems = read_entries(batch, from_clients=True)
    assert problems == []
    return f"sha256:{digests(entries).strict}"


@MANY
@given(some=st.lists(batches(), min_size=1, max_size=10))
def test_a_batch_has_the_digest_that_they_compute(some: list[list[dict[str, Any]]], clients: Peer) -> None:
    assert [ours(batch) for batch in some] == fingerprints(clients, *some)


ANSWER = {"status": "resolved", "payload": True}


def test_they_sort_as_a_language_does_and_we_by_code_units(clients: Peer) -> None:
    """`localeCompare` depends on the reader's language, which a digest must not (contract 3.1)."""
    batch = [{"interruptId": one, **ANSWER} for one in ("a", "B")]
    (their,) = fingerprints(clients, batch)
    assert their == "sha256:" + sha256(canonical(batch) or b"")
    assert ours(batch) == "sha256:" + sha256(canonical(batch[::-1]) or b"")


def test_they_count_what_is_beside_an_answer_and_we_do_not(clients: Peer) -> None:
    """An echoed binding, or what comes with a cancellation, makes no other answer (contract 3.1)."""
    plain, told = [{"interruptId": "a", **ANSWER}], [{"interruptId": "a", **ANSWER, "metadata": {"x": 1}}]
    assert ours(plain) == ours(told)
    assert len(set(fingerprints(clients, plain, told))) == 2

    alone = [{"interruptId": "a", "status": "cancelled"}]
    assert ours(alone) == ours([{**alone[0], "payload": "no"}])
    assert len(set(fingerprints(clients, alone, [{**alone[0], "payload": "no"}]))) == 2


DIFFERENCES: Final = (
    test_an_integer_that_javascript_would_round_has_no_hash_here,
    test_they_sort_as_a_language_does_and_we_by_code_units,
    test_they_count_what_is_beside_an_answer_and_we_do_not,
)
"""Shown in PEERS.md."""
