"""The command line at first sight: it lists itself, quickly, and users' mistakes end in sentences."""

import subprocess
import sys

import pytest


def holdshort(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "holdshort.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_lists_every_command() -> None:
    said = holdshort("--help").stdout
    for command in ("up", "demo", "gatekeeper", "router", "topics", "config", "judge", "healthcheck"):
        assert command in said


def test_help_imports_nothing_heavy() -> None:
    program = "import sys; sys.argv[1:] = ['--help']\ntry: import holdshort.cli; holdshort.cli.main()\n"
    program += "except SystemExit: pass\nprint(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    for heavy in ("aiokafka", "confluent_kafka", "faststream", "jsonschema", "pydantic_settings", "uvicorn"):
        assert f"'{heavy}'" not in loaded


def test_a_service_that_nobody_runs_is_not_healthy() -> None:
    done = holdshort("healthcheck", "--port", "1")
    assert done.returncode == 1
    assert "nobody answers on port 1" in done.stderr


@pytest.mark.parametrize("command", [["config", "check", "absent.yaml"], ["judge", "--set", "x"]])
def test_a_mistake_ends_in_a_sentence_and_status_two(command: list[str]) -> None:
    done = holdshort(*command)
    assert done.returncode == 2
    assert done.stderr.startswith("holdshort: ")
    assert "Traceback" not in done.stderr
