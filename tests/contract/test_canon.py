"""Canonical JSON (RFC 8785): what we write fast is what the library writes, to the byte."""

from typing import Any

import msgspec
import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from holdshort.contract.canon import canonical

TEXTS = st.text() | st.sampled_from(["é", "\U0001f600", "\uffff", "\x00\x1f\x7f", '\\"/', "\u2028"])
NUMBERS = st.integers(-(2**60), 2**60) | st.floats() | st.sampled_from([0, 1, 1e16, 5e-324, -0.0])
NAMES = TEXTS | st.sampled_from(["a", "b", "aa", "", "A"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
)


def by_the_library(value: Any) -> bytes | None:
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError):
        return None


@given(value=VALUES)
def test_it_is_the_librarys_form(value: Any) -> None:
    assert canonical(value) == by_the_library(value)


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [True, 1, "x"], "": None},
        {"\U00010000": 1, "\uffff": 2},  # sorted by UTF-16, not by UTF-8
        {"é": 1, "z": 2},
        [1.0, 1e21, 0.1, -0.0],
        2**53 - 1,
        2**53,
        -(2**53),
        {1: "a"},
        "\ud800",
        {"a": "\ud800"},
        list(range(2000)),
        float("nan"),
        ("a", "b"),
    ],
    ids=repr,
)
def test_what_orjson_would_write_otherwise_is_the_librarys_too(value: Any) -> None:
    assert canonical(value) == by_the_library(value)


@pytest.mark.parametrize("depth", [100, 254, 255, 300, 900, 5000])
def test_however_deep_it_is(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    assert canonical(value) == by_the_library(value)


@given(st.dictionaries(TEXTS, TEXTS | st.integers(-(2**63), 2**64 - 1) | st.none() | st.booleans()))
def test_events_of_ours_are_written_alike_by_either_writer(members: dict[str, Any]) -> None:
    """shown.py writes with msgspec, which takes members as they were written; other records with orjson."""
    assert msgspec.json.encode(members) == orjson.dumps(members)
