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
    CONFIGURATION_TAKEN = "configuration_taken"
    CONFIGURATION_REFUSED = "configuration_refused"
    CONNECTION_NOT_ENCRYPTED = "connection_not_encrypted"
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
    THREAD_FORGOTTEN = "thread_forgotten"
    DECISION_JUDGED = "decision_judged"
    BATCH_FORWARDED = "batch_forwarded"
    BATCH_HELD = "batch_held"
    BATCH_SENT_AGAIN = "batch_sent_again"
    QUESTIONS_SHOWN_AGAIN = "questions_shown_again"
    QUESTION_REMINDED = "question_reminded"
    QUESTION_ESCALATED = "question_escalated"
    QUESTION_OVERFLOWED = "question_overflowed"
    QUESTION_OVERDUE = "question_overdue"
    QUESTION_ANSWERED_BY_ROUTER = "question_answered_by_router"
    QUESTION_CANCELLED_BY_ROUTER = "question_cancelled_by_router"
    ANSWER_EXPIRED = "answer_expired"
    ANSWER_OVERRULED = "answer_overruled"
    ROUTERS_ANSWER_UNFIT = "routers_answer_unfit"
    PAUSE_ABANDONED = "pause_abandoned"
    AGENT_RUN_STARTED = "agent_run_started"
    AGENT_RUN_FAILED = "agent_run_failed"
    AGENT_RUN_SKIPPED = "agent_run_skipped"
    APPROVAL_FAILED = "approval_failed"


def logger() -> Any:
    """A structlog logger; events are members of Event."""
    return structlog.get_logger()


def set_up(*, pretty: bool | None = None, level: str = "INFO", service: str | None = None) -> None:
    """Log to stdout: JSON lines, or for people if `pretty` (by default: on a terminal).

    `service` stands in every line that does not name one itself, also in those of libraries. What aiokafka
    says (a coordinator is not there yet, a broker is gone, again and again) is shown at DEBUG alone: what of
    it matters is told by events of ours.
    """
    if pretty is None:
        pretty = sys.stdout.isatty()
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _named(service),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # structlog's own way of showing an exception adds local variables, and passwords may be among them.
    plain = structlog.dev.plain_traceback
    console: Any = structlog.dev.ConsoleRenderer(exception_formatter=plain)
    renderer: Any = console if pretty else structlog.processors.JSONRenderer(_dumps)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        cache_logger_on_first_use=False,
    )
    formatter = structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[_own, renderer])
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter)
    debugging = level == "DEBUG"
    logging.getLogger("aiokafka").setLevel(logging.INFO if debugging else logging.CRITICAL)
    if not debugging:
        handler.addFilter(_is_not_of_aiokafka)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def _named(service: str | None) -> Any:
    def named(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if service is not None:
            event.setdefault("service", service)
        return event

    return named


def _is_not_of_aiokafka(record: logging.LogRecord) -> bool:
    """False for what asyncio tells of aiokafka: futures whose error nobody asked for, clients left open."""
    if record.name != "asyncio":
        return True
    error = record.exc_info[1] if record.exc_info else None
    return "aiokafka" not in type(error).__module__ and "AIOKafka" not in record.getMessage()


def _own(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop what the standard library's bridge adds for itself."""
    event.pop("_record", None)
    event.pop("_from_structlog", None)
    return event


def _dumps(event: Any, **_: Any) -> str:
    return orjson.dumps(event, default=str).decode()
