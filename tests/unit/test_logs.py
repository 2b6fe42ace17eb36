"""Logs: what libraries say is in our form and names our service; what is for debugging is not in it."""

import json
import logging
import socket
import subprocess
import sys
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from holdshort.telemetry.health import Management

PROGRAM = """
import asyncio, gc, logging
from aiokafka.errors import NodeNotReadyError
from holdshort.telemetry.logs import Event, logger, set_up
set_up(level={level!r}, service="router")

async def main():
    asyncio.get_running_loop().create_future().set_exception(NodeNotReadyError("a node"))
    asyncio.get_running_loop().create_future().set_exception(ValueError("ours"))
    gc.collect()

logging.getLogger("aiokafka.consumer.group_coordinator").error("Group Coordinator Request failed: %s", "x")
logging.getLogger("elsewhere").warning("something of a library")
logger().warning(Event.LANE_RETRIES)
logger().bind(service="gatekeeper").warning(Event.LANE_RETRIES)
asyncio.run(main())
"""


def logged(level: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(level=level)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_aiokafka_says_is_left_out_and_everything_else_names_the_service() -> None:
    lines = logged("INFO")

    assert [line["event"].splitlines()[0] for line in lines] == [
        "something of a library",
        "lane_retries",
        "lane_retries",
        "Future exception was never retrieved",
    ]
    assert "ours" in json.dumps(lines[-1])
    assert [line["service"] for line in lines] == ["router", "router", "gatekeeper", "router"]


def test_at_debug_it_is_there() -> None:
    told = json.dumps(logged("DEBUG"))

    assert "Group Coordinator Request failed" in told
    assert "NodeNotReadyError" in told


class Nobody:
    """A service that does nothing."""

    def live(self) -> bool:
        return True

    def ready(self) -> bool:
        return False

    def report(self) -> Any:
        return []


def test_a_management_port_that_is_taken_is_told_once_with_what_to_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        management = Management("127.0.0.1", port, Nobody(), CollectorRegistry())
        with caplog.at_level(logging.DEBUG), pytest.raises(OSError, match="is taken") as refused:
            management.start()

    assert str(refused.value) == (
        f"the management port 127.0.0.1:{port} is taken: set HOLDSHORT_MANAGEMENT_PORT to one that is free"
    )
    assert caplog.records == []


def test_any_port_will_do_and_is_told() -> None:
    management = Management("127.0.0.1", 0, Nobody(), CollectorRegistry())
    management.start()
    try:
        host, _, port = management.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
    finally:
        management.stop()
