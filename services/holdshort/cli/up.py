"""`holdshort up`: Kafka (embedded, unless one is configured), topics, gatekeeper and router, supervised."""

import asyncio
from typing import Annotated

import typer


def up(
    gatekeepers: Annotated[int, typer.Option(min=1, help="Processes of the gatekeeper.")] = 1,
    routers: Annotated[int, typer.Option(min=1, help="Processes of the router.")] = 1,
) -> None:
    """Run everything on this machine: an embedded Kafka unless KAFKA_BOOTSTRAP_SERVERS names one, the topics,
    and each service in a process of its own. Ctrl-C stops all; a service that dies is started again.
    """
    from holdshort.cli.stack import Stack, show_until_stopped  # noqa: PLC0415 - heavy
    from holdshort.telemetry.logs import set_up  # noqa: PLC0415 - heavy

    set_up(level="WARNING")
    asyncio.run(show_until_stopped(Stack(gatekeepers=gatekeepers, routers=routers)))
