"""A ledger says on the wire what it knows, within what Kafka takes, and names what nobody works on."""

from hypothesis import given
from hypothesis import strategies as st

from holdshort.sdk.ledger import HORIZON, LARGEST, Ledger

KAFKAS_LIMIT = 4096
OFFSETS = st.integers(0, HORIZON - 1)
WORKERS = st.sampled_from(["5f3a9c01", "a0b1c2d3", "ffffffff"])


def test_a_run_is_read_then_waits_then_begins_then_is_over() -> None:
    ledger = Ledger(10)
    ledger.read(10)
    ledger.read(11)

    assert ledger.encode() == (12, '{"v":1,"waiting":[1,2],"begun":{}}')

    ledger.begin(10, "w1")

    assert ledger.encode() == (12, '{"v":1,"waiting":[1],"begun":{"w1":[2]}}')

    ledger.end(10)
    ledger.end(11)

    assert ledger.encode() == (12, "")


def test_a_run_that_was_not_executed_after_all_waits_again() -> None:
    ledger = Ledger(10)
    ledger.read(10)
    ledger.begin(10, "w1")

    ledger.defer(10)

    assert ledger == Ledger(11, {10}, {})


def test_what_is_over_is_not_deferred() -> None:
    ledger = Ledger(10)

    ledger.defer(9)

    assert ledger == Ledger(10)


@given(st.sets(OFFSETS, max_size=100), st.dictionaries(OFFSETS, WORKERS, max_size=100))
def test_what_was_committed_is_read_as_it_was(waiting: set[int], begun: dict[int, str]) -> None:
    ledger = Ledger(HORIZON, waiting - set(begun), begun)

    assert Ledger.decode(*ledger.encode()) == ledger


@given(
    st.sets(st.integers(0, 10**9), max_size=500),
    st.dictionaries(st.integers(0, 10**9), WORKERS, max_size=2000),
)
def test_it_always_fits_and_never_forgets_who_waits(waiting: set[int], begun: dict[int, str]) -> None:
    ledger = Ledger(10**9 + 1, {10**9 - offset % 900 for offset in waiting}, begun)

    position, metadata = ledger.encode()

    assert len(metadata) <= KAFKAS_LIMIT
    assert Ledger.decode(position, metadata).waiting == ledger.waiting


def test_of_begun_runs_the_newest_are_kept() -> None:
    ledger = Ledger(HORIZON, set(), {offset: f"worker-{offset:04}" for offset in range(HORIZON)})

    position, metadata = ledger.encode()
    kept = Ledger.decode(position, metadata).begun

    assert len(metadata) <= LARGEST
    assert set(kept) == set(range(HORIZON - len(kept), HORIZON))
    assert len(kept) > 100


def test_begun_runs_beyond_the_horizon_are_left_to_the_lease() -> None:
    ledger = Ledger(10 + HORIZON, set(), {9: "w1", 10: "w1"})

    assert Ledger.decode(*ledger.encode()).begun == {10: "w1"}


def test_a_position_that_somebody_has_set_by_hand_is_a_position_alone() -> None:
    for metadata in ("", "set by kim", "[]", '{"v":2,"waiting":[1]}', '{"v":1,"waiting":"x","begun":[]}'):
        assert Ledger.decode(7, metadata) == Ledger(7)


def test_distances_that_lead_nowhere_are_passed_over() -> None:
    told = '{"v":1,"waiting":[0,-1,8,true,1.5,2],"begun":{"w1":[99,1]}}'

    assert Ledger.decode(7, told) == Ledger(7, {5}, {6: "w1"})


def test_begun_runs_of_workers_that_are_gone_are_orphans() -> None:
    ledger = Ledger(10, {3}, {5: "gone", 6: "here", 7: "gone"})

    assert ledger.orphans({"here"}) == {5, 7}


def test_a_takeover_reads_from_the_first_run_that_waits_or_is_an_orphan() -> None:
    ledger = Ledger(10, {6}, {4: "here", 5: "gone"})

    assert ledger.reread_from({5}) == 5
    assert ledger.reread_from(set()) == 6
    assert Ledger(10, set(), {4: "here"}).reread_from(set()) == 10
