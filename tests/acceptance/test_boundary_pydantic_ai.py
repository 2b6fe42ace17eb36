"""A real agent that replays from messages (pydantic-ai) goes on with what the router alone sends it."""

from pathlib import Path

import pytest
from tests.acceptance.boundary import Agent, installation, python, resumed_by_the_router

from holdshort.sdk.approvals import approve, deny

pytestmark = [pytest.mark.broker, pytest.mark.system]

CONFIG = """
agents: {default: {resume: replay}}
teams: {payments: {}, dba: {}}
routes:
  - {tool: transfer_money, team: payments}
  - {tool: migrate_database, team: dba}
"""


async def test_it_replays_from_messages_that_the_router_rebuilt(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    async with installation(bootstrap_servers, tmp_path, CONFIG) as here:
        agent = Agent(here, python("-m", "holdshort.cli", "demo-agent"), tmp_path / "agent.log", {})

        ended = await resumed_by_the_router(
            agent,
            "t",
            {
                "payments": approve(edited_args={"amount": 95, "to": "ACME"}, by="kim"),
                "dba": deny(by="sasha"),
            },
        )

        roles = [message["role"] for message in ended.batch["messages"]]
        assert roles == ["user", "assistant"]
        calls = {call["id"] for call in ended.batch["messages"][1]["toolCalls"]}
        assert calls == {"call-transfer_money", "call-migrate_database"}
        results = {one["toolCallId"]: one["content"] for one in ended.of("TOOL_CALL_RESULT")}
        assert results["call-transfer_money"] == "95 sent to ACME"
        assert "denied" in results["call-migrate_database"]
        said = "".join(one["delta"] for one in ended.of("TEXT_MESSAGE_CONTENT"))
        assert said.startswith("Done: transfer_money: 95 sent to ACME")
        assert [one.get("outcome", {}).get("type", "success") for one in ended.of("RUN_FINISHED")] == [
            "success"
        ]
