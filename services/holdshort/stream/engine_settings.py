"""What the engine may be told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What the engine may be told; times in seconds unless a name says ms."""

    app: str
    partitions: int
    lanes: int
    share: int = 4_000  # records of each rank of topics in one batch
    batch_bytes: int = 8 * 1024 * 1024  # of records and of the states read for them in one batch, about
    commit_deadline: float = 8.0  # shorter than the transaction's own timeout
    catch_up_deadline: float = 8.0
    stall_deadline: float = 60.0  # a restore that does not get on fails loudly
    hot_bytes: int = 4 * 1024 * 1024  # of states and of each table's rows at hand, per partition
    max_value: int = 2 * 1024 * 1024  # bytes; a larger one cannot be written, now or ever
    grace_ms: int = 2_000  # a deadline fires so much late: clocks may differ by it

    @property
    def positions(self) -> str:
        """The topic whose partitions are the lanes."""
        return f"{self.app}.positions"

    def transactional_id(self, lane: int) -> str:
        return f"{self.app}-{lane}"

    def partitions_of(self, lane: int) -> range:
        return range(lane, self.partitions, self.lanes)
