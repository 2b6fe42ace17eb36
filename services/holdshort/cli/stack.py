"""Everything on one machine: Kafka, topics, and services in processes of their own that are kept alive."""

import asyncio
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, get_args

from pydantic import SecretStr
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from holdshort.cli.waiting import waiting_for
from holdshort.settings import KafkaSettings, Settings, load_settings
from holdshort.stream.admin import Admin
from holdshort.stream.connection import connection_of
from holdshort.stream.embedded import EmbeddedKafka, jars_cached, leashed
from holdshort.stream.errors import Fatal
from holdshort.stream.topics import table

READY_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 12.0
RESTART_PAUSE_S: Final = 0.2
GIVE_UP_AFTER: Final = 2
EMBEDDED_PARTITIONS: Final = 4
EMBEDDED_LANES: Final = 2
OF_ONE_PROCESS: Final = ("instance", "management_host", "management_port", "log_level")


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
    killed: int = 0

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
    """Kafka, topics, gatekeepers and routers. An async context manager: entered, everything is ready.

    None of it outlives this process; on Linux not even when this process is killed. The logs of the services
    are removed at an ordinary end, kept and named if something `failed`.
    """

    def __init__(
        self,
        *,
        gatekeepers: int = 1,
        routers: int = 1,
        environment: Mapping[str, str] | None = None,
        console: Console | None = None,
        extras: Sequence[str] = (),
        logs: Path | None = None,
    ) -> None:
        """`extras` are further commands of ours to keep running, such as `demo-agent`.

        `logs` is a directory for the logs of the services, which are then kept in any case.
        """
        self.console = console or Console(stderr=True)
        self.processes: list[Process] = []
        self.directory = logs or Path(tempfile.mkdtemp(prefix="holdshort-"))
        self.failed = False
        self._temporary = logs is None
        self._wanted = {"gatekeeper": gatekeepers, "router": routers} | dict.fromkeys(extras, 1)
        self._extras = frozenset(extras)
        self._environment = dict(environment or {})
        self._kafka: EmbeddedKafka | None = None
        self._keepers: list[asyncio.Task[None]] = []
        self.stopping = False

    # -- settings ------------------------------------------------------------------------------------------

    def settings(self) -> tuple[KafkaSettings, Settings, Any]:
        """The settings that the services of this stack run with."""
        return load_settings(self._environment)

    @property
    def bootstrap_servers(self) -> str:
        return self._environment.get("KAFKA_BOOTSTRAP_SERVERS") or os.environ["KAFKA_BOOTSTRAP_SERVERS"]

    def for_another_shell(self) -> list[str]:
        """What to type in a shell so that every command means this installation; no secret is told."""
        known = {**os.environ, **self._environment}
        lines, secrets = [], []
        for model in (KafkaSettings, Settings):
            for field_, description in model.model_fields.items():
                name = f"{model.model_config['env_prefix']}{field_.upper()}"
                if name not in known or field_ in OF_ONE_PROCESS:
                    continue
                kinds, value = get_args(description.annotation), known[name]
                if SecretStr in kinds:
                    secrets.append(f"# and {name}, which is a secret")
                    continue
                if (
                    Path in kinds and value
                ):  # counts from the directory that a shell is in, so all of it is said
                    value = str(Path(value).absolute())
                lines.append(f"export {name}={shlex.quote(value)}")
        return lines + secrets

    # -- life ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        try:
            await self._start_kafka()
            await self._apply_topics()
            for service, count in self._wanted.items():
                for number in range(count):
                    await self._start(service, number)
            await self.until_ready()
        except BaseException as error:
            await self.__aexit__(type(error), error)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self.failed |= kind is not None and issubclass(kind, Exception)
        try:
            await self._stop()
        finally:
            self._tidy()

    def _tidy(self) -> None:
        if not self._temporary:
            return
        if self.failed and any(process.log.exists() for process in self.processes):
            self.console.print(f"The logs are kept in {self.directory}", soft_wrap=True, highlight=False)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    async def _start_kafka(self) -> None:
        if "KAFKA_BOOTSTRAP_SERVERS" in {**os.environ, **self._environment}:
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
        with waiting_for(kafka, self.console.print):
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
                *leashed([sys.executable, "-m", "holdshort.cli", process.service]),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we then stop it in order
            )
        process.starts += 1

    async def _keep(self, process: Process) -> None:
        """Start it again whenever it ends, until the stack stops; nothing that was started stays behind."""
        while process.process is not None:
            process.ended.append(await process.process.wait())
            if self._is_over():
                return
            self.failed |= len(process.ended) > process.killed
            await asyncio.sleep(RESTART_PAUSE_S)
            if self._is_over():
                return
            await self._launch(process)
            if self._is_over():
                await self._terminate(process)

    def _is_over(self) -> bool:
        return self.stopping

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
        process.killed += 1
        os.kill(pid, signal.SIGKILL)
        return pid

    async def _stop(self) -> None:
        self.stopping = True
        await asyncio.gather(*(self._terminate(process) for process in self.processes))
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
            self.failed = True
            running.kill()
            await running.wait()


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
