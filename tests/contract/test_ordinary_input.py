"""Row *ordinary input* of contract 3: no pause; no resume or an empty one."""

import pytest
from tests.expected import admitted, refused
from tests.playbook import Playbook, Said, client, run_of

from holdshort.contract.state import Pointer

MINUTE_MS = 60_000


def test_it_goes_to_the_default_agent_byte_for_byte() -> None:
    play = Playbook()
    said = Said("inputs", ' {"runId":"r1", "threadId":"t","n":1.0e2,"payload":null} ')
    verdict = play.verdict(said)

    assert [emit.topic for emit in verdict.emits] == ["runs.default"]
    assert verdict.emits[0].key == b"t"
    assert verdict.emits[0].value == str(said.value).encode()


@pytest.mark.parametrize("members", [{}, {"resume": None}, {"resume": []}])
def test_an_empty_resume_is_none(members: dict[str, object]) -> None:
    play = Playbook()
    play >> client.asks("r1", **members) << admitted()


def test_it_goes_to_the_agent_that_a_header_names() -> None:
    play = Playbook(agents=["default", "other"])
    play >> client.asks("r1").having(agent="other") << admitted(to="other")


def test_a_blank_header_names_none() -> None:
    play = Playbook()
    play >> client.asks("r1").having(agent=" ") << admitted(to="default")


@pytest.mark.parametrize("name", ["nobody", "Default", "default "])
def test_a_name_that_is_not_configured_is_an_unknown_agent(name: str) -> None:
    play = Playbook()
    play >> client.asks("r1").having(agent=name) << refused("UNKNOWN_AGENT")
    assert play.state().empty


def test_a_name_that_is_no_text_is_an_unknown_agent() -> None:
    play = Playbook()
    assert play.verdict(client.asks("r1"), ("holdshort-agent", b"\xff")).code == "UNKNOWN_AGENT"


def test_of_several_headers_the_last_counts() -> None:
    play = Playbook(agents=["default", "other"])
    verdict = play.verdict(client.asks("r1").having(agent="default"), ("holdshort-agent", b"other"))
    assert verdict.emits[0].topic == "runs.other"
    assert "holdshort-agent" not in dict(verdict.emits[0].headers)


def test_without_a_default_agent_a_header_is_needed() -> None:
    play = Playbook(default_agent=None)
    play >> client.asks("r1") << refused("UNKNOWN_AGENT")
    play >> client.asks("r1").having(agent="default") << admitted()


def test_the_run_is_in_flight_from_here_on() -> None:
    play = Playbook()
    play >> client.asks("r1").but(offset=7) << admitted()

    run = run_of(play)
    assert (run.run_id, run.agent, run.admission) == ("r1", "default", Pointer("inputs", 0, 7))
    assert (run.answers, run.batch, run.started, run.shown) == (None, None, False, False)
    assert run.admitted_at == play.at


def test_it_counts_as_admitted_when_the_gate_judged_it() -> None:
    """What was queued while the gate was out must not be dead on arrival."""
    play = Playbook()
    later = play.at + 60 * MINUTE_MS
    play >> client.asks("r1").but(clock=later) << admitted()
    assert run_of(play).admitted_at == later


def test_a_clock_behind_the_log_does_not_count() -> None:
    play = Playbook()
    play >> client.asks("r1").but(clock=5) << admitted()
    assert run_of(play).admitted_at == play.at


def test_the_agent_is_told_run_admission_and_until_when_to_start() -> None:
    play = Playbook()
    play >> client.asks("r1").but(offset=7, headers={"mine": "1"}) << admitted()
    assert play.emit("runs.default")["headers"] == {
        "mine": "1",
        "holdshort-run": "r1",
        "holdshort-admission": "inputs/0/7",
        "holdshort-start-by": str(play.at + 15 * MINUTE_MS),
    }


def test_headers_of_ours_and_traces_are_not_forwarded() -> None:
    play = Playbook()
    theirs = {"traceparent": "1", "tracestate": "2", "baggage": "3", "holdshort-generation": "4", "x": "5"}
    play >> client.asks("r1").but(headers=theirs) << admitted()
    headers = play.emit("runs.default")["headers"]
    assert set(headers) == {"x", "holdshort-run", "holdshort-admission", "holdshort-start-by"}


def test_a_principal_is_stripped_where_it_is_not_trusted() -> None:
    play = Playbook()
    play >> client.asks("r1").having(principal="ada") << admitted()
    assert "holdshort-principal" not in play.emit("runs.default")["headers"]
    assert run_of(play).principal is None


def test_a_principal_is_passed_on_where_it_is_trusted() -> None:
    play = Playbook(trust_principal=frozenset({"inputs"}))
    play >> client.asks("r1").having(principal="ada") << admitted()
    assert play.emit("runs.default")["headers"]["holdshort-principal"] == "ada"
    assert run_of(play).principal == "ada"
