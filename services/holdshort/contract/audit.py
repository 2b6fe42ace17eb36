"""The audit (audit.v1): one record a judgement, digests instead of content, chained by hashes. Pure."""

from typing import Any

import msgspec

from holdshort.contract.canon import sha256
from holdshort.contract.messages import JSON_TYPE, Emit


class Chain:
    """The chain of one service and partition: each record names the hash of the one before it."""

    def __init__(self, heads: dict[int, str]) -> None:
        self.heads = heads

    def record(self, partition: int, thread: str, members: dict[str, Any]) -> Emit:
        """The next record of the partition's chain."""
        value = msgspec.json.encode(
            {"v": 1, "threadId": thread, **members, "previous": self.heads.get(partition, "")}
        )
        self.heads[partition] = sha256(value)
        return Emit("audit", thread.encode(), value, (JSON_TYPE,))
