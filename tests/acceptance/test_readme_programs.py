"""The programs of README, run as they stand there, beside services with the configuration of README."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.clients import an_input
from tests.installations import Installation, installed
from tests.readme import README

pytestmark = [pytest.mark.broker, pytest.mark.system]

TEXT = README.read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


@asynccontextmanager
async def programs(installation: Installation, directory: Path) -> AsyncIterator[list[Process]]:
    """Every Python program of README, in a process of its own; each must stop in order at the end."""
    environment = os.environ | {
        "KAFKA_BOOTSTRAP_SERVERS": installation.stack.bootstrap_servers,
        "HOLDSHORT_PREFIX": installation.prefix,
    }
    running = []
    for number, text in enumerate(blocks("python")):
        file = directory / f"program_{number}.py"
        file.write_text(text)
        running.append(await asyncio.create_subprocess_exec(sys.executable, str(file), env=environment))
    try:
        yield running
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        codes = [await process.wait() for process in running]
    assert codes == [0] * len(running)


async def test_the_agent_asks_and_the_team_answers(bootstrap_servers: str, tmp_path: Path) -> None:
    (config,) = blocks("yaml")
    async with (
        installed(bootstrap_servers, tmp_path, config) as installation,
        programs(installation, tmp_path) as running,
    ):
        assert len(running) == 2
        wire = installation.wire
        wire.send("inputs", an_input("t", "r1"))

        await wire.until(lambda _: any(e.value["type"] == "RUN_FINISHED" for e in wire.of("events", "t")))
        await wire.until(lambda _: any("resume" in run.value for run in wire.of("runs.default", "t")))
        await wire.until(lambda _: "result" in wire.of("events", "t")[-1].value)

        ended = wire.of("events", "t")[-1].value
        assert ended["result"] == {"approved": True}
        assert [receipt.value["verdict"] for receipt in wire.of("receipts.payments", "t")] == ["accepted"]


def test_they_are_short() -> None:
    for text in blocks("python"):
        assert len([line for line in text.splitlines() if line.strip()]) <= 15
