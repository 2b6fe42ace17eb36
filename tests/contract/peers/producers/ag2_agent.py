"""AG2 as a producer: a real AG2 agent with a scripted model, behind its own ASGI endpoint."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ag2 import Agent, Context
from ag2.ag_ui import AGUIStream
from ag2.config import LLMClient
from ag2.events import BaseEvent, ModelMessage, ModelResponse, ToolCallEvent, ToolCallsEvent
from ag2.middleware import approval_required
from ag2.testing import TestConfig
from ag2.tools import tool
from starlette.applications import Starlette
from starlette.routing import Route
from tests.contract.peers.producers.served import Stage, scripts, serve


class Scripted(LLMClient):
    """A model that says what its stage tells it to say."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def __call__(self, messages: Sequence[BaseEvent], context: Context, **kwargs: Any) -> ModelResponse:
        turn = self._stage.turn()
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, str):
            message = ModelMessage(turn)
            await context.send(message)
            return ModelResponse(message)
        calls = [
            ToolCallEvent(id=call["id"], name=call["tool"], arguments=json.dumps(call["arguments"]))
            for call in turn
        ]
        return ModelResponse(tool_calls=ToolCallsEvent(calls))


class Script(TestConfig):
    """One model for all runs of the agent."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(raise_tool_errors=False)
        self._client = Scripted(stage)

    def create(self) -> Any:
        return self._client


class AG2:
    """One AG2 agent that asks before two of its tools, on a clock of its own."""

    def __init__(self, stage: Stage) -> None:
        self._ahead = timedelta()

        @tool(middleware=[approval_required()])
        def transfer_money(amount: int) -> str:
            """Transfer money."""
            return f"{amount}: {stage.act('transfer_money')}"

        @tool(middleware=[approval_required()])
        def migrate_database(table: str) -> str:
            """Migrate a table."""
            return f"{table}: {stage.act('migrate_database')}"

        @tool
        async def look_up() -> str:
            """Look something up."""
            return await stage.act_when_released("look_up")

        agent = Agent("peer", config=Script(stage), tools=[transfer_money, migrate_database, look_up])
        stream = AGUIStream(agent, now=self._now)
        self.app = Starlette(routes=[Route("/", stream.build_asgi())])

    def _now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)


if __name__ == "__main__":
    asyncio.run(serve(AG2, scripts))
