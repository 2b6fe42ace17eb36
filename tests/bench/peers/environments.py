"""The virtual environment of a peer whose libraries do not go with ours, made when it is first asked for."""

import hashlib
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from holdshort.cli.bench.wire import MeasureAgainError

HERE: Final = Path(__file__).parent / "quix"


def quix(told: Callable[[str], None]) -> list[str]:
    """How to start the peer `quix`. Raises MeasureAgainError if it cannot be installed."""
    requirements = HERE / "requirements.txt"
    made_of = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    directory = user_cache_path("holdshort", appauthor=False) / "bench" / f"quix-{made_of[:16]}"
    python = directory / "bin" / "python"
    whole = directory / "whole"
    if not whole.exists():
        told("installing Quix Streams, once")
        venv.create(directory, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)]
        done = subprocess.run(install, check=False, capture_output=True, text=True)
        if done.returncode:
            raise MeasureAgainError(f"Quix Streams cannot be installed: {done.stderr.strip()}")
        whole.touch()
    return [str(python), str(HERE / "gate.py")]
