"""What every program of the SDK does around its service: settings, logs, signals, the exit status."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import structlog
from pydantic import ValidationError

from holdshort.settings import (
    KafkaSettings,
    MendSettingsError,
    Settings,
    explained,
    tell_what_is_unread,
)
from holdshort.stream.errors import Fatal
from holdshort.telemetry.logs import Event, logger, set_up


def wiring(kafka: KafkaSettings | None, prefix: str | None) -> tuple[KafkaSettings, str]:
    """The cluster and the prefix: as given, else of the environment. Raises MendSettingsError."""
    tell_what_is_unread(os.environ)
    try:
        return kafka or KafkaSettings(), Settings().prefix if prefix is None else prefix
    except ValidationError as error:
        raise MendSettingsError(explained(error)) from error


def main(
    serve: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None], service: str | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends the process at once.

    `service` stands in every line of the log: `agent-<agent>` or `team-<team>`, as the principal is called.

    Crash-only: what cannot be mended from within ends the process with status 1, and whoever supervises it
    starts another.
    """
    _set_up_logs(service)
    try:
        asyncio.run(_until_signalled(serve, stop))
    except (Fatal, MendSettingsError) as error:
        logger().error(Event.SERVICE_STOPS, error=str(error))
        sys.exit(1)


async def _until_signalled(serve: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        stop()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    await serve()


def _set_up_logs(service: str | None) -> None:
    """JSON lines (or for people on a terminal), unless the program has chosen already."""
    if not structlog.is_configured() and not logging.getLogger().handlers:
        set_up(service=service)
