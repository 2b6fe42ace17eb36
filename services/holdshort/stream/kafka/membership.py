"""The process's place in the group that shares the lanes."""

import time
from collections import defaultdict, deque
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaError
from aiokafka.protocol.commit import OffsetCommitRequest

from holdshort.stream.errors import Fatal
from holdshort.stream.kafka.consumers import said, stop
from holdshort.stream.kafka.names import Names
from holdshort.stream.ports import Assigned, Positions

REJOIN_DEADLINE_S: Final = 60.0
REPLACED_MOST: Final = 3
REPLACED_WITHIN_S: Final = 30.0


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is untyped
    """Lanes as partitions of the one topic; nothing of it is ever fetched."""

    def __init__(self, consumer: AIOKafkaConsumer, assigned: Assigned) -> None:
        self._consumer = consumer
        self._assigned = assigned

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        """Eager rebalances revoke everything: what stays ours is known only when it is assigned again."""

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        for one in assigned:
            self._consumer.pause(one)
            self._consumer.seek(one, 0)  # else it would look for a committed offset, and fail
        self._assigned(frozenset(one.partition for one in assigned))


class AioMembership:
    """The process's place in the group (ports.Membership)."""

    def __init__(self, consumer: AIOKafkaConsumer, names: Names, instance: str | None) -> None:
        self._consumer = consumer
        self._names = names
        self._instance = instance
        self._rejoining_since: float | None = None
        self._member = ""
        self._replaced: deque[float] = deque(maxlen=REPLACED_MOST)

    def check(self) -> None:
        """aiokafka can look alive and never rejoin; a refusal of the group waits to be asked for."""
        coordinator = self._consumer._coordinator
        try:
            coordinator.check_errors()
        except KafkaError as error:
            refused = f"the group refuses us: {said(error)}"
            # FENCED_INSTANCE_ID is no error that aiokafka knows: it comes as one that says nothing.
            if self._instance is not None and type(error) is KafkaError:
                raise Fatal(f"{refused}; perhaps {self._namesake()}") from error
            raise Fatal(refused) from error
        self._check_rejoining(rejoining=coordinator._rejoin_needed_fut.done())
        if self._instance is not None and coordinator.member_id:
            self._check_namesake(coordinator.member_id)

    def _check_rejoining(self, *, rejoining: bool) -> None:
        if not rejoining:
            self._rejoining_since = None
        elif self._rejoining_since is None:
            self._rejoining_since = time.monotonic()
        elif time.monotonic() - self._rejoining_since > REJOIN_DEADLINE_S:
            raise Fatal("the group has not been rejoined for a minute")

    def _check_namesake(self, member: str) -> None:
        """Two processes of one name replace each other in the group for ever; that is told, and ended."""
        if self._member and member != self._member:
            self._replaced.append(time.monotonic())
        self._member = member
        many = len(self._replaced) == REPLACED_MOST
        if many and time.monotonic() - self._replaced[0] < REPLACED_WITHIN_S:
            raise Fatal(self._namesake())

    def _namesake(self) -> str:
        return f"another process is called {self._instance}, too: HOLDSHORT_INSTANCE must be unique"

    async def tell(self, positions: Positions) -> None:
        """Not by the consumer's own commit, which takes a refusal as a reason to join the group anew."""
        coordinator = self._consumer._coordinator
        if coordinator.coordinator_id is None or coordinator.generation < 0:
            return
        offsets: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for where, offset in positions.items():
            topic, partition = self._names.wire(where)
            offsets[topic].append((partition, offset, ""))
        request = OffsetCommitRequest(
            coordinator.group_id,
            coordinator.generation,
            coordinator.member_id,
            OffsetCommitRequest.DEFAULT_RETENTION_TIME,
            list(offsets.items()),
        )
        with suppress(KafkaError, OSError, TimeoutError):
            await self._consumer._client.send(
                coordinator.coordinator_id, request, group=ConnectionGroup.COORDINATION
            )

    async def leave(self) -> None:
        """A named process would keep its lanes for a session; a planned stop gives them up at once."""
        self._consumer._coordinator._group_instance_id = None
        await stop(self._consumer)
