"""Row *finished* of contract 2: any other RUN_FINISHED of the current or an outside run."""

from typing import Any

import pytest
from tests.expected import admitted, opened, passed, settled
from tests.playbook import Playbook, agent, client, sdk

ENDS: list[Any] = [None, {"type": "success"}, {"type": "cancelled"}, {"type": "novel", "x": 1}]


@pytest.mark.parametrize("outcome", ENDS)
def test_the_run_ends_and_its_event_passes_as_it_came(outcome: Any) -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.finishes("r1", outcome).adding(result=[1.0]) << passed(shown=["RUN_FINISHED"], settled=None)

    assert play.events()[0]["result"] == [1.0]
    assert play.state().run is None
    play >> client.asks("r2") << admitted()


@pytest.mark.parametrize("outcome", ENDS)
def test_a_pause_it_answered_is_settled(outcome: Any) -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a")
    play(client.resumes("r2", a=True), sdk.starts("r2"))
    play >> sdk.finishes("r2", outcome) << settled(1, shown=["RUN_FINISHED"], open=[], generation=None)

    (gone,) = play.state().gone
    assert (gone.how, gone.answered_by, gone.generation) == ("settled", "r2", play.nth(1))
    assert play.pending() == set()


@pytest.mark.parametrize(
    ("outcome", "recorded"),
    [
        ({"type": "success"}, "success"),
        (None, "success"),
        ({"type": "cancelled"}, "cancelled"),
        ({"type": "novel"}, "success"),
    ],
)
def test_how_it_ended_is_remembered_and_an_unknown_type_counts_as_success(
    outcome: Any, recorded: str
) -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.finishes("r1", outcome))
    assert play.state().ended[0].outcome == recorded


def test_an_explicit_null_outcome_is_absent() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.finishes("r1").adding(outcome=None) << passed(shown=["RUN_FINISHED"])


def test_a_run_that_never_started_is_started_by_us() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.finishes("r1") << passed(shown=["RUN_STARTED", "RUN_FINISHED"], under=["r1"])


def test_an_outside_run_may_end_without_having_started() -> None:
    play = Playbook()
    play >> agent.finishes("x") << passed(shown=["RUN_STARTED", "RUN_FINISHED"], under=["x"])
    assert play.state().ended[0].run_id == "x"


def test_over_the_limit_it_has_its_effect_and_the_client_gets_ours() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    (
        play
        >> sdk.finishes("r2").adding(result="x" * 1024 * 1024)
        << settled(1, shown=["RUN_FINISHED"], dead=["TOO_LARGE"], under=["r2"])
    )

    assert play.events() == [{"type": "RUN_FINISHED", "threadId": "t", "runId": "r2"}]
    assert play.pending() == set()


def test_over_the_limit_of_a_run_not_shown_ours_are_well_framed() -> None:
    play = Playbook()
    play(client.asks("r1"))
    (
        play
        >> sdk.finishes("r1").adding(result="x" * 1024 * 1024)
        << passed(shown=["RUN_STARTED", "RUN_FINISHED"], dead=["TOO_LARGE"])
    )
