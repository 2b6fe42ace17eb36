"""Topic names with and without the installation's prefix, and records with the short ones."""

from typing import Any

from aiokafka import TopicPartition as KafkaTopicPartition

from holdshort.stream.records import Record, TopicPartition


class Names:
    """Topic names with and without the prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._short: dict[str, str] = {}

    def wire(self, where: TopicPartition) -> KafkaTopicPartition:
        return KafkaTopicPartition(self._prefix + where.topic, where.partition)

    def own(self, where: Any) -> TopicPartition:
        return TopicPartition(self.short(where.topic), where.partition)

    def short(self, topic: str) -> str:
        if topic not in self._short:
            self._short[topic] = topic.removeprefix(self._prefix)
        return self._short[topic]

    def record(self, raw: Any) -> Record:
        return Record(
            self.short(raw.topic),
            raw.partition,
            raw.offset,
            raw.key,
            raw.value,
            raw.headers,
            raw.timestamp,
        )
