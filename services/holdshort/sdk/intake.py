"""Takes the runs of `runs.<agent>`: each is executed at most once, whatever becomes of workers and groups.

    read ──▶ waiting ──▶ begun (committed) ──▶ executed ──▶ over
                              └── its worker is gone ──▶ answered RUN_LOST

The ledger of a partition (ledger.py) is durable through the group's committed offset, and only the member
that a partition is assigned to can commit it, so two workers never begin the same run. A run that has begun
is finished by the worker that began it, even if its partition moves on: the gate admits one run of a thread
at a time, so nobody else works on that thread meanwhile.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from holdshort.contract.messages import Record
from holdshort.sdk.codes import TOO_LATE, WORKER_LOST
from holdshort.sdk.ledger import Ledger
from holdshort.sdk.runs import Run
from holdshort.stream.errors import Fatal
from holdshort.telemetry.logs import Event, logger

REMEMBERED: Final = 10_000  # admissions
REVOKE_DEADLINE_S: Final = 5.0
COMMIT_DEADLINE_S: Final = 60.0
COMMIT_PAUSE_S: Final = 0.2
CANCEL_PATIENCE_S: Final = 5.0


class RunLog(Protocol):
    """`runs.<agent>` and the group that shares it, as one worker sees them."""

    async def next(self) -> Record:
        """The next committed record of a partition that flows. Raises Fatal."""
        ...

    async def ledgers(self, partitions: Collection[int]) -> Mapping[int, Ledger]:
        """What has been committed of these partitions. Raises Fatal."""
        ...

    async def workers(self) -> Collection[str]:
        """The members of the group that are there now. Raises Fatal."""
        ...

    def flow(self, positions: Mapping[int, int]) -> None:
        """Let assigned partitions flow from these positions; what is not assigned any more is passed over."""
        ...

    async def commit(self, ledgers: Mapping[int, tuple[int, str]]) -> None:
        """Make ledgers durable. Raises whatever says that they may not be."""
        ...


@dataclass(slots=True, eq=False)
class _Held:
    """One partition that is ours. `orphans` and `waiting` come by again and are then dealt with."""

    partition: int
    ledger: Ledger
    orphans: set[int]
    waiting: set[int]
    changed: bool = False
    commits: list["asyncio.Future[bool]"] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many runs at once, and how long (seconds) one that has to end may take to."""

    concurrency: int = 100
    grace: float = 25.0


Task = asyncio.Task[None]
Conduct = Callable[[Run], Awaitable[None]]
Lost = Callable[[Run, str], Awaitable[None]]


