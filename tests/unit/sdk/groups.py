"""A consumer group in memory, as Kafka's classic protocol has it, and agent workers in it that can be killed.

Rebalances are eager: everybody is told that all is taken away, and then what is theirs. A commit counts only
from a member, in its generation, for what it is assigned.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from tests.virtual import VirtualClock

from holdshort.contract.keys import partition_of
from holdshort.sdk.intake import Intake, Pace
from holdshort.sdk.ledger import Ledger
from holdshort.sdk.runs import Run
from holdshort.stream.records import Record

PARTITIONS = 2


class NotAMemberError(Exception):
    """A commit from somebody that the group has given up, or for what is another's."""


class Group:
    """The log of runs, what has been committed of it, and who shares it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.log: dict[int, list[Record]] = {partition: [] for partition in range(PARTITIONS)}
        self.committed: dict[int, tuple[int, str]] = {}
        self.workers: dict[str, Worker] = {}
        self.executed: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.running: set[str] = set()
        self.ended: set[str] = set()
        self.refusing_commits = False
        self.commit_takes = 0.01

    # -- the gate ------------------------------------------------------------------------------------------

    def admit(
        self, thread: str, run: str, *, start_by: int | None = None, admission: str | None = None
    ) -> str:
        """One run on the log, as the gate writes it. Returns its admission."""
        partition = partition_of(thread.encode(), PARTITIONS)
        offset = len(self.log[partition])
        name = admission or f"inputs/{partition}/{offset}"
        headers = [("holdshort-run", run.encode()), ("holdshort-admission", name.encode())]
        if start_by is not None:
            headers.append(("holdshort-start-by", str(start_by).encode()))
        self.append(partition, Record("runs.a", partition, offset, thread.encode(), b"{}", headers, 0))
        return name

    def append(self, partition: int, record: Record) -> None:
        self.log[partition].append(record)
        for worker in self.workers.values():
            worker.wake.set()

    # -- the coordinator -----------------------------------------------------------------------------------

    async def join(self, name: str, *, concurrency: int = 10, grace: float = 25.0) -> "Worker":
        worker = Worker(self, name, Pace(concurrency=concurrency, grace=grace))
        self.workers[name] = worker
        await self.rebalance()
        return worker

    async def kill(self, name: str) -> None:
        """The process is gone at once; some time later the group notices."""
        worker = self.workers.pop(name)
        await worker.die()
        await self.rebalance()

    async def leave(self, name: str) -> None:
        worker = self.workers[name]
        worker.stopping.set()
        await worker.serving
        del self.workers[name]
        await self.rebalance()

    async def rebalance(self) -> None:
        members = list(self.workers.values())
        await asyncio.gather(*(one.intake.revoked() for one in members))
        for one in members:
            one.positions = {}
        for number, one in enumerate(members):
            mine = [p for p in range(PARTITIONS) if p % len(members) == number]
            one.assignment = set(mine)
            one.intake.assigned(mine)


class Worker:
    """One process of the agent service. Its runs go on until they are released."""

    def __init__(self, group: Group, name: str, pace: Pace) -> None:
        self.name = name
        self.group = group
        self.assignment: set[int] = set()
        self.positions: dict[int, int] = {}
        self.wake = asyncio.Event()
        self.stopping = asyncio.Event()
        self.running: dict[str, asyncio.Event] = {}
        self.cancelled: list[str] = []
        self.before_executing: Callable[[Run], None] = lambda _: None
        self.intake = Intake(self, name, self._conduct, self._lost, pace, group.clock.now)
        self.serving = asyncio.create_task(self.intake.serve(self.stopping))
        self.dead = False

    @property
    def idle(self) -> bool:
        """Whether nothing is left of any run that it took."""
        return not self.intake._runs

    async def die(self) -> None:
        """Nothing of it has an effect any more."""
        self.dead = True
        self.serving.cancel()
        await asyncio.gather(self.serving, return_exceptions=True)

    def release(self, run_id: str) -> None:
        self.running[run_id].set()

    async def _conduct(self, run: Run) -> None:
        self.before_executing(run)
        self.group.executed[run.admission] += 1
        self.group.running.add(run.admission)
        self.running[run.run_id] = asyncio.Event()
        try:
            await self.running[run.run_id].wait()
        except asyncio.CancelledError:
            self.cancelled.append(run.run_id)
            raise
        finally:
            del self.running[run.run_id]
            self.group.running.discard(run.admission)
            if not self.dead:
                self.group.ended.add(run.admission)

    async def _lost(self, run: Run, message: str) -> None:
        assert run.admission not in self.group.running, "it runs somewhere, and is not lost"
        if not self.dead:
            self.group.answered[run.admission] += 1

    # -- intake.RunLog -------------------------------------------------------------------------------------

    async def next(self) -> Record:
        while True:
            for partition, position in self.positions.items():
                if position < len(self.group.log[partition]):
                    self.positions[partition] = position + 1
                    return self.group.log[partition][position]
            self.wake.clear()
            await self.wake.wait()

    async def ledgers(self, partitions: Collection[int]) -> Mapping[int, Ledger]:
        await asyncio.sleep(0.01)
        return {p: Ledger.decode(*self.group.committed.get(p, (0, ""))) for p in partitions}

    async def workers(self) -> Collection[str]:
        await asyncio.sleep(0.01)
        return list(self.group.workers)

    def flow(self, positions: Mapping[int, int]) -> None:
        self.positions |= {p: at for p, at in positions.items() if p in self.assignment}
        self.wake.set()

    async def commit(self, ledgers: Mapping[int, tuple[int, str]]) -> None:
        assignment = self.assignment
        await asyncio.sleep(self.group.commit_takes)
        ours = self.group.workers.get(self.name) is self and assignment is self.assignment
        if self.dead or self.group.refusing_commits or not ours or not set(ledgers) <= self.assignment:
            raise NotAMemberError
        self.group.committed |= ledgers
