"""Deadlines are looked at when they are due, never before, and none is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from holdshort.stream.deadlines import GRAIN_MS, Deadlines


def test_a_key_is_looked_at_in_the_second_in_which_it_is_due() -> None:
    deadlines = Deadlines()
    deadlines.add(b"k", 1_500)

    assert list(deadlines.pop(1_500, 9)) == []
    assert list(deadlines.pop(2_000, 9)) == [b"k"]
    assert deadlines.next_at() is None


@given(st.lists(st.tuples(st.integers(0, 20_000), st.binary(max_size=2))), st.integers(0, 20_000))
def test_what_is_due_is_found_and_what_is_not_is_kept(added: list[tuple[int, bytes]], now: int) -> None:
    deadlines = Deadlines()
    for at, key in added:
        deadlines.add(key, at)

    found = sorted(deadlines.pop(now, 1_000))
    rest = sorted(deadlines.pop(10**9, 1_000))

    assert sorted(found + rest) == sorted(key for _, key in added)
    assert len(found) >= sum(at <= now - GRAIN_MS for at, _ in added)
    assert len(found) <= sum(at <= now for at, _ in added)


def test_no_more_than_asked_for_are_given_and_the_others_come_later() -> None:
    deadlines = Deadlines()
    for number in range(5):
        deadlines.add(b"%d" % number, 1_000 + number // 3 * 1_000)

    first = list(deadlines.pop(9_000, 2))
    rest = [*deadlines.pop(9_000, 2), *deadlines.pop(9_000, 2)]

    assert (len(first), len(rest)) == (2, 3)
    assert {*first, *rest} == {b"0", b"1", b"2", b"3", b"4"}
