"""`holdshort up`: Kafka (embedded, unless one is configured), topics, gatekeeper and router, supervised."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer


def up(
    gatekeepers: Annotated[int, typer.Option(min=1, help="Processes of the gatekeeper.")] = 1,
    routers: Annotated[int, typer.Option(min=1, help="Processes of the router.")] = 1,
    logs: Annotated[
        Path | None, typer.Option(help="A directory for the services' logs; without it they go at the end.")
    ] = None,
) -> None:
    """Run everything on this machine: an embedded Kafka unless KAFKA_BOOTSTRAP_SERVERS names one, the topics,
    and each service in a process of its own. Ctrl-C stops all; a service that dies is started again. If
    anything fails, the logs are kept.
    """
    from holdshort.cli.stack import Stack  # noqa: PLC0415 - heavy
    from holdshort.cli.status import show_until_stopped  # noqa: PLC0415 - heavy
    from holdshort.telemetry.logs import set_up  # noqa: PLC0415 - heavy

    set_up(level="WARNING", service="up")
    if logs is not None:
        _make(logs)
    asyncio.run(show_until_stopped(Stack(gatekeepers=gatekeepers, routers=routers, logs=logs)))


def _make(directory: Path) -> None:
    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MendSettingsError(f"--logs {directory}: {error.strerror}") from error
