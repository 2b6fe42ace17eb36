"""Processes with names of their own: killed and started again, given up by a planned stop, and confused."""

import asyncio
import re
import signal
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.installations import NO_ROUTES, Installation, installed

from holdshort.cli.stack import Process

pytestmark = [pytest.mark.broker, pytest.mark.system]


def rebalances(process: Process) -> float:
    (count,) = re.findall(r"\nholdshort_rebalances_total\S* (\S+)", process.ask("/metrics")[1])
    return float(count)


def members(installation: Installation) -> int:
    admin = AdminClient({"bootstrap.servers": installation.stack.bootstrap_servers})
    group = f"{installation.prefix}gatekeeper"
    return len(admin.describe_consumer_groups([group])[group].result().members)


async def lanes(process: Process) -> set[int]:
    _, report = await asyncio.to_thread(process.ask, "/readyz")
    return {lane["lane"] for lane in report["lanes"]}


async def shared(installation: Installation) -> tuple[Process, Process]:
    """Both gatekeepers, as soon as each has a lane."""
    one, other = installation.stack.processes
    async with asyncio.timeout(30):
        while {len(await lanes(one)), len(await lanes(other))} != {1}:
            pass
    return one, other


async def test_a_killed_process_has_its_lanes_back_and_the_others_are_not_disturbed(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(
        bootstrap_servers, tmp_path, NO_ROUTES, gatekeepers=2, routers=0, topics=["events"]
    ) as installation:
        one, other = await shared(installation)
        had, before = await lanes(one), rebalances(other)

        installation.stack.kill(one)
        await installation.stack.until_ready()

        assert await lanes(one) == had
        assert rebalances(other) == before


async def test_a_planned_stop_gives_the_lanes_up_at_once(bootstrap_servers: str, tmp_path: Path) -> None:
    async with installed(
        bootstrap_servers, tmp_path, NO_ROUTES, gatekeepers=2, routers=0, topics=["events"]
    ) as installation:
        one, _ = await shared(installation)
        assert members(installation) == 2
        assert one.process is not None
        process = one.process

        process.send_signal(signal.SIGTERM)
        await process.wait()

        assert members(installation) == 1


async def test_a_stack_that_stops_leaves_nothing_behind_even_what_it_was_just_starting_again(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installed(
        bootstrap_servers, tmp_path, NO_ROUTES, gatekeepers=1, routers=0, topics=["events"]
    ) as installation:
        (process,) = installation.stack.processes
        assert process.process is not None
        process.process.kill()
        await process.process.wait()
        while process.starts == 1:  # noqa: ASYNC110 - the very moment at which it is started again
            await asyncio.sleep(0)

    assert process.process.returncode is not None
