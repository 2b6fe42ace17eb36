"""A program of the SDK says in a sentence why it ends, and ends in order when it is told to."""

import asyncio
import os
import signal
import textwrap
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from holdshort.sdk import agent, approver
from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.program import main, wiring
from holdshort.sdk.testing import an_approval, an_input, decide, run_agent
from holdshort.settings import KafkaSettings, MendSettingsError
from holdshort.stream.errors import Fatal

Json = Any


def test_what_cannot_go_on_ends_with_a_sentence_and_a_status() -> None:
    async def serve() -> None:
        raise Fatal("topics are missing")

    with capture_logs() as logs, pytest.raises(SystemExit, match="1"):
        main(serve, lambda: None)

    assert [(log["event"], log["error"]) for log in logs] == [("service_stops", "topics are missing")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(number: int) -> None:
    stopping = asyncio.Event()

    async def serve() -> None:
        os.kill(os.getpid(), number)
        await stopping.wait()

    main(serve, stopping.set)

    assert stopping.is_set()


def test_the_cluster_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka:9092")
    monkeypatch.setenv("HOLDSHORT_PREFIX", "test.")

    kafka, prefix = wiring(None, None)

    assert (kafka.bootstrap_servers, prefix) == ("kafka:9092", "test.")


def test_what_is_given_stands_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDSHORT_PREFIX", "test.")
    given = KafkaSettings(bootstrap_servers="mine:9092")

    assert wiring(given, "") == (given, "")


def test_a_wrong_setting_is_told_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_SECURITY_PROTOCOL", "hunter2")

    with pytest.raises(MendSettingsError, match="KAFKA_SECURITY_PROTOCOL") as error:
        wiring(None, None)

    assert "hunter2" not in str(error.value)


# -- the examples of the docstrings -------------------------------------------------------------------------


def example(module: Any) -> dict[str, Any]:
    """Run the first example of a module's docstring, but for its last line, which would serve."""
    lines = (module.__doc__ or "").splitlines()[2:]
    code = textwrap.dedent("\n".join(lines[: next(n for n, line in enumerate(lines) if ".run()" in line)]))
    assert len([line for line in code.splitlines() if line]) < 15
    names: dict[str, Any] = {}
    exec(compile(code, str(Path(module.__file__)), "exec"), names)
    return names


async def test_the_example_of_an_agent() -> None:
    said = await run_agent(example(agent)["worker"], an_input("hello"))

    assert said.outcome == "success"
    assert said.transcript.messages[-1]["content"] == "Hello!"


async def test_the_example_of_an_approver() -> None:
    app = example(approver)["app"]

    small = await decide(app, an_approval(tool="transfer_money", args={"amount": 5}))
    large = await decide(app, an_approval(tool="transfer_money", args={"amount": 500}))

    assert small is not None
    assert small["decidedBy"] == "limits"
    assert large is None


# -- an agent worker ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Billing", "", "a.b"])
def test_an_agents_name_is_that_of_the_configuration(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        AgentWorker(name)


async def test_an_agent_needs_a_function() -> None:
    with pytest.raises(AssertionError, match="on_run"):
        await AgentWorker("billing").serve()
