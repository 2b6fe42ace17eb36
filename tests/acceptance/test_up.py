"""`holdshort up` without a terminal: what it says, what it leaves behind, what it takes along."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = [pytest.mark.broker, pytest.mark.system]

PATIENCE_S = 60.0


class Up:
    """A running `holdshort up`, and the lines that it has written."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []

    def until(self, wanted: str) -> str:
        """The first line from here on that fits."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if re.search(wanted, line):
                return self.lines[-1]
        raise AssertionError(f"{wanted} was not written: {self.lines}")

    def pids(self) -> dict[str, int]:
        """The processes of the services by their names, once all are ready."""
        found: dict[str, int] = {}
        while len(found) < 2:
            line = self.until(r" ready, lanes ")
            name, pid = re.findall(r"^(\w+ \d) ready, lanes .* \(pid (\d+), port \d+\)$", line)[0]
            found[name] = int(pid)
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        self.lines += self.process.stderr.read().splitlines()
        return self.process.wait(PATIENCE_S)


@contextmanager
def up(bootstrap_servers: str, temporary: Path) -> Iterator[Up]:
    environment = os.environ | {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "HOLDSHORT_PREFIX": f"t{secrets.token_hex(4)}.",
        "HOLDSHORT_PARTITIONS": "2",
        "HOLDSHORT_LANES": "1",
        "HOLDSHORT_REPLICATION": "1",
        "HOLDSHORT_MIN_ISR": "1",
        "TMPDIR": str(temporary),
    }
    command = [sys.executable, "-m", "holdshort.cli", "up"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Up(process)
        finally:
            process.kill()


def until(fine: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not fine():
        assert time.monotonic() < end
        time.sleep(0.05)  # the condition is another process's


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_change_is_a_line_and_an_ordinary_end_leaves_nothing(
    bootstrap_servers: str, tmp_path: Path
) -> None:
    with up(bootstrap_servers, tmp_path) as running:
        running.until("^Starting Kafka")
        before = running.pids()
        assert set(before) == {"gatekeeper 0", "router 0"}
        assert [one.name for one in tmp_path.iterdir()] != []
        assert running.stop() == 0

    assert "Stopping ..." in running.lines
    assert list(tmp_path.iterdir()) == []
    assert not any(is_there(pid) for pid in before.values())


def test_what_it_prints_makes_commands_work_in_another_shell(bootstrap_servers: str, tmp_path: Path) -> None:
    """Pasted into a shell that knows nothing: one that has none of our settings, in another directory."""
    (logs := tmp_path / "logs").mkdir()
    with up(bootstrap_servers, logs) as running:
        running.until("^In another shell")
        running.until("^export HOLDSHORT_MIN_ISR")
        begin = next(n for n, line in enumerate(running.lines) if line.startswith("In another shell"))
        pasted = "\n".join(line for line in running.lines[begin + 1 :])
        for command in ("doctor --patience 1", "approve --team unrouted list", "interrupts list"):
            done = in_a_shell(f"{pasted}\n{sys.executable} -m holdshort.cli {command}", tmp_path)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            assert "WRONG" not in done.stdout
        assert running.stop() == 0


def in_a_shell(script: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    path = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        ["sh", "-c", script], env=path, cwd=directory, capture_output=True, text=True, check=False
    )


def test_if_a_service_died_its_log_is_kept_and_named(bootstrap_servers: str, tmp_path: Path) -> None:
    with up(bootstrap_servers, tmp_path) as running:
        first = running.pids()["router 0"]
        os.kill(first, signal.SIGKILL)
        line = running.until(rf"^router 0 ready, .*\(pid (?!{first},)")
        assert str(first) not in line
        assert running.stop() == 0

    [kept] = tmp_path.iterdir()
    assert running.lines[-1] == f"The logs are kept in {kept}"
    assert (kept / "router-0.log").stat().st_size > 0


@pytest.mark.skipif(sys.platform != "linux", reason="the leash is Linux's")
def test_who_kills_it_kills_its_services_too(bootstrap_servers: str, tmp_path: Path) -> None:
    with up(bootstrap_servers, tmp_path) as running:
        pids = running.pids()
        running.process.kill()
        running.process.wait(PATIENCE_S)
        until(lambda: not any(is_there(pid) for pid in pids.values()))
