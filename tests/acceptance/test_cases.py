"""Every case with a known answer, through a running gatekeeper on a real Kafka."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.clients import Json, Wire
from tests.installations import NO_ROUTES, Installation, installed

from holdshort.contract.keys import partition_of

pytestmark = [pytest.mark.broker, pytest.mark.system, pytest.mark.asyncio(loop_scope="module")]

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "contract" / "cases" / "agui.json").read_text()
)
TOPICS = ["inputs", "agent-events.default", "gatekeeper.positions", "pending", "audit"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(
    bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    directory = tmp_path_factory.mktemp("installation")
    async with installed(bootstrap_servers, directory, NO_ROUTES, routers=0, topics=TOPICS) as installation:
        yield installation


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
async def test_a_case_has_its_known_answer(gate: Installation, case: dict[str, Any]) -> None:
    thread = case["case"]
    lines = [_for_thread(line, thread) for line in case["transcript"]]

    offsets = [await _played(gate, line, thread) for line in lines]

    for expected, line, offset in zip(
        case["expect"], lines[-len(case["expect"]) :], offsets[-len(case["expect"]) :], strict=True
    ):
        if expected.keys() & {"verdict", "code"}:
            said = await _said(gate.wire, thread, line["topic"], offset)
            for name in expected.keys() & {"verdict", "code"}:
                assert said[name] in expected[name]
    if "open" in case["expect"][-1]:
        expected_open = set(case["expect"][-1]["open"])
        await gate.wire.until(lambda _: _open(gate.wire, thread) == expected_open, why="open is not as said")


def _for_thread(line: Json, thread: str) -> Json:
    """The cases all speak of thread `t`; here each has a thread of its own."""
    value = line["value"]
    if isinstance(value, dict) and value.get("threadId") == "t":
        value = value | {"threadId": thread}
    return line | {"key": thread, "value": value}


async def _played(gate: Installation, line: Json, thread: str) -> int:
    """Send one record, and wait until the gate has moved past it; returns its offset."""
    topic, partition = line["topic"], partition_of(thread.encode(), gate.partitions)
    before = len(gate.wire.of(topic, thread))
    gate.wire.send(topic, line["value"], key=thread, headers=line.get("headers"))
    await gate.wire.until(lambda _: len(gate.wire.of(topic, thread)) > before)
    offset = gate.wire.of(topic, thread)[before].offset
    await gate.wire.until(lambda _: _reached(gate.wire, topic, partition) > offset, why="it was not judged")
    return offset


def _reached(wire: Wire, topic: str, partition: int) -> int:
    positions = [seen.value["inputs"].get(topic, {}) for seen in wire.of("gatekeeper.positions")]
    return max((one[str(partition)][0] for one in positions if str(partition) in one), default=0)


async def _said(wire: Wire, thread: str, topic: str, offset: int) -> Json:
    """What the audit says of one record."""

    def said() -> list[Json]:
        sources = [(seen.value, seen.value["source"]) for seen in wire.of("audit", thread)]
        return [value for value, source in sources if (source["topic"], source["offset"]) == (topic, offset)]

    await wire.until(lambda _: bool(said()), why="the audit does not speak of it")
    return said()[0]


def _open(wire: Wire, thread: str) -> set[str]:
    state = wire.of("pending", thread)[-1].value or {}
    pause = state.get("pause") or {}
    if pause.get("status", "open") != "open":
        return set()
    return {interrupt["id"] for interrupt in pause.get("interrupts", ())}
