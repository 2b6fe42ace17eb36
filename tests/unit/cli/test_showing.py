"""What others wrote, at a terminal: nothing that they choose moves, hides or reorders what people see."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdshort.cli.showing import moment, plain, short, span, until


@given(st.text())
def test_whatever_is_written_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    for shown in (plain(text), plain(text, lines=True).replace("\n", "").replace("\t", "")):
        assert not [one for one in shown if unicodedata.category(one)[0] == "C"]
        assert not [one for one in shown if unicodedata.category(one) in ("Zl", "Zp")]


def test_ordinary_text_of_any_language_is_left_as_it_is() -> None:
    for text in ("Überweisung 950 €", "承認しますか", "هل توافق؟", "👍🏽"):
        assert plain(text) == text


def test_what_is_shortened_says_so() -> None:
    assert short("a" * 61) == "a" * 59 + "…"
    assert short("a\nb") == r"a\u{a}b"


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0s"), (999, "0s"), (61_000, "1m 1s"), (3_600_000, "1h"), (90_061_000, "1d 1h"), (-5000, "5s")],
)
def test_durations_are_in_the_two_largest_units(ms: int, said: str) -> None:
    assert span(ms) == said


def test_times_are_in_utc_and_as_people_count() -> None:
    assert moment(1_796_040_000_123) == "2026-11-30T12:00:00Z"
    assert (moment(None), until(None, 0)) == ("-", "-")
    assert until(60_000, 0) == "in 1m"
    assert until(0, 60_000) == "1m ago"
