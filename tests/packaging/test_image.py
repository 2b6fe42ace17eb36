"""The image: linted, small, pinned, without root; and what is copied into its build makes the wheel."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.image import DOCKERFILE, ROOT, copied, sent, stages

from holdshort import __version__
from holdshort.settings import Settings

BASE = "python:3.11-slim-bookworm"


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_every_stage_begins_with_the_same_pinned_base() -> None:
    assert [stage.base for stage in stages()] == [BASE, BASE]


def test_what_runs_is_not_root_and_is_named_by_number() -> None:
    (user,) = stages()[-1].all("USER")

    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user.text)


def test_what_runs_was_only_copied_so_it_needs_no_shell() -> None:
    last = stages()[-1]

    assert last.all("RUN") == []
    assert [one.text for one in last.all("COPY")] == ["--from=build /opt/holdshort /opt/holdshort"]
    assert last.all("ENTRYPOINT")[0].listed == ["holdshort"]
    assert last.all("CMD")[0].listed == ["--help"]


def test_what_runs_writes_to_tmp_alone() -> None:
    told = stages()[-1].pairs("ENV")

    assert told["HOME"] == "/tmp"
    assert told["PYTHONDONTWRITEBYTECODE"] == "1"
    assert stages()[0].pairs("ENV")["UV_COMPILE_BYTECODE"] == "1"


def test_every_variable_of_ours_is_a_setting() -> None:
    known = {f"HOLDSHORT_{field}".upper() for field in Settings.model_fields}
    ours = {name for name in stages()[-1].pairs("ENV") if name.startswith("HOLDSHORT_")}

    assert ours == {"HOLDSHORT_MANAGEMENT_HOST"}
    assert ours <= known


def test_it_is_labelled_as_the_open_container_initiative_has_it() -> None:
    labels = stages()[-1].pairs("LABEL")

    assert set(labels) == {
        f"org.opencontainers.image.{word}"
        for word in ("title", "description", "version", "revision", "base.name")
    }
    assert labels["org.opencontainers.image.title"] == project()["name"]
    assert labels["org.opencontainers.image.base.name"].endswith(BASE)
    assert stages()[-1].pairs("ARG")["VERSION"] == project()["version"] == __version__


# -- what goes in -------------------------------------------------------------------------------------------


def test_nothing_is_installed_whose_hash_is_not_known() -> None:
    runs = " && ".join(one.text for one in stages()[0].all("RUN"))
    installs = [one for one in runs.split("&&") if re.search(r"pip install|uv build", one)]

    assert len(installs) == 4
    for one in installs:
        assert "--require-hashes" in one or one.rstrip().endswith("--no-deps /tmp/dist/*.whl")


@pytest.mark.parametrize("extra", ["", "demo", "uv", "hatchling"])
def test_what_an_image_is_made_of_is_pinned_by_hash(extra: str) -> None:
    pinned = re.findall(r"(?m)^([A-Za-z0-9_.-]+)==\S+.*\\\n\s+--hash=", _constraints())
    extras = project()["optional-dependencies"]
    wanted = project()["dependencies"] if extra == "" else extras.get(extra, [extra])

    names = {re.split(r"[^A-Za-z0-9_.-]", one)[0] for one in wanted} - {"holdshort"}
    assert names <= set(pinned)


def _constraints() -> str:
    return (ROOT / "services" / "constraints.txt").read_text()


def test_the_build_is_sent_what_it_copies_and_hardly_anything_else() -> None:
    for path in copied():
        assert (ROOT / path).exists(), path
        assert sent(path), path
    for path in (".git/config", ".venv/bin/python", "tests/conftest.py", "helm/README.md", "dev"):
        assert not sent(path), path
    assert not sent("services/holdshort/cli/__pycache__/up.cpython-311.pyc")
    assert not sent("services/decisions/0003-embedded-kafka.md")


def test_what_is_copied_is_enough_to_build_the_wheel(tmp_path: Path) -> None:
    for path in copied():
        _copy(path, tmp_path)

    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)

    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"holdshort/cli/__init__.py", "holdshort/contract/thread.py"} <= names
    points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "holdshort = holdshort.cli:main" in zipfile.ZipFile(wheel).read(points).decode()


def _copy(path: str, where: Path) -> None:
    """One source of a COPY, as far as .dockerignore lets it through."""
    sources = [ROOT / path, *(ROOT / path).rglob("*")]
    for source in (one for one in sources if one.is_file() and sent(str(one.relative_to(ROOT)))):
        target = where / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


# -- the same entry point as a process ----------------------------------------------------------------------


def holdshort(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """As in a container: nothing in the environment but what is said, no home, the root as directory."""
    program = Path(sys.executable).parent / "holdshort"
    told = {"HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(
        [program, *arguments], env=told, cwd="/", capture_output=True, text=True, check=False
    )


def test_the_entry_point_tells_its_version() -> None:
    done = holdshort("version")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


def test_the_entry_point_without_a_command_tells_its_commands() -> None:
    done = holdshort("--help")

    assert done.returncode == 0
    assert "gatekeeper" in done.stdout


def test_the_entry_point_finds_the_mounted_configuration_fine() -> None:
    file = str(ROOT / "schemas" / "examples" / "config" / "valid" / "two-teams.yaml")
    done = holdshort("config", "check", HOLDSHORT_CONFIG=file, HOLDSHORT_MANAGEMENT_HOST="0.0.0.0")

    assert (done.returncode, done.stdout) == (0, f"{file}: fine: 1 agents, 2 teams, 4 routes\n")


def test_the_entry_point_is_not_healthy_where_nothing_runs() -> None:
    done = holdshort("healthcheck", HOLDSHORT_MANAGEMENT_PORT="1")

    assert done.returncode == 1
    assert "nobody answers" in done.stderr


@pytest.mark.parametrize("command", ["gatekeeper", "router"])
def test_a_service_with_a_setting_that_is_none_does_not_start(command: str) -> None:
    done = holdshort(command, HOLDSHORT_PARTITION="4")

    assert done.returncode == 2
    assert done.stderr == (
        "holdshort: HOLDSHORT_PARTITION: there is no such setting; do you mean HOLDSHORT_PARTITIONS?\n"
    )
