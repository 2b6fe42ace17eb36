"""Deadlines are looked at when they are due, never before, and none is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from holdshort.stream.deadlines import GRAIN_MS, Deadlines


def test_a_key_is_looked_at_in_the_second_in_which_it_is_due() -> None:
    deadlines = Deadlines()
    deadlines.add(b"k", 1_500)

    assert list(deadlines.pop(1_500)) == []
    assert list(deadlines.pop(2_000)) == [b"k"]
    assert deadlines.next_at() is None


@given(st.lists(st.tuples(st.integers(0, 20_000), st.binary(max_size=2))), st.integers(0, 20_000))
def test_what_is_due_is_found_and_what_is_not_is_kept(added: list[tuple[int, bytes]], now: int) -> None:
    deadlines = Deadlines()
    for at, key in added:
        deadlines.add(key, at)

    found = sorted(deadlines.pop(now))
    rest = sorted(deadlines.pop(10**9))

    assert sorted(found + rest) == sorted(key for _, key in added)
    assert len(found) >= sum(at <= now - GRAIN_MS for at, _ in added)
    assert len(found) <= sum(at <= now for at, _ in added)
