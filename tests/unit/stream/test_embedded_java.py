"""Programs on a leash, and the archives of Java's classes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from holdshort.stream.embedded.java import Process, SharedClasses

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the leash and pidfds")

STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").close()
signal.pause()
"""


@contextmanager
def started(tmp_path: Path, *command: str) -> Iterator[Process]:
    log = tmp_path / "log"
    process = Process(command, directory=tmp_path, log=log, environment=os.environ)
    try:
        yield process
    finally:
        process.kill()


@asynccontextmanager
async def stubborn(tmp_path: Path) -> AsyncIterator[Process]:
    """A program that ignores SIGTERM by now."""
    fifo = tmp_path / "ignores"
    os.mkfifo(fifo)
    with started(tmp_path, sys.executable, "-c", STUBBORN, str(fifo)) as process:
        await asyncio.to_thread(fifo.read_bytes)  # returns once the program has opened and closed it
        yield process


async def end_of(pid: int) -> None:
    """Wait for the end of any process, also one that is not a child of ours."""
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_the_output_goes_to_the_log_and_the_status_is_told(tmp_path: Path) -> None:
    with started(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3") as process:
        assert await process.wait() == 3

    assert not process.running
    assert (tmp_path / "log").read_text() == "out\nerr\n"


async def test_stop_asks_first(tmp_path: Path) -> None:
    with started(tmp_path, "sleep", "600") as process:
        await process.stop(grace_s=60)

    assert await process.wait() == -signal.SIGTERM


async def test_stop_reaches_a_paused_program(tmp_path: Path) -> None:
    with started(tmp_path, "sleep", "600") as process:
        os.kill(process.pid, signal.SIGSTOP)

        await process.stop(grace_s=60)

    assert await process.wait() == -signal.SIGTERM


async def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    async with stubborn(tmp_path) as process:
        await process.stop(grace_s=0.01)

    assert await process.wait() == -signal.SIGKILL


async def test_a_cancelled_stop_still_kills(tmp_path: Path) -> None:
    async with stubborn(tmp_path) as process:
        stopping = asyncio.create_task(process.stop(grace_s=600))
        await asyncio.sleep(0)  # it has begun

        stopping.cancel()

        assert await process.wait() == -signal.SIGKILL


async def test_a_cancelled_wait_leaves_the_program_and_other_waits_alone(tmp_path: Path) -> None:
    with started(tmp_path, "sleep", "600") as process:
        waits = [asyncio.create_task(process.wait()) for _ in range(2)]
        await asyncio.sleep(0)

        waits[0].cancel()
        await asyncio.wait(waits[:1])

        assert process.running
        process.kill()
        assert await waits[1] == -signal.SIGKILL


async def test_ctrl_c_in_the_terminal_does_not_reach_it(tmp_path: Path) -> None:
    with started(tmp_path, "sleep", "600") as process:
        assert os.getsid(process.pid) != os.getsid(0)


def test_a_program_that_is_not_there_is_an_error_or_a_status(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")

    if sys.platform == "linux":  # the leash finds out, after it has started
        with started(tmp_path, missing) as process:
            assert asyncio.run(process.wait()) != 0
        assert "FileNotFoundError" in (tmp_path / "log").read_text()
    else:
        with pytest.raises(FileNotFoundError), started(tmp_path, missing):
            pass


@on_linux
async def test_the_program_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    fifo = tmp_path / "runs"
    os.mkfifo(fifo)
    processes: list[Process] = []

    def start() -> None:
        command = ("sh", "-c", f": > {fifo}; exec sleep 600")
        log = tmp_path / "log"
        processes.append(Process(command, directory=tmp_path, log=log, environment=os.environ))
        fifo.read_bytes()

    thread = Thread(target=start)
    thread.start()
    thread.join()

    await processes[0].stop(grace_s=60)
    assert await processes[0].wait() == -signal.SIGTERM  # SIGKILL, had the leash been that thread's


@on_linux
async def test_the_program_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = """
import os, pathlib, signal
from holdshort.stream.embedded.java import Process
here = pathlib.Path.cwd()
process = Process(("sleep", "600"), directory=here, log=here / "log", environment=os.environ)
print(process.pid, flush=True)
signal.pause()
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())

    parent.kill()

    await end_of(pid)
    await parent.communicate()


# Archives


def test_without_the_base_archive_java_is_told_nothing(tmp_path: Path) -> None:
    shared = SharedClasses(tmp_path / "java")

    assert shared.flags() == []
    assert shared.recording(tmp_path / "kafka.jsa") == []


def test_with_the_base_archive_kafkas_is_recorded_and_then_used(tmp_path: Path) -> None:
    shared = SharedClasses(tmp_path / "java")
    base, recorded = tmp_path / "base.jsa", tmp_path / "kafka.jsa"
    base.write_bytes(b"base")
    shared.adopt(base)

    assert shared.recording(recorded) == [f"-XX:ArchiveClassesAtExit={recorded}"]
    recorded.write_bytes(b"kafka")
    shared.adopt(recorded)

    assert shared.recording(recorded) == []
    assert f"-XX:SharedArchiveFile={shared.base}:{shared.kafka}" in shared.flags()
    assert shared.kafka.read_bytes() == b"kafka"


def test_an_archive_that_was_not_written_is_not_adopted(tmp_path: Path) -> None:
    shared = SharedClasses(tmp_path / "java")

    shared.adopt(tmp_path / "kafka.jsa")

    assert not shared.kafka.exists()


def test_kafkas_archive_is_forgotten_with_its_jars(tmp_path: Path) -> None:
    shared = SharedClasses(tmp_path)
    shared.kafka.write_bytes(b"kafka")

    shared.forget_kafka()
    shared.forget_kafka()

    assert not shared.kafka.exists()
