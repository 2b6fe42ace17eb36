"""The real Prometheus and promtool: those on PATH, or Debian's package, unpacked into the user's cache."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import tempfile
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import yaml
from platformdirs import user_cache_path
from tests.observability.grafana import FILES

RULES: Final = FILES / "rules.yaml"
PROGRAMS: Final = ("prometheus", "promtool")
SCRAPE_S: Final = 1


class CannotBeHadError(Exception):
    """Prometheus is not there and cannot be fetched; the message says why."""


def program(name: str) -> str:
    """One of PROGRAMS. Raises CannotBeHadError."""
    if found := shutil.which(name):
        return found
    kept = user_cache_path("holdshort", appauthor=False) / "prometheus"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="unpacking-") as work:
            unpacked = _unpack(Path(work))
            with suppress(FileExistsError):  # another run was faster
                unpacked.rename(kept)
    return str(kept / name)


def _unpack(work: Path) -> Path:
    """Fetch Debian's package as anybody may, with lists and cache of our own, and install nothing."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise CannotBeHadError("prometheus is not on PATH, and this is no Debian to fetch it from")
    for place in ("lists/partial", "cache/archives/partial"):
        (work / place).mkdir(parents=True)
    apt = ["apt-get", "-qq", "-o", f"Dir::State::Lists={work}/lists", "-o", f"Dir::Cache={work}/cache"]
    if os.geteuid() == 0:
        apt += ["-o", "APT::Sandbox::User=root"]
    _run(work, *apt, "update")
    _run(work, *apt, "download", "prometheus")
    (package,) = work.glob("prometheus_*.deb")
    _run(work, "dpkg", "-x", str(package), str(work / "tree"))
    programs = work / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (work / "tree" / "usr" / "bin" / name).rename(programs / name)
    return programs


def _run(work: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBeHadError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-500:]}")


class Prometheus:
    """A running server, asked over its HTTP API."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def ask(self, path: str, **parameters: str) -> Any:
        """The `data` of an answer. Raises OSError, and what urllib raises for a refused query."""
        return await asyncio.to_thread(self._ask, path, parameters)

    def _ask(self, path: str, parameters: Mapping[str, str]) -> Any:
        question = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(question, timeout=10) as answer:
            return json.load(answer)["data"]

    async def values(self, expr: str) -> list[float]:
        """The values of an instant query; NaN is none."""
        found = await self.ask("query", query=expr)
        values = [float(one["value"][1]) for one in found["result"]]
        return [value for value in values if value == value]  # noqa: PLR0124 - NaN is not equal to itself

    async def until(self, expr: str, fine: Callable[[float], bool], patience: float = 45.0) -> float:
        """Wait until the sum over an expression is fine, and return it."""
        value = 0.0
        try:
            async with asyncio.timeout(patience):
                while True:
                    value = sum(await self.values(expr))
                    if fine(value):
                        return value
                    await asyncio.sleep(SCRAPE_S / 4)
        except TimeoutError:
            raise AssertionError(f"{expr} is {value} after {patience} s") from None

    async def settled(self, expr: str, wanted: float, patience: float = 10.0) -> float:
        """The sum over an expression, as soon as it is what is wanted or patience is at its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while True:
                    if sum(await self.values(expr)) == wanted:
                        break
                    await asyncio.sleep(SCRAPE_S / 4)
        return sum(await self.values(expr))

    async def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        alerts = (await self.ask("alerts"))["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    async def until_firing(self, name: str, patience: float = 45.0) -> set[str]:
        """Wait until this alert fires; returns all that do."""
        firing: set[str] = set()
        try:
            async with asyncio.timeout(patience):
                while True:
                    firing = await self.firing()
                    if name in firing:
                        return firing
                    await asyncio.sleep(SCRAPE_S / 4)
        except TimeoutError:
            raise AssertionError(f"{name} does not fire, only {sorted(firing)}") from None


@asynccontextmanager
async def scraping(ports: Sequence[int], directory: Path) -> AsyncIterator[Prometheus]:
    """A server that scrapes these ports of the loopback and evaluates our rules, stopped at the end."""
    configuration = {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {
                "job_name": "holdshort",
                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
            }
        ],
    }
    file = directory / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{_free_port()}"
    with (directory / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'series'}",
            f"--web.listen-address={address}",
            "--log.level=warn",
            stdout=log,
            stderr=log,
        )
    try:
        server = Prometheus(address)
        await _until_it_answers(server, process, directory / "prometheus.log")
        yield server
    finally:
        process.terminate()
        await process.wait()


async def _until_it_answers(server: Prometheus, process: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(30):
        while process.returncode is None:
            try:
                await server.ask("status/buildinfo")
            except OSError:
                await asyncio.sleep(0.1)
            else:
                return
    said = await asyncio.to_thread(log.read_text)
    raise AssertionError(f"prometheus ended: {said[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
