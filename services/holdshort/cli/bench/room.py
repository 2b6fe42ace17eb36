"""Room for a load on somebody's cluster: topics under a prefix of its own, made, found and removed again."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from holdshort.settings import Config, KafkaSettings, MendSettingsError, Settings
from holdshort.stream.admin import Admin
from holdshort.stream.connection import connection_of
from holdshort.stream.errors import Fatal
from holdshort.stream.reach import reach
from holdshort.stream.topics import table

CLIENT: Final = "holdshort-bench"
OURS: Final = "bench"
LIST_S: Final = 10.0
REMOVE_S: Final = 30.0


def check_prefix(prefix: str) -> None:
    """No installation in use may ever be taken for a benchmark's. Raises MendSettingsError."""
    if OURS not in prefix:
        raise MendSettingsError(
            f"--prefix {prefix}: must contain `{OURS}`, for in the end all that begins with it is removed"
        )


class Room:
    """The topics that begin with a prefix."""

    def __init__(self, kafka: KafkaSettings, prefix: str) -> None:
        """Raises MendSettingsError, and Fatal for a connection that cannot even be tried."""
        check_prefix(prefix)
        self.prefix = prefix
        self._connection = connection_of(kafka, CLIENT)
        try:
            self._client = AdminClient({**self._connection.for_librdkafka(), "log_level": 0})
        except KafkaException as error:
            raise Fatal(f"Kafka cannot be used: {error.args[0].str()}") from error

    def make(self, settings: Settings, config: Config) -> None:
        """The topics of an installation, as `holdshort topics apply` makes them. Raises Fatal."""
        asyncio.run(self._make(settings, config))

    async def _make(self, settings: Settings, config: Config) -> None:
        admin = Admin(self._connection, settings.prefix)
        plan = await admin.plan(
            table(list(config.agents), list(config.teams)), settings.partitions, settings.lanes
        )
        await admin.apply(plan, replication=settings.replication, min_isr=settings.min_isr)

    def topics(self) -> list[str]:
        """Those that are there. Raises Fatal."""
        return sorted(topic for topic in self._cluster().topics if topic.startswith(self.prefix))

    def brokers(self) -> int:
        return len(self._cluster().brokers)

    def _cluster(self) -> Any:
        asyncio.run(reach(self._connection))
        try:
            return self._client.list_topics(timeout=LIST_S)
        except KafkaException as error:
            raise Fatal(f"the cluster cannot be reached: {error.args[0].str()}") from error

    def remove(self, topics: Sequence[str]) -> list[str]:
        """Delete topics; returns what could not be, and why."""
        left = []
        for topic, future in self._client.delete_topics(list(topics), request_timeout=REMOVE_S).items():
            try:
                future.result()
            except KafkaException as error:
                left.append(f"{topic}: {error.args[0].str()}")
        return left
