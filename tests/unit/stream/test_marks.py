"""Marks and places survive being packed, and deadlines are never kept for earlier than they are."""

from hypothesis import given
from hypothesis import strategies as st

from holdshort.stream.marks import Mark, Marks, Place, whole_seconds

MARKS = st.builds(
    Mark,
    st.none() | st.integers(1, 4 * 10**12),
    st.lists(st.sampled_from(["a", "b", "team"])).map(tuple),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)
PLACES = st.builds(Place, st.integers(0, 2**63 - 1), st.integers(0, 2**31))


@given(st.lists(st.tuples(PLACES, MARKS)))
def test_what_was_packed_is_what_is_unpacked(held: list[tuple[Place, Mark]]) -> None:
    marks = Marks()
    packed = [marks.pack(place, mark) for place, mark in held]

    assert [marks.place(one) for one in packed] == [place for place, _ in held]
    assert [marks.mark(one) for one in packed] == [
        mark._replace(due=whole_seconds(mark.due)) for _, mark in held
    ]


@given(st.lists(st.tuples(PLACES, st.sampled_from([Mark(), Mark(None, ("a",), 10, 7)]))))
def test_equal_marks_are_counted_together(held: list[tuple[Place, Mark]]) -> None:
    marks = Marks()

    counted = list(marks.counted(marks.pack(place, mark) for place, mark in held))

    assert len(counted) == len({mark for _, mark in held})
    assert sum(times for _, times in counted) == len(held)


@given(st.integers(0, 4 * 10**12))
def test_a_deadline_is_kept_for_later_by_less_than_a_second(due: int) -> None:
    assert 0 <= (whole_seconds(due) or 0) - due < 1000
