"""The agent of the chaos world: asks what its input wishes, does what was approved, writes it down."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ag_ui.core import RunAgentInput
from tests.chaos.story import CHUNKS, read_wish
from tests.clients import an_interrupt, finished, paused, started

from holdshort.sdk.agent import AgentWorker

SESSION_S = 6.0  # the least that Kafka allows by default
HEARTBEAT_S = 10.0
WORK_S = 0.05  # what each piece of a run takes, so that a kill can meet it


def write_down(effects: Path, run: RunAgentInput, interrupt: str, slip: str) -> None:
    """One line in one write: what a killed agent had done is there, whole."""
    line = {"thread": run.thread_id, "run": run.run_id, "interrupt": interrupt, "slip": slip}
    file = os.open(effects, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


async def work(effects: Path, run: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
    yield started(run.thread_id, run.run_id)
    for number in range(CHUNKS):
        await asyncio.sleep(WORK_S)
        yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": f"m-{run.run_id}", "delta": str(number)}
    if run.resume:
        for entry in run.resume:
            answer: Any = entry.payload
            if entry.status == "resolved" and answer["approved"]:
                write_down(effects, run, entry.interrupt_id, answer["slip"])
        await asyncio.sleep(WORK_S)
        yield finished(run.thread_id, run.run_id)
        return
    asked = []
    for number, question in enumerate(read_wish(str(run.messages[-1].content))):
        call = f"{run.run_id}-{number}"
        yield {
            "type": "TOOL_CALL_CHUNK",
            "toolCallId": call,
            "toolCallName": question.tool,
            "parentMessageId": f"m-{run.run_id}",
            "delta": question.arguments,
        }
        asked.append(an_interrupt(f"int-{call}", toolCallId=call))
    yield paused(run.thread_id, run.run_id, *asked) if asked else finished(run.thread_id, run.run_id)


def main(effects: Path) -> None:
    worker = AgentWorker("default", session_timeout=SESSION_S, heartbeat=HEARTBEAT_S, grace=5.0)
    worker.on_run(lambda run: work(effects, run))
    worker.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