class Intake:
    """One worker's side of the group. `worker` is its name there, never used again by another process.

    `conduct` executes a run, `lost` answers one that is not executed; both return when what they say is
    durable and raise Fatal if it cannot be. `now_ms` is the wall clock.
    """

    def __init__(
        self,
        log: RunLog,
        worker: str,
        conduct: Conduct,
        lost: Lost,
        pace: Pace,
        now_ms: Callable[[], int],
    ) -> None:
        self._log = log
        self._worker = worker
        self._conduct = conduct
        self._lost = lost
        self._grace = pace.grace
        self._now_ms = now_ms
        self._slots = asyncio.Semaphore(pace.concurrency)
        self._held: dict[int, _Held] = {}
        self._chores: set[Task] = set()
        self._runs: set[Task] = set()
        self._begun: dict[tuple[int, int], Task] = {}
        self._threads: dict[str, Task] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._takeover: Task | None = None
        self._changed = asyncio.Event()
        self._committing = asyncio.Lock()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._said = logger().bind(worker=worker)

    # -- life ----------------------------------------------------------------------------------------------

    async def serve(self, stopping: asyncio.Event) -> None:
        """Take runs until told to stop; then let those that have begun finish. Raises Fatal."""
        reading = self._task(self._read(), self._chores)
        self._task(self._commit_changes(), self._chores)
        stopped = asyncio.ensure_future(stopping.wait())
        try:
            await _first_of(self._broken, stopped)
            await _cancelled([reading])
            if not self._broken.done():
                await self._drain()
            if self._broken.done():
                self._broken.result()
        finally:
            stopped.cancel()
            await _cancelled([*self._runs, *self._chores], patience=CANCEL_PATIENCE_S)

    async def _drain(self) -> None:
        """What has begun may finish, up to the grace; what has not is left to whoever comes next."""
        begun = set(self._begun.values())
        await _cancelled(self._runs - begun)
        if begun:
            over = asyncio.gather(*begun, return_exceptions=True)
            await _first_of(self._broken, over, patience=self._grace)
        await _cancelled(self._begun.values(), patience=CANCEL_PATIENCE_S)
        with suppress(Exception):  # then the next owner answers for runs that are over: nobody listens
            await self._commit()

    def _task(self, coroutine: Coroutine[Any, Any, None], among: set[Task]) -> Task:
        """A task whose failure ends the worker."""
        task = asyncio.create_task(coroutine)
        among.add(task)
        task.add_done_callback(among.discard)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: Task) -> None:
        if not task.cancelled() and (error := task.exception()) and not self._broken.done():
            self._broken.set_exception(error)

    # -- the group -----------------------------------------------------------------------------------------

    async def revoked(self) -> None:
        """Every partition is taken away (for a moment, or for good): say what is known of them."""
        if self._takeover is not None:
            self._takeover.cancel()
        with suppress(Exception):  # a timeout, too: then what has begun here is answered, never repeated
            async with asyncio.timeout(REVOKE_DEADLINE_S):
                await self._commit()
        held, self._held = self._held, {}
        for one in held.values():
            _resolve(one.commits, durable=False)

    def assigned(self, partitions: Collection[int]) -> None:
        """These partitions are ours from now on; nothing of them flows yet."""
        if partitions:
            self._takeover = self._task(self._take_over(frozenset(partitions)), self._chores)

    async def _take_over(self, partitions: Collection[int]) -> None:
        ledgers = await self._log.ledgers(partitions)
        alive = set(await self._log.workers()) - {self._worker}
        positions = {}
        for partition, ledger in ledgers.items():
            here = {offset for p, offset in self._begun if p == partition}
            orphans = ledger.orphans(alive) - here
            self._held[partition] = _Held(partition, ledger, orphans, set(ledger.waiting))
            positions[partition] = ledger.reread_from(orphans)
        self._log.flow(positions)

    def _is_ours(self, held: _Held) -> bool:
        return self._held.get(held.partition) is held

    # -- reading -------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            record = await self._log.next()
            held = self._held.get(record.partition)
            if held is None:
                continue  # read before a rebalance, and read again after it
            await self._slots.acquire()
            if self._is_ours(held) and _is_to_do(held, record.offset):
                self._task(self._see_to(held, record), self._runs)
            else:
                self._slots.release()

    async def _see_to(self, held: _Held, record: Record) -> None:
        try:
            run = Run.read(record)
            if run is None or run.admission in self._seen:
                self._skip(held, record, "not the gate's" if run is None else "seen before")
            elif record.offset in held.orphans:
                await self._lost(run, WORKER_LOST)
                self._skip(held, record, "its worker is gone")
            else:
                await self._in_turn(held, run)
        finally:
            self._slots.release()

    def _skip(self, held: _Held, record: Record, why: str) -> None:
        self._said.warning(Event.AGENT_RUN_SKIPPED, why=why, partition=record.partition, offset=record.offset)
        self._over(held, record.offset)

    # -- executing -----------------------------------------------------------------------------------------

    async def _in_turn(self, held: _Held, run: Run) -> None:
        """Runs of one thread go one after the other.

        The gate admits one at a time, so an earlier one that is still here has been given up there: nobody
        reads what it says. It may finish within the grace, and is then cancelled.
        """
        this = asyncio.current_task()
        assert this is not None
        before = self._threads.get(run.thread)
        self._threads[run.thread] = this
        try:
            if before is not None:
                await self._until_over(before)
            if not self._is_ours(held):
                return
            if self._threads[run.thread] is this:
                await self._execute(held, run, this)
            else:
                await self._lost(run, TOO_LATE)
                self._over(held, run.offset)
        finally:
            if self._threads.get(run.thread) is this:
                del self._threads[run.thread]

    async def _until_over(self, before: Task) -> None:
        await asyncio.wait([before], timeout=self._grace)
        if before in self._begun.values():
            before.cancel()
        await asyncio.wait([before])

    async def _execute(self, held: _Held, run: Run, this: Task) -> None:
        if not await self._begin(held, run.offset):
            return
        place = run.partition, run.offset
        self._begun[place] = this
        self._remember(run.admission)
        try:
            if run.is_late(self._now_ms()):
                self._said.warning(Event.AGENT_RUN_SKIPPED, why="too late", offset=run.offset)
                await self._lost(run, TOO_LATE)
            else:
                await self._conduct(run)
        finally:
            del self._begun[place]
            if (now := self._held.get(run.partition)) is not None:
                self._over(now, run.offset)

    def _remember(self, admission: str) -> None:
        self._seen[admission] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    # -- the ledger ----------------------------------------------------------------------------------------

    async def _begin(self, held: _Held, offset: int) -> bool:
        """Whether it is durable that this worker has begun the run; if not, it is another's to begin."""
        durable: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        held.ledger.begin(offset, self._worker)
        held.commits.append(durable)
        self._change(held)
        try:
            return await durable
        except asyncio.CancelledError:
            held.ledger.defer(offset)
            self._change(held)
            raise

    def _over(self, held: _Held, offset: int) -> None:
        held.ledger.end(offset)
        self._change(held)

    def _change(self, held: _Held) -> None:
        held.changed = True
        self._changed.set()

    async def _commit_changes(self) -> None:
        """Whatever has changed meanwhile goes into one request. Raises Fatal if none gets through."""
        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._commit()
                failing_since = None
            except Exception as error:
                failing_since = failing_since or loop.time()
                if loop.time() - failing_since > COMMIT_DEADLINE_S:
                    raise Fatal(f"nothing can be committed: {type(error).__name__}") from error
                await asyncio.sleep(COMMIT_PAUSE_S)
                self._changed.set()

    async def _commit(self) -> None:
        """Commit what has changed. Raises whatever says that it may not be durable."""
        async with self._committing:
            batch = [(held, held.commits) for held in self._held.values() if held.changed]
            if not batch:
                return
            for held, _ in batch:
                held.changed, held.commits = False, []
            try:
                await self._log.commit({held.partition: held.ledger.encode() for held, _ in batch})
            except BaseException:
                for held, commits in batch:
                    self._not_committed(held, commits)
                raise
            for _, commits in batch:
                _resolve(commits, durable=True)

    def _not_committed(self, held: _Held, commits: "list[asyncio.Future[bool]]") -> None:
        if self._is_ours(held):
            held.changed, held.commits = True, commits + held.commits
        else:
            _resolve(commits, durable=False)


def _is_to_do(held: _Held, offset: int) -> bool:
    """Not what a takeover passes again on its way: over, or begun by a worker that is there."""
    if offset >= held.ledger.position:
        held.ledger.read(offset)
        return True
    return offset in held.orphans or offset in held.waiting


def _resolve(commits: "Iterable[asyncio.Future[bool]]", *, durable: bool) -> None:
    for one in commits:
        if not one.done():
            one.set_result(durable)


async def _first_of(*futures: "asyncio.Future[Any]", patience: float | None = None) -> None:
    await asyncio.wait(futures, timeout=patience, return_when=asyncio.FIRST_COMPLETED)


async def _cancelled(tasks: Iterable[Task], patience: float | None = None) -> None:
    """Cancel them and wait, not longer than the patience (seconds), until they are."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=patience)
