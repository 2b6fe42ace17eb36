"""One node of the embedded Kafka: its files, its storage, its process."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from holdshort.stream.embedded.jars import EmbeddedKafkaError
from holdshort.stream.embedded.java import Java, Process
from holdshort.stream.embedded.properties import CONTROLLER_NODE, render

_LOG_TAIL_LINES = 30
_STOP_GRACE_S = 10.0
_FORMAT_HEAP_MB = 128
_FIRST_HEAP_MB = 64  # grown on demand: an idle broker needs no more

_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1}: %m%n%throwable
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
logger.values.name = org.apache.kafka.common.config
logger.values.level = warn
logger.config.name = kafka.server.KafkaConfig
logger.config.level = warn
"""


class ReadLogError(EmbeddedKafkaError):
    """A node did not become usable; its last log lines say why."""

    def __init__(self, node: "Node", why: str) -> None:
        self.log_tail = node.log_tail()
        super().__init__(f"Kafka node {node.id} {why}. The end of its log:\n{self.log_tail}")


class Node:
    """A directory with the node's settings, log and records; and its JVM, once launched."""

    def __init__(self, node: int, directory: Path) -> None:
        self.id = node
        self.directory = directory
        self.records = directory / "records"
        self.process: Process | None = None
        self._properties = directory / "server.properties"
        self._logging = directory / "log4j2.properties"
        self._log = directory / "server.log"
        self._recorded_classes = directory / "kafka.jsa"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.running

    def write_files(self, properties: Mapping[str, str]) -> None:
        """Write its settings and begin a new log."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._log.exists():
            self._log.replace(self._log.with_name("server.previous.log"))
        self._logging.write_text(_LOGGING, "ascii")
        self._properties.write_text(render(properties), "ascii")

    def log_text(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else "(no log)"

    def log_tail(self) -> str:
        return "\n".join(self.log_text().splitlines()[-_LOG_TAIL_LINES:])

    def cluster_id(self) -> str | None:
        """Which cluster its storage was formatted for, if it was: this file is written last."""
        meta = self.records / "meta.properties"
        lines = meta.read_text("utf-8").splitlines() if meta.exists() else []
        ids = (line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id="))
        return next(ids, None)

    async def format(self, java: Java, cluster_id: str) -> None:
        """Prepare its storage. Raises ReadLogError, for instance for a setting that Kafka refuses."""
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties))
        process = self._run(java, tool, (f"-Xmx{_FORMAT_HEAP_MB}m",))
        try:
            status = await process.wait()
        finally:
            process.kill()
        if status != 0:
            raise ReadLogError(self, "could not format its storage")

    def launch(self, java: Java, heap_mb: int) -> None:
        flags = [f"-Xms{min(heap_mb, _FIRST_HEAP_MB)}m", f"-Xmx{heap_mb}m"]
        if self.id == CONTROLLER_NODE:
            flags += java.shared.recording(self._recorded_classes)
        self.process = self._run(java, ("kafka.Kafka", str(self._properties)), tuple(flags))

    def _run(self, java: Java, main: tuple[str, ...], flags: tuple[str, ...]) -> Process:
        flags = (*flags, f"-Dlog4j2.configurationFile={self._logging}")
        return java.launch(main, flags=flags, directory=self.directory, log=self._log)

    async def ended(self) -> int:
        """Its exit status, once it has ended."""
        assert self.process is not None, "launched first"
        return await self.process.wait()

    async def stop(self) -> None:
        """Stop it in order. Cancelled, or when it takes too long, kill it."""
        if self.process is not None:
            await self.process.stop(_STOP_GRACE_S)

    async def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            await self.process.wait()

    async def keep_recorded_classes(self, java: Java) -> None:
        await asyncio.to_thread(java.shared.adopt, self._recorded_classes)
