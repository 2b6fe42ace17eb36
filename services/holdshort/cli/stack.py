"""Everything on one machine: Kafka, topics, and services in processes of their own that are kept alive."""

import asyncio
import http.client
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from holdshort.settings import KafkaSettings, Settings, load_settings
from holdshort.stream.admin import Admin
from holdshort.stream.connection import connection_of
from holdshort.stream.embedded import EmbeddedKafka, jars_cached
from holdshort.stream.errors import Fatal
from holdshort.stream.topics import table

READY_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 12.0
RESTART_PAUSE_S: Final = 0.2
GIVE_UP_AFTER: Final = 2
EMBEDDED_PARTITIONS: Final = 4
EMBEDDED_LANES: Final = 2


@dataclass(slots=True)
class Process:
    """One supervised service process."""

    service: str
    number: int
    port: int
    log: Path
    process: asyncio.subprocess.Process | None = None
    starts: int = 0
    ended: list[int] = field(default_factory=list)

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process and self.process.returncode is None else None

    def ask(self, path: str) -> tuple[bool, Any]:
        """What the management port says: whether it is fine, and the details."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        except OSError:
            return False, None
        finally:
            connection.close()
        return response.status == 200, json.loads(body) if path != "/metrics" else body.decode()


class Stack:
    """Kafka, topics, gatekeepers and routers. An async context manager: entered, everything is ready."""

    def __init__(
        self,
        *,
        gatekeepers: int = 1,
        routers: int = 1,
        environment: Mapping[str, str] | None = None,
        console: Console | None = None,
        extras: Sequence[str] = (),
    ) -> None:
        """`extras` are further commands of ours to keep running, such as `demo-agent`."""
        self.console = console or Console(stderr=True)
        self.processes: list[Process] = []
        self.directory = Path(tempfile.mkdtemp(prefix="holdshort-"))
        self._wanted = {"gatekeeper": gatekeepers, "router": routers} | dict.fromkeys(extras, 1)
        self._extras = frozenset(extras)
        self._environment = dict(environment or {})
        self._kafka: EmbeddedKafka | None = None
        self._keepers: list[asyncio.Task[None]] = []
        self._stopping = False

    # -- settings ------------------------------------------------------------------------------------------

    def settings(self) -> tuple[KafkaSettings, Settings, Any]:
        """The settings that the services of this stack run with."""
        return load_settings(self._environment)

    @property
    def bootstrap_servers(self) -> str:
        return self._environment.get("KAFKA_BOOTSTRAP_SERVERS") or os.environ["KAFKA_BOOTSTRAP_SERVERS"]

    # -- life ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        try:
            await self._start_kafka()
            await self._apply_topics()
            for service, count in self._wanted.items():
                for number in range(count):
                    await self._start(service, number)
            await self.until_ready()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def _start_kafka(self) -> None:
        if "KAFKA_BOOTSTRAP_SERVERS" in os.environ or "KAFKA_BOOTSTRAP_SERVERS" in self._environment:
            return
        self._kafka = EmbeddedKafka(progress=_progress(self.console) if not jars_cached() else None)
        await self._kafka.start()
        self._environment |= {
            "KAFKA_BOOTSTRAP_SERVERS": self._kafka.bootstrap_servers,
            "HOLDSHORT_PARTITIONS": os.environ.get("HOLDSHORT_PARTITIONS", str(EMBEDDED_PARTITIONS)),
            "HOLDSHORT_LANES": os.environ.get("HOLDSHORT_LANES", str(EMBEDDED_LANES)),
            "HOLDSHORT_REPLICATION": "1",
            "HOLDSHORT_MIN_ISR": "1",
        }

    async def _apply_topics(self) -> None:
        kafka, settings, config = self.settings()
        admin = Admin(connection_of(kafka, "holdshort-up"), settings.prefix)
        topics = table(list(config.agents), list(config.teams))
        plan = await admin.plan(topics, settings.partitions, settings.lanes)
        if refused := [f"{one.topic} {one.detail}" for one in plan if one.action == "refuse"]:
            raise Fatal("; ".join(refused))
        await admin.apply(plan, replication=settings.replication, min_isr=settings.min_isr)

    async def _start(self, service: str, number: int) -> None:
        log = self.directory / f"{service}-{number}.log"
        process = Process(service, number, _free_port(), log)
        self.processes.append(process)
        await self._launch(process)
        self._keepers.append(asyncio.create_task(self._keep(process)))

    async def _launch(self, process: Process) -> None:
        environment = {
            **os.environ,
            **self._environment,
            "HOLDSHORT_INSTANCE": f"{process.service}-{process.number}",
            "HOLDSHORT_MANAGEMENT_HOST": "127.0.0.1",
            "HOLDSHORT_MANAGEMENT_PORT": str(process.port),
        }
        with process.log.open("ab") as output:
            process.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "holdshort.cli",
                process.service,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we then stop it in order
            )
        process.starts += 1

    async def _keep(self, process: Process) -> None:
        """Start it again whenever it ends, until the stack is stopped."""
        while not self._stopping and process.process is not None:
            process.ended.append(await process.process.wait())
            if not self._stopping:
                await asyncio.sleep(RESTART_PAUSE_S)
                await self._launch(process)

    async def until_ready(self) -> None:
        """Wait until every service is ready. Raises Fatal with the end of the log of one that does not."""
        for process in self.processes:
            if process.service in self._extras:
                continue
            try:
                async with asyncio.timeout(READY_DEADLINE_S):
                    ready = await _is_ready(process)
            except TimeoutError:
                ready = False
            if not ready:
                raise Fatal(f"{process.service} does not get ready:\n{_tail(process.log)}")

    def kill(self, process: Process) -> int:
        """SIGKILL one service process; it is started again. Returns the pid that was killed."""
        pid = process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        return pid

    async def _stop(self) -> None:
        self._stopping = True
        await asyncio.gather(*(self._terminate(process) for process in self.processes))
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        if self._kafka is not None:
            await self._kafka.stop()

    async def _terminate(self, process: Process) -> None:
        running = process.process
        if running is None or running.returncode is not None:
            return
        with suppress(ProcessLookupError):
            running.terminate()
        try:
            async with asyncio.timeout(STOP_DEADLINE_S):
                await running.wait()
        except TimeoutError:
            running.kill()
            await running.wait()


async def show_until_stopped(stack: Stack) -> None:
    """Show the state of every process until SIGINT or SIGTERM."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    with stack.console.status("Starting Kafka, topics and services ..."):
        starting = asyncio.create_task(stack.__aenter__())
        await asyncio.wait(
            [starting, asyncio.create_task(stopped.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return
        await starting
    try:
        with Live(console=stack.console, refresh_per_second=4) as live:
            while not stopped.is_set():
                live.update(await asyncio.to_thread(_status, stack))
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await stopped.wait()
    finally:
        with stack.console.status("Stopping ..."):
            await stack.__aexit__()


def _status(stack: Stack) -> Table:
    title = f"holdshort on {stack.bootstrap_servers} (logs in {stack.directory}; Ctrl-C stops all)"
    view = Table("service", "pid", "state", "lanes", "starts", "management", title=title)
    for process in stack.processes:
        ready, report = process.ask("/readyz")
        lanes = ", ".join(f"{lane['lane']} {lane['state']}" for lane in (report or {}).get("lanes", []))
        view.add_row(
            f"{process.service} {process.number}",
            str(process.pid or "-"),
            "ready" if ready else "starting",
            lanes or "-",
            str(process.starts),
            f"http://127.0.0.1:{process.port}",
        )
    return view


def _progress(console: Console) -> Callable[[int, int, str], None]:
    """Draws how many of Kafka's jars have arrived; they are fetched once and then kept."""
    bar = Progress(
        TextColumn("Fetching Kafka (once)"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        console=console,
    )
    task = bar.add_task("", total=None)
    bar.start()

    def progress(done: int, total: int, name: str) -> None:
        bar.update(task, completed=done, total=total, description=name)
        if done == total:
            bar.stop()

    return progress


async def _is_ready(process: Process) -> bool:
    """Waits until it is; False if it keeps dying."""
    ended = len(process.ended)
    while len(process.ended) - ended <= GIVE_UP_AFTER:
        if (await asyncio.to_thread(process.ask, "/readyz"))[0]:
            return True
        await asyncio.sleep(0.1)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
