"""Row *expired* of contract 3: OPEN; a `resolved` entry whose interrupt has expired."""

from datetime import timedelta
from typing import Any

import pytest
from tests.expected import admitted, opened, quietly_refused, refused
from tests.playbook import (
    START,
    START_MS,
    Playbook,
    agent,
    cancelled,
    client,
    moment,
    pause_of,
    question,
    team,
)

EXPIRED = refused("INTERRUPT_EXPIRED", about=["a"], open=["a", "b"])


def open_until(expiry: Any) -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", question("a", expiresAt=expiry), "b") << opened("a", "b")
    return play


def at_second(second: float, **answers: Any) -> Any:
    return client.resumes("r2", answers).but(at=START_MS + round(second * 1000))


def test_an_answer_before_the_expiry_is_in_time() -> None:
    play = open_until(moment(60))
    play >> at_second(59.999, a=True, b=True) << admitted()


def test_at_the_very_moment_it_has_expired() -> None:
    play = open_until(moment(60))
    play >> at_second(60, a=True, b=True) << EXPIRED


def test_a_fraction_of_a_millisecond_counts() -> None:
    play = open_until((START + timedelta(seconds=60, microseconds=1)).isoformat())
    play >> at_second(60, a=True, b=True) << admitted()


def test_a_cancelled_entry_goes_on_for_that_is_how_a_thread_moves_past() -> None:
    play = open_until(moment(60))
    play >> at_second(99, a=cancelled, b=True) << admitted()


def test_expiry_does_not_depend_on_what_the_client_says_first() -> None:
    """`[cancelled, resolved]` for an expired id passes the reference client; here it is a duplicate."""
    play = open_until(moment(60))
    both = [cancelled.entry("a"), {"interruptId": "a", "status": "resolved"}, cancelled.entry("b")]
    play >> client.asks("r2", resume=both).but(at=START_MS + 99_000) << refused("DUPLICATE_INTERRUPT_ID")


@pytest.mark.parametrize(
    "expiry",
    [
        "2026-11-30T12:01:00Z",
        "2026-11-30T12:01:00z",
        "2026-11-30t12:01:00z",
        "2026-11-30T12:01:00+00:00",
        "2026-11-30T13:01:00+01:00",
        "2026-11-30T06:31:00-05:30",
        "2026-11-30T12:01:00",
        "2026-11-30 12:01:00",
        "2026-11-30T12:01:00.000000",
        "2026-11-30T12:01:00.000Z",
        "20261130T120100Z",
    ],
)
def test_no_offset_means_utc_and_an_offset_counts(expiry: str) -> None:
    play = open_until(expiry)
    play >> at_second(59, a=True, b=True) << admitted()
    play = open_until(expiry)
    play >> at_second(60, a=True, b=True) << EXPIRED


@pytest.mark.parametrize(
    "expiry",
    [
        "2026-11-30T12:00:60Z",
        "2026-11-30t12:00:60z",
        "2026-11-30T13:00:60.000+01:00",
        "2026-11-30 12:00:60",
        "2026-11-30T24:00:00+11:59",
        "2026-11-30T24:00+11:59",
    ],
)
def test_a_leap_second_and_the_midnight_of_24_hours_are_the_moment_after(expiry: str) -> None:
    play = open_until(expiry)
    play >> at_second(59.999, a=True, b=True) << admitted()
    play = open_until(expiry)
    play >> at_second(60, a=True, b=True) << EXPIRED


@pytest.mark.parametrize(
    "expiry",
    ["2026-11-30T12:00:61Z", "2026-11-30T12:00:600Z", "2026-11-30T24:00:01Z", "2026-11-30T12:60:00Z"],
)
def test_but_no_second_after_those(expiry: str) -> None:
    play = open_until(expiry)
    play >> at_second(10**7, a=True, b=True) << admitted()


@pytest.mark.parametrize(
    "expiry", ["never", "", " ", "2026-13-01T00:00:00Z", "tomorrow", 0, 1796040000, None, {}, [], True, "0"]
)
def test_what_cannot_be_read_never_expires(expiry: Any) -> None:
    play = open_until(expiry)
    play >> at_second(10**7, a=True, b=True) << admitted()


def test_the_ends_of_time_are_no_problem() -> None:
    for expiry in ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"):
        play = open_until(expiry)
        assert pause_of(play).ids == ("a", "b")
        play >> at_second(60, a=cancelled, b=cancelled) << admitted()


def test_the_records_append_time_counts_and_not_the_engines_clock() -> None:
    play = open_until(moment(60))
    play >> at_second(59, a=True, b=True).but(clock=START_MS + 10**9) << admitted()


def test_time_never_goes_back_in_a_partition() -> None:
    play = open_until(moment(60))
    play >> at_second(61, a=True) << refused("PARTIAL_RESUME")
    play >> at_second(5, a=True, b=True) << EXPIRED


def test_all_expired_ones_are_told() -> None:
    play = Playbook()
    old = [question(id_, expiresAt=moment(60)) for id_ in "abc"]
    play(agent.interrupts("r1", *old))
    play >> at_second(61, a=True, b=cancelled, c=True) << refused("INTERRUPT_EXPIRED", about=["a", "c"])


def test_the_routers_answer_can_be_too_late_as_well() -> None:
    play = open_until(moment(60))
    late = team.resumes("hs-1", a=True, b=True).but(at=START_MS + 60_000)
    play >> late << quietly_refused("INTERRUPT_EXPIRED")
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert refusal.code == "INTERRUPT_EXPIRED"
