"""The programs of the chaos world: each is started again whenever it ends, until all is over."""

import asyncio
import http.client
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdshort.stream.embedded.java import Process

ROOT: Final = Path(__file__).parents[2]
RESTART_PAUSE_S: Final = 0.2
STOP_GRACE_S: Final = 12.0
LOOK_EVERY_S: Final = 0.2


class Program:
    """One supervised program; it does not outlive this one (on Linux)."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, port: int | None
    ) -> None:
        """`port` is that of its management server, for a service of ours."""
        self.name = name
        self.log = log
        self.port = port
        self.ends: list[int] = []
        self.killed = 0
        self._command = command
        self._environment = environment
        self._running: Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def kind(self) -> str:
        return self.name.rpartition("-")[0]

    def start(self) -> None:
        self._launch()
        self._keeper = asyncio.create_task(self._keep())

    def _launch(self) -> None:
        self._running = Process(
            self._command, directory=ROOT, log=self.log, environment={**os.environ, **self._environment}
        )

    async def _keep(self) -> None:
        while self._running is not None:
            self.ends.append(await self._running.wait())
            await asyncio.sleep(RESTART_PAUSE_S)
            self._launch()

    def kill(self) -> bool:
        """SIGKILL; whether there was anything to kill."""
        if self._running is None or not self._running.running:
            return False
        self._running.kill()
        self.killed += 1
        return True

    async def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so long, if it has not been killed meanwhile."""
        paused = self._running
        if paused is None or not paused.running:
            return
        os.kill(paused.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            if paused.running:
                with suppress(ProcessLookupError):
                    os.kill(paused.pid, signal.SIGCONT)

    async def stop(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._running is not None:
            await self._running.stop(STOP_GRACE_S)

    @property
    def own_ends(self) -> int:
        """How often it ended without having been killed."""
        return sum(status != -signal.SIGKILL for status in self.ends)

    async def until_ready(self) -> None:
        """Wait until a service says that it is."""
        while True:
            if await asyncio.to_thread(self._is_ready):
                return
            await asyncio.sleep(LOOK_EVERY_S)

    def _is_ready(self) -> bool:
        assert self.port is not None
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
