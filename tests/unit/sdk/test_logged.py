"""Every line that a program of the SDK logs names its service, as its principal is called."""

import json
import subprocess
import sys
from typing import Any

import pytest

AGENT = """
from holdshort.sdk.agent import AgentWorker
worker = AgentWorker("billing")
worker.on_run(print)
worker.run()
"""
TEAM = """
from holdshort.sdk.approver import Approver
team = Approver("payments")
team.on("payments:*")(print)
team.run()
"""
OWN = """
import logging
logging.basicConfig(format="mine %(message)s")
"""


def logged(program: str) -> str:
    """A program's log up to its end, which a wrong setting brings about."""
    environment = {"KAFKA_SECURITY_PROTOCOL": "PIGEON"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    return done.stdout


def lines(program: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged(program).splitlines()]


@pytest.mark.parametrize(("program", "service"), [(AGENT, "agent-billing"), (TEAM, "team-payments")])
def test_a_line_names_the_service(program: str, service: str) -> None:
    told = lines(program)

    assert told[-1]["event"] == "service_stops"
    assert {line["service"] for line in told} == {service}


def test_a_program_that_has_set_up_its_own_logs_keeps_them() -> None:
    assert '"service"' not in logged(OWN + AGENT)
