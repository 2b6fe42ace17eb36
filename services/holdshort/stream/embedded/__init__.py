"""A real Apache Kafka on a bare machine: no Docker, no installed Java; pinned jars, one cached download."""

from holdshort.stream.embedded.broker import (
    BrokerSettings,
    EmbeddedKafka,
    UseAnotherDirectoryError,
    free_ports,
    prefetch,
    transactions_work,
)
from holdshort.stream.embedded.jars import (
    ConnectOnceError,
    EmbeddedKafkaError,
    InstallExtraError,
    Progress,
    jars_cached,
)
from holdshort.stream.embedded.node import ReadLogError

__all__ = [
    "BrokerSettings",
    "ConnectOnceError",
    "EmbeddedKafka",
    "EmbeddedKafkaError",
    "InstallExtraError",
    "Progress",
    "ReadLogError",
    "UseAnotherDirectoryError",
    "free_ports",
    "jars_cached",
    "prefetch",
    "transactions_work",
]
