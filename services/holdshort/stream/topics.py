"""Every topic once: its key, who writes and reads it, how Kafka keeps it.

From this table come the topics that `holdshort topics apply` makes, the checks at start, the AsyncAPI
document, the access rules, the chart's KafkaTopics and README's table. Names are without the prefix.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from holdshort.contract.routes import RESERVED_TEAMS

DAY_MS: Final = 24 * 3600 * 1000
AUDIT_DAYS: Final = 90
MAX_MESSAGE: Final = 2 * 1024 * 1024
DEAD_LETTER_MAX_MESSAGE: Final = MAX_MESSAGE + 64 * 1024
GATEKEEPER: Final = "gatekeeper"
ROUTER: Final = "router"


class Topic(NamedTuple):
    """One topic. `partitions` is a kind: one for each partition of threads, or one for each lane."""

    name: str
    partitions: Literal["threads", "lanes"]
    key: str
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    compact: bool = False
    retention_days: int = 14
    append_time: bool = False
    max_message: int = MAX_MESSAGE

    @property
    def users(self) -> tuple[str, ...]:
        return (*self.writers, *self.readers)

    def config(self) -> dict[str, str]:
        """The settings that Kafka must have for it."""
        config = {
            "cleanup.policy": "compact" if self.compact else "delete",
            "message.timestamp.type": "LogAppendTime" if self.append_time else "CreateTime",
            "max.message.bytes": str(self.max_message),
        }
        if self.compact:
            return config | {
                "segment.bytes": str(64 * 1024 * 1024),
                "segment.ms": str(3600 * 1000),
                "min.cleanable.dirty.ratio": "0.1",
                "max.compaction.lag.ms": str(6 * 3600 * 1000),
                "delete.retention.ms": str(DAY_MS),
            }
        return config | {"retention.ms": str(self.retention_days * DAY_MS)}


THREAD: Final = "thread id"


def table(agents: Sequence[str], teams: Sequence[str]) -> list[Topic]:
    """All topics of an installation with these agents and teams."""
    return [
        Topic("inputs", "threads", THREAD, ("client",), (GATEKEEPER, ROUTER), append_time=True),
        Topic("resumes", "threads", THREAD, (ROUTER, "operator"), (GATEKEEPER, ROUTER), append_time=True),
        Topic("events", "threads", THREAD, (GATEKEEPER,), ("client",), retention_days=7),
        Topic(
            "pending",
            "threads",
            THREAD,
            (GATEKEEPER,),
            (GATEKEEPER, ROUTER, "tool", "operator"),
            compact=True,
            append_time=True,
        ),
        Topic("gathering", "threads", THREAD, (ROUTER,), (ROUTER, "tool", "operator"), compact=True),
        Topic("audit", "threads", THREAD, (GATEKEEPER, ROUTER), ("auditor",), retention_days=AUDIT_DAYS),
        Topic(
            "dead-letters",
            "threads",
            "the original key",
            (GATEKEEPER, ROUTER),
            ("operator",),
            retention_days=30,
            max_message=DEAD_LETTER_MAX_MESSAGE,
        ),
        *(
            Topic(f"{app}.positions", "lanes", "lane", (app,), (app, "auditor"), compact=True)
            for app in (GATEKEEPER, ROUTER)
        ),
        *(topic for agent in agents for topic in _of_agent(agent)),
        *(topic for team in (*teams, *RESERVED_TEAMS) for topic in _of_team(team)),
    ]


def _of_agent(agent: str) -> Iterator[Topic]:
    who = (f"agent-{agent}",)
    yield Topic(f"agent-events.{agent}", "threads", THREAD, who, (GATEKEEPER, ROUTER), append_time=True)
    yield Topic(f"runs.{agent}", "threads", THREAD, (GATEKEEPER,), who, retention_days=7)


def _of_team(team: str) -> Iterator[Topic]:
    who = (f"team-{team}",)
    yield Topic(f"approvals.{team}", "threads", "approval id", (ROUTER,), who, compact=True)
    yield Topic(f"decisions.{team}", "threads", THREAD, who, (ROUTER,), append_time=True)
    yield Topic(f"receipts.{team}", "threads", THREAD, (ROUTER,), who)
