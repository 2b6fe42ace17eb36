"""The life of a task: what may follow what."""

from holdshort.stream.lifecycle import State


def test_a_closed_task_is_never_anything_again() -> None:
    assert not any(State.CLOSED.can_become(state) for state in State)


def test_a_lane_runs_only_after_it_was_fenced_and_restored() -> None:
    assert {state for state in State if state.can_become(State.RUNNING)} == {State.RESTORING}
    assert {state for state in State if state.can_become(State.RESTORING)} == {State.FENCING}


def test_trouble_leads_back_to_the_fence_from_everywhere() -> None:
    trouble = {State.FENCING, State.RESTORING, State.RUNNING}
    assert all(state.can_become(State.FENCING) for state in trouble)


def test_a_halted_lane_goes_on_only_from_the_fence() -> None:
    assert {state for state in State if State.HALTED.can_become(state)} == {State.FENCING, State.CLOSED}
