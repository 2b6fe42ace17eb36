"""A program that is measured: started, watched, stopped in order or killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from holdshort.cli.bench import proc
from holdshort.cli.bench.gate import Spent
from holdshort.cli.bench.wire import MeasureAgainError

STOP_DEADLINE_S: Final = 25.0
LOG_LINES: Final = 15
GATEKEEPER: Final = (sys.executable, "-m", "holdshort.cli", "gatekeeper")
OWN_PORT: Final = {"HOLDSHORT_MANAGEMENT_HOST": "127.0.0.1", "HOLDSHORT_MANAGEMENT_PORT": "0"}


class Program:
    """One command and its process; what it says is added to a log."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """`environment` stands before ours."""
        self._command = list(command)
        self._environment = {**os.environ, **environment}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> float:
        """Returns the moment on the monotonic clock."""
        with self._log.open("ab") as output:
            now = time.monotonic()
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us; we then stop it
            )
        return now

    def check(self) -> None:
        """Raises MeasureAgainError if it has ended by itself."""
        if self._process is not None and (status := self._process.poll()) is not None:
            raise MeasureAgainError(f"{' '.join(self._command)} ended with status {status}")

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if that does not help; returns when it has ended."""
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(how)
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def spent(self) -> Spent:
        """Of the process that runs now, and of its children; of the broker nothing is known here."""
        if self._process is None or not proc.is_known():
            return Spent(system_s=0.0 if proc.is_known() else None)
        session = {self._process.pid}
        return Spent(system_s=proc.cpu_seconds(session), memory_mb=proc.peak_mb(session))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """A measurement that cannot be finished is told with what the program said last."""
        try:
            yield
        except MeasureAgainError as error:
            said = self._log.read_text(errors="replace") if self._log.exists() else ""
            raise MeasureAgainError("\n".join((str(error), *said.splitlines()[-LOG_LINES:]))) from error


class GatekeeperProcess(Program):
    """A gatekeeper of this installation, as `holdshort gatekeeper` starts it (gate.Gate)."""

    refuses = True

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        super().__init__(GATEKEEPER, {**OWN_PORT, **environment}, log)
