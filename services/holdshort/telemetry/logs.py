"""Log set-up, and every log event once: JSON lines on stdout, pretty on a terminal.

Never a payload, message, argument or state: what is logged is ids, codes and places in the log.
"""

import logging
import sys
from collections.abc import MutableMapping
from enum import StrEnum
from typing import Any

import orjson
import structlog


class Event(StrEnum):
    """The names of log events; a name is never reworded, queries depend on it."""

    SERVICE_STARTS = "service_starts"
    SERVICE_STOPS = "service_stops"
    LANES_ASSIGNED = "lanes_assigned"
    LANE_RUNS = "lane_runs"
    LANE_RETRIES = "lane_retries"
    LANE_FENCED = "lane_fenced"
    LANE_HALTED = "lane_halted"
    LANE_LOSS_ACCEPTED = "lane_loss_accepted"
    LANE_CLOSED = "lane_closed"
    INPUT_REFUSED = "input_refused"
    RECORD_DEAD = "record_dead"
    PAUSE_OPENED = "pause_opened"
    PAUSE_SETTLED = "pause_settled"
    PAUSE_REOPENED = "pause_reopened"
    RUN_LOST = "run_lost"
    DECISION_JUDGED = "decision_judged"
    BATCH_FORWARDED = "batch_forwarded"
    BATCH_HELD = "batch_held"
    AGENT_RUN_STARTED = "agent_run_started"
    AGENT_RUN_FAILED = "agent_run_failed"
    AGENT_RUN_SKIPPED = "agent_run_skipped"
    APPROVAL_FAILED = "approval_failed"


def logger() -> Any:
    """A structlog logger; events are members of Event."""
    return structlog.get_logger()


def set_up(*, pretty: bool | None = None, level: str = "INFO") -> None:
    """Log to stdout: JSON lines, or for people if `pretty` (by default: on a terminal)."""
    if pretty is None:
        pretty = sys.stdout.isatty()
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Any = structlog.dev.ConsoleRenderer() if pretty else structlog.processors.JSONRenderer(_dumps)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[_own, renderer])
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def _own(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop what the standard library's bridge adds for itself."""
    event.pop("_record", None)
    event.pop("_from_structlog", None)
    return event


def _dumps(event: Any, **_: Any) -> str:
    return orjson.dumps(event, default=str).decode()
