"""A real agent that restores a checkpoint (LangGraph) goes on with what the router alone sends it.

Its packages are in an environment of their own: thirty more, for one test, which no user of ours needs.
"""

import json
import os
from pathlib import Path
from typing import Final

import pytest
from tests.acceptance.boundary import Agent, Ended, installation, resumed_by_the_router
from tests.contract.peers import made

from holdshort.sdk.approvals import Decision, approve, deny

pytestmark = [pytest.mark.broker, pytest.mark.system, pytest.mark.timeout(300)]

HERE: Final = Path(__file__).parent / "langgraph_agent"
SERVICES: Final = Path(__file__).parents[2] / "services"
CONFIG = """
agents: {default: {resume: restore}}
teams: {payments: {}}
routes:
  - {reason: "langgraph:transfer", team: payments}
"""


@pytest.fixture(scope="session")
def langgraph() -> Path:
    """The Python of an environment that has LangGraph; skipped where it cannot be made, but never in CI."""
    try:
        return made.python_with(HERE / "requirements.txt")
    except made.CannotBeMadeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"LangGraph cannot be had here: {str(error).splitlines()[0]}")


async def decided(bootstrap_servers: str, directory: Path, langgraph: Path, decision: Decision) -> Ended:
    """What came of the graph's thread after this decision."""
    async with installation(bootstrap_servers, directory, CONFIG) as here:
        files = [str(directory / name) for name in ("checkpoints.db", "effects.jsonl")]
        command = [str(langgraph), str(HERE / "program.py"), *files]
        agent = Agent(here, command, directory / "agent.log", {"PYTHONPATH": str(SERVICES)})
        return await resumed_by_the_router(agent, "t", {"payments": decision})


def effects(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / "effects.jsonl").read_text().splitlines()]


async def test_it_restores_its_checkpoint_and_goes_on_with_edited_arguments(
    bootstrap_servers: str, tmp_path: Path, langgraph: Path
) -> None:
    decision = approve(edited_args={"amount": 95, "to": "ACME"}, by="kim")

    ended = await decided(bootstrap_servers, tmp_path, langgraph, decision)

    assert effects(tmp_path) == [{"did": "plan"}, {"did": "pay", "amount": 95, "to": "ACME"}]
    (snapshot,) = ended.of("MESSAGES_SNAPSHOT")[-1:]
    assert [message["content"] for message in snapshot["messages"]][-2:] == [
        "95 sent to ACME",
        "Done: 95 sent to ACME",
    ]
    assert len(ended.of("RUN_FINISHED")) == 1


async def test_a_denial_reaches_the_graph_as_one(
    bootstrap_servers: str, tmp_path: Path, langgraph: Path
) -> None:
    await decided(bootstrap_servers, tmp_path, langgraph, deny(by="kim"))

    assert effects(tmp_path) == [{"did": "plan"}]
