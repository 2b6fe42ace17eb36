"""ag-ui-strands as a producer: a real Strands agent with a scripted model, behind its FastAPI endpoint."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

from ag_ui_strands import StrandsAgent, StrandsAgentConfig, ToolBehavior, add_strands_fastapi_endpoint
from fastapi import FastAPI
from strands import Agent, tool
from strands.models.model import Model
from tests.contract.peers.producers.served import Call, Stage, scripts, serve

ASKING = ("transfer_money", "migrate_database")


class Scripted(Model):
    """A model that says what its stage tells it to say."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def update_config(self, **model_config: Any) -> None:
        """Nothing is configurable."""

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterable[Any]:
        turn = self._stage.turn()
        if isinstance(turn, Exception):
            raise turn
        yield {"messageStart": {"role": "assistant"}}
        for event in _text(turn) if isinstance(turn, str) else _calls(turn):
            yield event
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(turn, str) else "tool_use"}}


def _text(said: str) -> list[dict[str, Any]]:
    return [
        {"contentBlockStart": {"start": {}}},
        {"contentBlockDelta": {"delta": {"text": said}}},
        {"contentBlockStop": {}},
    ]


def _calls(calls: list[Call]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for call in calls:
        use = {"toolUseId": call["id"], "name": call["tool"]}
        arguments = {"toolUse": {"input": json.dumps(call["arguments"])}}
        events += [
            {"contentBlockStart": {"start": {"toolUse": use}}},
            {"contentBlockDelta": {"delta": arguments}},
            {"contentBlockStop": {}},
        ]
    return events


class Strands:
    """One Strands agent that asks before two of its tools."""

    def __init__(self, stage: Stage) -> None:
        @tool
        def transfer_money(amount: int) -> str:
            """Transfer money."""
            return f"{amount}: {stage.act('transfer_money')}"

        @tool
        def migrate_database(table: str) -> str:
            """Migrate a table."""
            return f"{table}: {stage.act('migrate_database')}"

        @tool
        async def look_up() -> str:
            """Look something up."""
            return await stage.act_when_released("look_up")

        template = Agent(
            model=Scripted(stage), tools=[transfer_money, migrate_database, look_up], callback_handler=None
        )
        behaviors = {name: ToolBehavior(interrupt_on_call=True) for name in ASKING}
        config = StrandsAgentConfig(tool_behaviors=behaviors, emit_messages_snapshot=False)
        self.app = FastAPI()
        add_strands_fastapi_endpoint(self.app, StrandsAgent(template, "peer", config=config), "/")

    def advance(self, seconds: float) -> None:
        raise NotImplementedError("its questions do not expire")


if __name__ == "__main__":
    asyncio.run(serve(Strands, scripts))
