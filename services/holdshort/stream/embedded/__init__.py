"""A real Apache Kafka on a bare machine: no Docker, no installed Java; pinned jars, one cached download."""

from holdshort.stream.embedded.broker import (
    BrokerSettings,
    EmbeddedKafka,
    UseAnotherDirectoryError,
    as_super_user,
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
from holdshort.stream.embedded.leash import leashed
from holdshort.stream.embedded.node import ReadLogError
from holdshort.stream.embedded.properties import Security

__all__ = [
    "BrokerSettings",
    "ConnectOnceError",
    "EmbeddedKafka",
    "EmbeddedKafkaError",
    "InstallExtraError",
    "Progress",
    "ReadLogError",
    "Security",
    "UseAnotherDirectoryError",
    "as_super_user",
    "free_ports",
    "jars_cached",
    "leashed",
    "prefetch",
    "transactions_work",
]
