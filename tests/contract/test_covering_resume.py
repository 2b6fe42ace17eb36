"""Row *covering resume* of contract 3: OPEN; complete and valid."""

import pytest
from tests.expected import admitted, opened, refused, settled
from tests.playbook import Playbook, Said, agent, cancelled, client, resolved, run_of, sdk, team

from holdshort.contract.state import Pointer


def open_ab() -> Playbook:
    play = Playbook()
    play >> agent.interrupts("r1", "a", "b") << opened("a", "b")
    return play


def test_the_pause_is_resuming_and_the_run_answers_it() -> None:
    play = open_ab()
    (
        play
        >> client.resumes("r2", a=True, b=cancelled).but(offset=7)
        << admitted(status="resuming", generation=1, open=[], emitted=["runs.default"])
    )

    run = run_of(play)
    assert (run.run_id, run.answers, run.admission) == ("r2", play.nth(1), Pointer("inputs", 0, 7))
    assert run.batch is not None


def test_the_original_bytes_are_forwarded() -> None:
    play = open_ab()
    entries = (
        '[{"status":"resolved","payload":null,"interruptId":"b"}, {"interruptId":"a","status":"cancelled"}]'
    )
    said = Said("inputs", ' {"runId":"r2","threadId":"\\u0074","resume":' + entries + ',"n":1.0e2}', offset=9)
    verdict = play.verdict(said)
    assert verdict.kind == "admitted"
    assert verdict.emits[0].value == str(said.value).encode()


def test_the_agent_is_told_the_generation_it_answers() -> None:
    play = open_ab()
    play >> client.resumes("r2", a=True, b=True).but(offset=7) << admitted()
    assert play.emit("runs.default")["headers"] == {
        "holdshort-run": "r2",
        "holdshort-admission": "inputs/0/7",
        "holdshort-start-by": str(play.at + 15 * 60_000),
        "holdshort-generation": str(play.nth(1)),
    }


def test_it_goes_to_the_agent_that_paused_whatever_a_header_names() -> None:
    play = Playbook(agents=["default", "other"])
    play(client.asks("r1").having(agent="other"), agent.interrupts("r1", "a").but(topic="agent-events.other"))
    play >> client.resumes("r2", a=True).having(agent="default") << admitted(to="other")


def test_an_agent_that_is_no_longer_configured_cannot_be_resumed() -> None:
    play = Playbook(agents=["another"], default_agent="another")
    play >> agent.interrupts("r1", "a") << opened("a")
    play >> client.resumes("r2", a=True) << refused("UNKNOWN_AGENT", open=["a"], status="open")


def test_new_messages_beside_it_are_legal() -> None:
    play = open_ab()
    steer = client.resumes("r2", a=cancelled, b=cancelled).adding(
        messages=[{"id": "1", "role": "user", "content": "something else"}]
    )
    play >> steer << admitted()


def test_a_tool_message_for_the_interrupts_call_beside_it_is_legal() -> None:
    play = open_ab()
    message = {"id": "1", "role": "tool", "toolCallId": "c", "content": "{}"}
    play >> client.resumes("r2", a=1, b=1).adding(messages=[message]) << admitted()


@pytest.mark.parametrize("parent", [None, "", "r1", "another", 5, {}])
def test_a_parent_run_id_alone_makes_no_difference(parent: object) -> None:
    play = open_ab()
    play >> client.resumes("r2", a=1, b=1).adding(parentRunId=parent) << admitted()


@pytest.mark.parametrize("run", ["r1", "r2", "R1"])
def test_it_may_come_under_any_run_id_that_is_not_in_flight(run: str) -> None:
    play = open_ab()
    play >> client.resumes(run, a=1, b=1) << admitted()


def test_unknown_members_and_the_order_of_entries_make_no_difference() -> None:
    play = open_ab()
    said = client.resumes("r2", b=1, a=resolved(2)).adding(unknown={"x": 1})
    entries = [{**entry, "unknown": 1} for entry in said.value["resume"]]
    play >> said.adding(resume=entries) << admitted()


def test_after_a_failure_the_same_batch_under_another_run_id_is_a_retry() -> None:
    play = open_ab()
    play(client.resumes("r2", a=1, b=1), sdk.fails("r2"))
    play >> client.resumes("r3", a=1, b=1) << admitted()


def test_after_a_failure_the_very_same_input_written_later_is_a_retry() -> None:
    play = open_ab()
    play(client.resumes("r2", a=1, b=1), sdk.fails("r2"))
    play >> client.resumes("r2", a=1, b=1) << admitted()


def test_after_a_failure_another_batch_is_allowed() -> None:
    play = open_ab()
    play(client.resumes("r2", a=1, b=1), sdk.fails("r2"))
    play >> client.resumes("r3", a=cancelled, b=cancelled) << admitted()
    play >> sdk.finishes("r3") << settled(1)


def test_the_routers_answers_on_behalf_of_whoever_asked() -> None:
    play = Playbook(trust_principal=frozenset({"inputs"}))
    play(client.asks("r1").having(principal="ada"), sdk.interrupts("r1", "a"))
    play >> team.resumes("hs-1", a=1) << admitted()
    assert play.emit("runs.default")["headers"]["holdshort-principal"] == "ada"


def test_a_clients_answer_is_on_behalf_of_that_client() -> None:
    play = Playbook(trust_principal=frozenset({"inputs"}))
    play(client.asks("r1").having(principal="ada"), sdk.interrupts("r1", "a"))
    play >> client.resumes("r2", a=1) << admitted()
    assert "holdshort-principal" not in play.emit("runs.default")["headers"]


def test_the_run_that_answers_starts_with_the_interrupted_runs_calls() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.interrupts("r1", "a"), client.resumes("r2", a=1))
    assert [call.name for call in run_of(play).calls] == ["pay"]
