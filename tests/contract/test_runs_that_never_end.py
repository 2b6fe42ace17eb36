"""Contract 6: leases, and the runs that are given up."""

import pytest
from tests.expected import admitted, ignored, lost, opened, passed, refused, settled
from tests.playbook import START_MS, Playbook, agent, client, later, pause_of, run_of, sdk

from holdshort.contract.state import Pointer, Try
from holdshort.contract.thread import next_due

MINUTE_MS = 60_000


def due_in(play: Playbook) -> float:
    """Minutes from the last record to the lease's end."""
    due = next_due(play.state(), play.transcript.rules)
    assert due is not None
    assert due.kind == "lease"
    return (due.at - play.at) / MINUTE_MS


# -- when ---------------------------------------------------------------------------------------------------


def test_until_its_first_event_a_run_has_its_start_lease() -> None:
    play = Playbook(start_lease_ms=7 * MINUTE_MS)
    play(client.asks("r1"))
    assert due_in(play) == 7
    play(later(seconds=419.999))
    assert play.state().run is not None
    play >> later(seconds=0.001) << lost()


def test_from_its_first_event_on_it_has_its_run_lease() -> None:
    play = Playbook(start_lease_ms=7 * MINUTE_MS, run_lease_ms=3 * MINUTE_MS)
    play(client.asks("r1"))
    play >> sdk.starts("r1") << passed()
    assert due_in(play) == 3


def test_events_renew_it() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), later(minutes=14), sdk.says(run="r1"), later(minutes=14))
    assert play.state().run is not None
    play >> later(minutes=1) << lost()


def test_it_is_written_at_most_every_quarter_lease_and_counts_from_there() -> None:
    play = Playbook(run_lease_ms=4 * MINUTE_MS)
    play(client.asks("r1"), sdk.starts("r1"), sdk.says(run="r1"))
    seen = run_of(play).seen_at
    play(sdk.says(run="r1").but(after=57))
    assert run_of(play).seen_at == seen
    play(sdk.says(run="r1").but(after=2))
    assert run_of(play).seen_at == play.at
    assert due_in(play) == 4


def test_an_outage_of_the_gate_does_not_make_what_was_queued_dead_on_arrival() -> None:
    play = Playbook()
    outage = play.at + 120 * MINUTE_MS
    play >> client.asks("r1").but(clock=outage) << admitted()
    assert play.emit("runs.default")["headers"]["holdshort-start-by"] == str(outage + 15 * MINUTE_MS)
    play(later(minutes=130))
    assert play.state().run is not None
    play >> sdk.starts("r1").but(at=play.at - 125 * MINUTE_MS) << passed()
    assert run_of(play).due(15 * MINUTE_MS, 15 * MINUTE_MS) == outage + 15 * MINUTE_MS


def test_an_outside_run_has_a_run_lease_too() -> None:
    play = Playbook()
    play(agent.starts("x"))
    assert due_in(play) == 15
    play >> later(minutes=15) << lost(under=["x"])


def test_a_run_that_has_ended_has_none() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1"), later(minutes=20))
    assert play.silent


# -- what happens -------------------------------------------------------------------------------------------


def test_the_client_gets_run_error() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> later(minutes=16) << lost(shown=["RUN_ERROR"], under=["r1"], settled=None, generation=None)

    assert play.events()[0]["code"] == "RUN_LOST"
    assert play.emit("events")["headers"]["holdshort-code"] == "RUN_LOST"
    assert play.state().ended[0].outcome == "lost"
    play >> client.asks("r2") << admitted()


def test_a_run_that_never_spoke_is_started_for_clients_first() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> later(minutes=16) << lost(shown=["RUN_STARTED", "RUN_ERROR"])


def test_it_is_lost_as_of_its_due_time() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> later(hours=3) << lost()
    assert play.state().ended[0].at == START_MS + 1000 + 15 * MINUTE_MS


def test_a_pause_it_answered_is_open_again() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))
    play >> later(minutes=16) << lost(open=["a"], status="open", generation=1)

    tried = pause_of(play).try_
    assert tried == Try("r2", Pointer("inputs", 0, 0), "lost", START_MS + 2000 + 15 * MINUTE_MS)
    assert play.pending() == {"a"}
    play >> client.resumes("r3", a=True) << admitted()


def test_a_pause_alone_has_no_lease() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    play(later(hours=1000))
    assert pause_of(play).ids == ("a",)
    play >> client.asks("r2") << refused("PENDING_INTERRUPTS")


# -- should it speak after all ------------------------------------------------------------------------------


def test_it_is_current_again_with_all_that_was_kept_of_it() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), sdk.calls("c", "pay"), sdk.event("STATE_SNAPSHOT"))
    before = run_of(play)
    play >> later(minutes=16) << lost()
    play >> sdk.beats("r1") << ignored()

    after = run_of(play)
    assert (after.calls, after.state, after.admission) == (before.calls, before.state, before.admission)
    assert after.seen_at == play.at


def test_it_can_be_lost_again() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    for _ in range(3):
        play >> later(minutes=16) << lost(status="open")
        play >> sdk.says(run="r2") << passed(status="resuming", shown=["RUN_STARTED", "TEXT_MESSAGE_CONTENT"])
    play >> sdk.finishes("r2") << settled(1)
    assert [run.outcome for run in play.state().ended] == ["success", "interrupt"]


def test_what_was_admitted_meanwhile_is_newer() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    play >> later(minutes=16) << lost()
    play >> client.resumes("r3", a=True) << admitted()
    play >> sdk.finishes("r2") << ignored(emitted=[], status="resuming")
    play >> sdk.finishes("r3") << settled(1)


def test_all_of_a_lost_run_is_kept_only_while_it_is_the_newest() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> later(minutes=16) << lost()
    assert play.state().ended[0].lost is not None
    play(client.asks("r2"), sdk.finishes("r2"))
    assert [run.lost for run in play.state().ended] == [None, None]


@pytest.mark.parametrize("end", ["finishes", "fails", "interrupts"])
def test_a_lost_run_that_ends_after_all_is_remembered_once(end: str) -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> later(minutes=16) << lost()
    play(getattr(sdk, end)("r1", *(["a"] if end == "interrupts" else [])))
    assert [run.run_id for run in play.state().ended] == ["r1"]
