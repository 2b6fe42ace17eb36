"""A real LangGraph agent behind the agent worker: it pauses by `interrupt()` and restores its checkpoint.

Runs in an environment of its own (requirements.txt), as `python program.py CHECKPOINTS EFFECTS`: the file in
which SqliteSaver keeps the threads, and a file to which a tool adds a line for everything that it does.
The graph decides by program instead of by a language model; interrupts, checkpoints and their translation to
AG-UI are the framework's own.
"""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from ag_ui.core import RunAgentInput
from ag_ui_langgraph import LangGraphAgent
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from holdshort.sdk.agent import AgentWorker

ARGUMENTS: Final = {"amount": 950, "to": "ACME"}
CALL: Final = {"id": "call-transfer", "name": "transfer_money", "args": ARGUMENTS}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}},
    "required": ["approved"],
}


def graph_of(effects: Path) -> StateGraph[Any]:
    """Plan, ask, pay: what stands before the question must not run again when the answer is there."""

    def did(what: str, **more: Any) -> None:
        with effects.open("a") as file:
            file.write(json.dumps({"did": what, **more}) + "\n")

    def plan(_: MessagesState) -> dict[str, Any]:
        did("plan")
        return {"messages": [AIMessage("", id="plan", tool_calls=[CALL])]}

    def pay(state: MessagesState) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        answer = interrupt(
            {
                "reason": "langgraph:transfer",
                "message": f"Pay {call['args']['to']} {call['args']['amount']}?",
                "toolCallId": call["id"],
                "responseSchema": SCHEMA,
            }
        )
        said = "denied"
        if answer["approved"] is True:
            arguments = answer.get("editedArgs", call["args"])
            did("pay", **arguments)
            said = f"{arguments['amount']} sent to {arguments['to']}"
        return {"messages": [ToolMessage(said, tool_call_id=call["id"], id="paid")]}

    def report(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"Done: {state['messages'][-1].content}", id="report")]}

    graph: StateGraph[Any] = StateGraph(MessagesState)
    for node in (plan, pay, report):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "pay")
    graph.add_edge("pay", "report")
    graph.add_edge("report", END)
    return graph


def main(checkpoints: str, effects: str) -> None:
    worker = AgentWorker("default", session_timeout=10.0)
    graph = graph_of(Path(effects))

    @worker.on_run
    async def run(run_input: RunAgentInput) -> AsyncIterator[Any]:
        async with AsyncSqliteSaver.from_conn_string(checkpoints) as saver:
            agent = LangGraphAgent(
                name="default",
                graph=graph.compile(checkpointer=saver),
                emit_interrupt_outcome=True,
                enable_legacy_on_interrupt_event=False,
                emit_raw_events=False,
            )
            async for event in agent.run(run_input):
                yield event

    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
