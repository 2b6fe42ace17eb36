"""A password or a token is never shown, wherever one looks: the places that need no Kafka.

Those that need one are in tests/security/test_secrets.py.
"""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.approver import Approver
from holdshort.sdk.wire import broker_of
from holdshort.settings import KafkaSettings, MendSettingsError, load_settings
from holdshort.stream.connection import connection_of
from holdshort.stream.tokens import FileTokens

MARK = "M4rked"
SECRETS = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFKA_SASL_USERNAME": "me",
    "KAFKA_SASL_PASSWORD": MARK,
    "KAFKA_SSL_KEY_PASSWORD": MARK,
    "HOLDSHORT_AUDIT_KEY": f"{MARK}, and long enough",
}


@pytest.fixture
def kafka() -> KafkaSettings:
    return load_settings(SECRETS)[0]


def test_settings_keep_it_to_themselves(kafka: KafkaSettings) -> None:
    assert kafka.password() == MARK
    assert MARK not in f"{kafka!r} {kafka} {kafka.model_dump()} {kafka.model_dump_json()}"


def test_what_is_made_of_them_keeps_it_too(kafka: KafkaSettings, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(MARK)
    things = (
        connection_of(kafka, "test"),
        broker_of(kafka, "test"),
        AgentWorker("default", kafka=kafka),
        Approver("payments", kafka=kafka),
        FileTokens(tmp_path / "token"),
    )
    assert connection_of(kafka, "test").sasl_password == MARK
    assert [thing for thing in things if MARK in f"{thing!r} {thing}"] == []


def test_the_key_of_the_audit_shows_itself_nowhere() -> None:
    settings = load_settings(SECRETS)[1]
    assert settings.hash_key() is not None
    shown = (
        f"{settings!r} {settings} {settings.model_dump_json()} {settings.hash_key()!r} {settings.hash_key()}"
    )
    assert MARK not in shown


@pytest.mark.parametrize("wrong", ["KAFKA_SECURITY_PROTOCOL", "KAFKA_SASL_MECHANISM"])
def test_a_mistake_in_the_settings_shows_it_neither_in_a_sentence_nor_in_a_trace(wrong: str) -> None:
    """Somebody may have swapped two variables; pydantic would show what it was given."""
    with pytest.raises(MendSettingsError, match=wrong) as mistake:
        load_settings({**SECRETS, wrong: MARK})

    assert MARK not in "".join(traceback.format_exception(mistake.value))


def test_config_show_masks_it(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(MARK)

    done = run("-m", "holdshort.cli", "config", "show", KAFKA_SASL_PASSWORD_FILE=str(file))

    for name in ("sasl_password", "ssl_key_password", "audit_key"):
        assert f'"{name}": "**********"' in done.stdout
    assert MARK not in done.stdout + done.stderr


@pytest.mark.parametrize("service", ["gatekeeper", "router"])
def test_a_service_logs_at_its_start_what_it_runs_with_and_no_secret(service: str, tmp_path: Path) -> None:
    file = tmp_path / "holdshort.yaml"
    file.write_text("teams: {payments: {}}\nagents: {default: {}, other: {cancel: unsafe}}\n")
    more = {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "HOLDSHORT_CONFIG": str(file),
        "HOLDSHORT_MANAGEMENT_PORT": "0",
        "HOLDSHORT_LANES": "2",
    }
    command = [sys.executable, "-m", "holdshort.cli", service]
    with subprocess.Popen(
        command, env={**os.environ, **SECRETS, **more}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.kill()

    said = json.loads(first)
    assert said["event"] == "service_starts"
    assert said["kafka"]["bootstrap_servers"] == "127.0.0.1:1"
    assert said["settings"]["lanes"] == 2
    assert said["configuration"]["agents"] == {"default": {}, "other": {"cancel": "unsafe"}}
    assert list(said["configuration"]["teams"]) == ["payments"]
    assert said["kafka"]["sasl_password"] == said["settings"]["audit_key"] == "**********"
    assert MARK not in first


CRASH = """
from holdshort.settings import KafkaSettings
def crash():
    password = KafkaSettings().password()
    raise RuntimeError(f"a password of {len(password)} letters")
"""
LOGGED = """
from holdshort.telemetry.logs import logger, set_up
set_up(pretty=True, level="DEBUG")
try:
    crash()
except RuntimeError:
    logger().exception("crashed")
"""
ENDED = """
import sys
from holdshort.cli import app, main
app.command("crash")(crash)
sys.argv[1:] = ["crash"]
main()
"""


@pytest.mark.parametrize(("end", "status"), [(LOGGED, 0), (ENDED, 1)], ids=["logged", "ended"])
def test_the_trace_of_a_crash_shows_no_local_variables(end: str, status: int) -> None:
    done = run("-c", CRASH + end)

    assert done.returncode == status
    assert "in crash" in done.stdout + done.stderr
    assert "a password of 6 letters" in done.stdout + done.stderr
    assert MARK not in done.stdout + done.stderr


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A Python that has the secrets in its environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **SECRETS, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
