"""`holdshort demo` and the agent and teams of the demo, which docker-compose runs as services, too."""

import asyncio
import sys
from typing import Annotated

import typer


def _check_extra() -> None:
    """Raises InstallExtraError: one sentence instead of an agent that does not start."""
    from holdshort.sdk import check_extra  # noqa: PLC0415 - not in every installation

    check_extra("demo", {"pydantic_ai": "pydantic-ai-slim"})


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a step, and a summary.")] = False,
) -> None:
    """The main job on a real Kafka, explained step by step: an agent of a public framework pauses, two teams
    decide, the gatekeeper is killed in between, and the run resumes exactly once. Exit 1 if anything is not
    as said.
    """
    _check_extra()
    from holdshort.cli.demo.story import tell  # noqa: PLC0415 - heavy
    from holdshort.telemetry.logs import set_up  # noqa: PLC0415 - heavy

    set_up(level="ERROR")
    sys.exit(asyncio.run(tell(as_json=as_json)))


def demo_agent() -> None:
    """Run the demo's agent behind the agent worker, on the Kafka of KAFKA_BOOTSTRAP_SERVERS."""
    _check_extra()
    from holdshort.cli.demo.agent import worker  # noqa: PLC0415 - heavy
    from holdshort.telemetry.logs import set_up  # noqa: PLC0415 - heavy

    set_up(service="demo-agent")
    worker().run()


def demo_team(name: Annotated[str, typer.Argument(help="The team: payments or dba.")]) -> None:
    """Run a team of the demo, whose policy decides at once, on the Kafka of KAFKA_BOOTSTRAP_SERVERS."""
    from holdshort.cli.demo.teams import approver  # noqa: PLC0415 - heavy
    from holdshort.telemetry.logs import set_up  # noqa: PLC0415 - heavy

    set_up(service=f"demo-team-{name}")
    approver(name).run()
