"""The demo's agent: a real pydantic-ai agent with two tools that need approval, and a model without a key.

The model is pydantic-ai's FunctionModel: it decides by program instead of by a language model. Everything
else is the framework's own: its AG-UI adapter raises the interrupts, reads the answers and runs the tools.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from ag_ui.core import RunAgentInput
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

from holdshort.sdk.agent import AgentWorker

ASKED_FOR = {
    "transfer_money": '{"amount": 950, "to": "ACME"}',
    "migrate_database": '{"table": "orders"}',
}


async def _think(
    messages: Sequence[ModelMessage], _: AgentInfo
) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    """Call both tools at once; when they have returned, say what came of them."""
    returned = _returned(messages)
    if not returned:
        yield {
            number: DeltaToolCall(name, args, tool_call_id=f"call-{name}")
            for number, (name, args) in enumerate(ASKED_FOR.items())
        }
    else:
        yield "Done: " + "; ".join(f"{name}: {said.rstrip('.')}" for name, said in returned.items())


def _returned(messages: Sequence[ModelMessage]) -> dict[str, str]:
    parts = [part for message in messages for part in message.parts]
    return {part.tool_name: str(part.content) for part in parts if isinstance(part, ToolReturnPart)}


agent = Agent(FunctionModel(stream_function=_think), output_type=[str, DeferredToolRequests])


@agent.tool_plain(requires_approval=True)
def transfer_money(amount: float, to: str) -> str:
    """Send money."""
    return f"{amount:g} sent to {to}"


@agent.tool_plain(requires_approval=True)
def migrate_database(table: str) -> str:
    """Change a table of the live database."""
    return f"{table} migrated"


def worker() -> AgentWorker:
    """The agent behind the agent worker, as a user would write it."""
    agent_worker = AgentWorker("default")

    @agent_worker.on_run
    async def run(run_input: RunAgentInput) -> AsyncIterator[Any]:
        async for event in AGUIAdapter(agent=agent, run_input=run_input).run_stream():
            yield event

    return agent_worker
