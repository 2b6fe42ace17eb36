"""The command line at first sight: it lists itself, quickly, and users' mistakes end in sentences."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from holdshort import __version__
from holdshort.cli.commands import app


def holdshort(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "holdshort.cli", *arguments]
    told = os.environ | environment
    return subprocess.run(command, env=told, capture_output=True, text=True, check=False)


def test_help_lists_every_command() -> None:
    said = holdshort("--help").stdout
    for command in ("up", "demo", "gatekeeper", "router", "topics", "config", "judge", "healthcheck"):
        assert command in said


def commands_of(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands_of(command, (*path, name))


@pytest.mark.parametrize("path", list(commands_of(typer.main.get_command(app))), ids=" ".join)
def test_every_command_tells_its_help_without_anything(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("HOLDSHORT_CONFIG", "/none")

    done = CliRunner().invoke(app, [*path, "--help"])

    assert done.exit_code == 0, done.output
    assert done.output.startswith("Usage: ")


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


@pytest.mark.parametrize("command", [["--version"], ["version"]])
def test_the_version_is_told_either_way(command: list[str]) -> None:
    done = holdshort(*command)
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    ("command", "environment", "said"),
    [
        (["healthcheck"], {"HOLDSHORT_MANAGEMENT_PORT": "abc"}, "HOLDSHORT_MANAGEMENT_PORT: must be a port"),
        (
            ["healthcheck"],
            {"HOLDSHORT_MANAGEMENT_PORT": "70000"},
            "HOLDSHORT_MANAGEMENT_PORT: must be a port",
        ),
        (["topics", "plan"], {"KAFKA_BOOTSTRAP_SERVERS": ""}, "KAFKA_BOOTSTRAP_SERVERS: is empty"),
        (["topics", "plan"], {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "needs KAFKA_SASL_USERNAME"),
        (
            ["gatekeeper"],
            {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CA_FILE": "/none"},
            "KAFKA_SSL_CA_FILE: /none: No such file",
        ),
        (
            ["up"],
            {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "KAFKA_SASL_PASSWORD_FILE": "/none"},
            "KAFKA_SASL_PASSWORD_FILE: /none: No such file",
        ),
        (["up", "--logs", "/dev/null/logs"], {}, "--logs /dev/null/logs: "),
        (["judge", "/none"], {}, "/none: No such file"),
        (["judge", "/"], {}, "/: Is a directory"),
        (["judge", "--set", "partitions=0"], {}, "--set partitions: must be a number from 1"),
        (["judge", "--set", "partitions=-3"], {}, "--set partitions: must be a number from 1"),
        (["config", "check", sys.executable], {}, f"{sys.executable}: not UTF-8 at byte"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_mistake_ends_in_one_sentence(command: list[str], environment: dict[str, str], said: str) -> None:
    done = holdshort(*command, **environment)
    [line] = [one for one in done.stderr.splitlines() if not one.startswith("Starting ")]
    assert done.returncode == 2
    assert line.startswith("holdshort: ")
    assert said in line


@pytest.mark.parametrize(
    ("missing", "command", "said"),
    [
        ("jsonpatch", ["demo"], "jsonpatch is not installed: install holdshort[sdk]"),
        ("ag_ui", ["demo-team", "dba"], "ag-ui-protocol is not installed: install holdshort[sdk]"),
        ("pydantic_ai", ["demo"], "pydantic-ai-slim is not installed: install holdshort[demo]"),
    ],
)
def test_without_an_extra_a_command_says_which(missing: str, command: list[str], said: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; sys.argv[1:] = {command!r}\n"
    program += "from holdshort.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"holdshort: {said}\n")


def test_without_its_extra_the_sdk_says_which() -> None:
    program = "import sys; sys.modules['jsonpatch'] = None; import holdshort.sdk.approver"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("jsonpatch is not installed: install holdshort[sdk]")


@pytest.mark.parametrize(
    "module", ["typer.main", "holdshort.cli.commands", "holdshort.settings", "asyncio.events"]
)
def test_interrupted_while_it_starts_it_ends_without_a_trace(module: str) -> None:
    """`-X importtime` tells of each module when it is imported."""
    command = [sys.executable, "-X", "importtime", "-m", "holdshort.cli", "up"]
    said = []
    nobody = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    with subprocess.Popen(command, env=nobody, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if line.rstrip().endswith(f" {module}"):
                process.send_signal(signal.SIGINT)
                break
        said += process.stderr.read().splitlines()
    assert process.returncode in (-signal.SIGINT, 130)
    assert [line for line in said if "Traceback" in line or "KeyboardInterrupt" in line] == []


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_waited_for_aloud_and_named_in_the_end() -> None:
    done = holdshort("topics", "plan", KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1")
    first, last = done.stderr.splitlines()
    assert done.returncode == 2
    assert first == "holdshort: Waiting for Kafka at 127.0.0.1:1 ..."
    assert last.startswith("holdshort: topics could not be described: Kafka does not answer at 127.0.0.1:1 (")
