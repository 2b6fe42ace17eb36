"""The schedule of troubles is its seed's, and leaves nothing out."""

from itertools import islice

from tests.chaos.faults import EVERY_S, KINDS, TARGETS, schedule


def test_a_seed_is_a_schedule() -> None:
    first, again, other = (list(islice(schedule(seed), 50)) for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_every_trouble_comes_to_everyone() -> None:
    faults = list(islice(schedule(3), 500))

    assert {fault.kind for fault in faults} == set(KINDS)
    assert {fault.target for fault in faults if fault.kind == "kill"} == set(TARGETS)
    assert all(EVERY_S[0] <= fault.after <= EVERY_S[1] for fault in faults)
