"""Row *malformed resume* of contract 3: its shape, and what only the router may write."""

from typing import Any

import pytest
from tests.expected import admitted, opened, quietly_refused, refused
from tests.playbook import Playbook, agent, client, pause_of, resolved, team

INVALID = refused("INVALID_RESUME", open=["a"])
GOOD = {"interruptId": "a", "status": "resolved", "payload": True}


def open_a() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r0", "a") << opened("a")
    return play


@pytest.mark.parametrize("resume", [{}, "a", 1, True, False, 0, "", GOOD])
def test_a_resume_is_a_list(resume: Any) -> None:
    play = open_a()
    play >> client.asks("r1", resume=resume) << INVALID
    assert play.error()["problems"] == [
        {"code": "INVALID_RESUME", "interruptId": None, "path": "/resume", "message": "must be a list"}
    ]


@pytest.mark.parametrize("entry", [None, "a", 1, [], [GOOD]])
def test_an_entry_is_an_object(entry: Any) -> None:
    play = open_a()
    play >> client.asks("r1", resume=[GOOD, entry]) << INVALID
    assert play.error()["problems"][0]["path"] == "/resume/1"


@pytest.mark.parametrize("id_", [None, "", " ", 1, ["a"], {}])
def test_an_interrupt_id_is_a_string_that_is_not_blank(id_: Any) -> None:
    play = open_a()
    play >> client.asks("r1", resume=[{**GOOD, "interruptId": id_}]) << INVALID


@pytest.mark.parametrize("status", [None, "", "Resolved", "approved", 1, True, ["resolved"]])
def test_a_status_is_resolved_or_cancelled(status: Any) -> None:
    play = open_a()
    play >> client.asks("r1", resume=[{**GOOD, "status": status}]) << INVALID


@pytest.mark.parametrize("missing", ["interruptId", "status"])
def test_id_and_status_must_be_there(missing: str) -> None:
    play = open_a()
    entry = {name: value for name, value in GOOD.items() if name != missing}
    play >> client.asks("r1", resume=[entry]) << INVALID


@pytest.mark.parametrize("metadata", [None, "x", [], 1])
def test_metadata_is_an_object(metadata: Any) -> None:
    play = open_a()
    play >> client.asks("r1", resume=[{**GOOD, "metadata": metadata}]) << INVALID


def test_metadata_of_ones_own_rides_along() -> None:
    play = open_a()
    play >> client.resumes("r1", a=resolved(True, mine={"x": 1}, ag_ui=2)) << admitted()


@pytest.mark.parametrize("name", ["holdshort", "holdshort:decidedBy", "holdshortX"])
def test_on_inputs_metadata_of_the_routers_is_refused(name: str) -> None:
    play = open_a()
    play >> client.asks("r1", resume=[{**GOOD, "metadata": {name: {"decidedBy": "ada"}}}]) << INVALID


def test_on_inputs_a_binding_is_let_through() -> None:
    play = open_a()
    play >> client.resumes("r1", a=True).echoing(1) << admitted()


def test_on_resumes_the_router_may_write_its_metadata() -> None:
    play = open_a()
    play >> team.resumes("hs-1", a=resolved(True, holdshort={"decidedBy": "ada"})) << admitted()


def test_on_inputs_a_run_id_of_ours_is_refused() -> None:
    play = open_a()
    play >> client.resumes("hs-1", a=True) << INVALID
    play >> client.asks("hs-2") << INVALID


def test_on_resumes_a_run_id_of_ours_is_what_the_router_uses() -> None:
    play = open_a()
    play >> team.resumes("hs-1", a=True) << admitted()


def test_on_resumes_an_input_that_is_neither_a_resume_nor_an_action_is_refused() -> None:
    play = open_a()
    ordinary = client.asks("hs-1").but(topic="resumes").having(generation=pause_of(play).generation)
    play >> ordinary << quietly_refused("INVALID_RESUME", open=["a"])
    play >> ordinary.adding(resume=None) << quietly_refused("INVALID_RESUME", open=["a"])


def test_on_resumes_an_unknown_action_is_refused() -> None:
    play = open_a()
    play >> team.abandons(1).having(action="settle") << quietly_refused("INVALID_RESUME")
    play >> team.abandons(1).having(action="ABANDON") << quietly_refused("INVALID_RESUME")


def test_on_resumes_a_resume_is_one_whatever_action_stands_beside_it() -> None:
    play = open_a()
    play >> team.resumes("hs-1", a=True).having(action="settle") << admitted()


def test_all_problems_are_listed() -> None:
    play = open_a()
    play >> client.asks("hs-1", resume=[1, {"interruptId": "a"}, GOOD]) << INVALID
    assert [problem["path"] for problem in play.error()["problems"]] == [
        "/resume/0",
        "/resume/1/status",
        "/runId",
    ]


def test_absent_and_null_mean_no_resume() -> None:
    for said in (client.asks("r1"), client.asks("r1", resume=None)):
        play = Playbook()
        play >> said << admitted()
        play = open_a()
        play >> said << refused("PENDING_INTERRUPTS")


def test_it_is_told_in_the_pause_if_it_came_from_resumes() -> None:
    play = open_a()
    play >> team.resumes("hs-1").adding(resume="x") << quietly_refused("INVALID_RESUME", emitted=[])
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert (refusal.run_id, refusal.code, refusal.at) == ("hs-1", "INVALID_RESUME", play.at)
