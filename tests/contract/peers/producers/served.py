"""A producer behind its own HTTP endpoint, driven over standard input: a line of JSON in, one out.

Runs in the environment of the producers, not in the project's: only the standard library and theirs.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, Protocol

import httpx

Call = dict[str, Any]
Turn = list[Call] | str | Exception
"""What the scripted model does at one call of it: calls tools, says something, or fails."""


class Stage:
    """What a scripted agent and its tools share: the model's turns, what was done, and a gate to wait at."""

    def __init__(self, turns: list[Turn]) -> None:
        self._turns = iter(turns)
        self.asked = 0
        self.acted: list[str] = []
        self.reached = asyncio.Event()
        self.may_go_on = asyncio.Event()

    def turn(self) -> Turn:
        """What the model does at this call of it."""
        self.asked += 1
        return next(self._turns)

    def act(self, what: str) -> str:
        self.acted.append(what)
        return f"{what} done"

    async def act_when_released(self, what: str) -> str:
        self.reached.set()
        await self.may_go_on.wait()
        return self.act(what)


class Producer(Protocol):
    """One agent of a framework behind the framework's own endpoint."""

    def __init__(self, stage: Stage) -> None: ...

    @property
    def app(self) -> Any:
        """The ASGI application, with its endpoint at `/`."""

    def advance(self, seconds: float) -> None:
        """Let time pass for the agent."""


class Served:
    """The conversation with one producer."""

    def __init__(self, producer: type[Producer], scripts: Callable[[str], list[Turn]]) -> None:
        self._producer = producer
        self._scripts = scripts
        self._stage = Stage([])
        self._current: Producer | None = None
        self._running: asyncio.Task[dict[str, Any]] | None = None

    async def do(self, asked: dict[str, str]) -> dict[str, Any]:
        match asked["do"]:
            case "begin":
                self._stage = Stage(self._scripts(asked["script"]))
                self._current = self._producer(self._stage)
                return {}
            case "post":
                return await self._post(asked["body"])
            case "start":
                self._running = asyncio.create_task(self._post(asked["body"]))
                await self._stage.reached.wait()
                return {}
            case "release":
                assert self._running is not None
                self._stage.may_go_on.set()
                return await self._running
            case "advance":
                assert self._current is not None
                self._current.advance(float(asked["seconds"]))
                return {}
            case unknown:
                raise ValueError(unknown)

    async def _post(self, body: str) -> dict[str, Any]:
        assert self._current is not None
        acted, asked = len(self._stage.acted), self._stage.asked
        transport = httpx.ASGITransport(app=self._current.app, raise_app_exceptions=False)
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        async with httpx.AsyncClient(transport=transport, base_url="http://producer") as client:
            answer = await client.post("/", content=body.encode(errors="surrogatepass"), headers=headers)
        lines = answer.text.splitlines() if answer.status_code == 200 else []
        events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
        return {
            "status": answer.status_code,
            "events": events,
            "acted": self._stage.acted[acted:],
            "model_calls": self._stage.asked - asked,
        }


async def serve(producer: type[Producer], scripts: Callable[[str], list[Turn]]) -> None:
    """Answer every line until standard input ends; what a framework prints goes to standard error."""
    served, out = Served(producer, scripts), sys.stdout
    with redirect_stdout(sys.stderr):
        while line := await asyncio.to_thread(sys.stdin.readline):
            answer = await served.do(json.loads(line))
            out.write(json.dumps(answer) + "\n")
            out.flush()


def scripts(name: str) -> list[Turn]:
    """What the model does, call by call, in a script of that name.

    `transfer_money` and `migrate_database` ask before they act, `look_up` does not and waits for a release.
    """
    transfer: Call = {"id": "c1", "tool": "transfer_money", "arguments": {"amount": 5}}
    migrate: Call = {"id": "c2", "tool": "migrate_database", "arguments": {"table": "orders"}}
    known: dict[str, list[Turn]] = {
        "nothing": ["Done.", "Done.", "Done."],
        "one question": [[transfer], "Done.", "Done."],
        "two questions": [[transfer, migrate], "Done.", "Done."],
        "one question, then another": [[transfer], [{**migrate, "id": "c3"}], "Done.", "Done."],
        "the same question twice": [[transfer], [transfer], "Done.", "Done."],
        "one question, then a failure": [[transfer], RuntimeError("it broke"), "Done.", "Done."],
        "one question, then a long answer": [
            [transfer],
            [{"id": "c4", "tool": "look_up", "arguments": {}}],
            "Done.",
            "Done.",
        ],
    }
    return list(known[name])
