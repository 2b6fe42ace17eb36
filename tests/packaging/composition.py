"""docker-compose.yml as the real docker-compose understands it; it needs no engine for that."""

import json
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
COMPOSE_FILE: Final = ROOT / "docker-compose.yml"
MOUNTED: Final = "/etc/holdshort/holdshort.yaml"
PROFILES: Final[dict[str, tuple[str, ...]]] = {
    "alone": (),
    "demo": ("demo",),
    "observability": ("observability",),
    "everything": ("demo", "observability"),
}


def docker_compose(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """The binary itself: the package's own wrapper ends with 0 whatever happens."""
    package = find_spec("compose")
    assert package is not None
    assert package.origin is not None
    program = Path(package.origin).parent / "docker-compose"
    command = [str(program), "--file", str(COMPOSE_FILE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@cache
def composition(profile: str) -> dict[str, Any]:
    """Everything with defaults filled in, for one of PROFILES."""
    chosen = [word for name in PROFILES[profile] for word in ("--profile", name)]
    done = docker_compose(*chosen, "config", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def services() -> dict[str, dict[str, Any]]:
    """Every service of every profile."""
    found: dict[str, dict[str, Any]] = composition("everything")["services"]
    return found


def of_ours() -> dict[str, dict[str, Any]]:
    """The services that run our image."""
    return {name: one for name, one in services().items() if one["image"].startswith("holdshort")}


def kafka_properties() -> dict[str, str]:
    """What the image makes of its environment: `KAFKA_A_B` is the property `a.b`."""
    environment: dict[str, str] = services()["kafka"]["environment"]
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment.items()
        if name != "KAFKA_HEAP_OPTS"
    }
