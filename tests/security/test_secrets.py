"""A password or a token is never shown, wherever one looks: the places that need a real Kafka.

Those that need none are in tests/unit/test_secrets.py.
"""

import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.clients import an_input
from tests.security.people import read, send, silent
from tests.security.secured import SUPER_USER, Secured, Served, Site, clean, holdshort
from tests.security.test_names import bearing, plain

from holdshort.sdk.agent import AgentWorker
from holdshort.settings import load_settings
from holdshort.stream.connection import connection_of
from holdshort.stream.errors import Fatal
from holdshort.stream.reach import reach

pytestmark = [pytest.mark.broker, pytest.mark.system]

WRONG = "M4rked-but-wrong"


@pytest.fixture(scope="module")
def everything(secured: Secured) -> dict[str, str]:
    """The environment of somebody who may do everything, with the password in it."""
    secured.let_in({SUPER_USER: "M4rked-and-right"})
    return {
        "KAFKA_BOOTSTRAP_SERVERS": secured.kafka.bootstrap_servers,
        "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA_SASL_USERNAME": SUPER_USER,
        "KAFKA_SASL_PASSWORD": "M4rked-and-right",
        "KAFKA_SSL_CA_FILE": str(secured.certificates.authority),
        "HOLDSHORT_PARTITIONS": "2",
        "HOLDSHORT_LANES": "2",
        "HOLDSHORT_REPLICATION": "1",
        "HOLDSHORT_MIN_ISR": "1",
        "HOLDSHORT_MANAGEMENT_PORT": "0",
    }


def test_a_service_that_works_shows_it_neither_in_its_log_nor_at_its_port(site: Site, tmp_path: Path) -> None:
    """With PLAIN, where the password itself goes over the wire, and the most talkative log."""
    more = plain(site, tmp_path, "gatekeeper") | {"HOLDSHORT_LOG_LEVEL": "DEBUG"}
    [password] = site.secured.plain_passwords.values()
    with Served(site.environment("gatekeeper", **more), "gatekeeper") as service:
        service.until_ready()
        send(site, "client", "inputs", an_input("t-secret", "r1"))
        assert read(site, "auditor", "audit", 1, threadId="t-secret", verdict="admitted")
        shown = [service.ask(path) for path in ("/metrics", "/version", "/livez", "/readyz")]
        service.stop()

    assert 'verdict="admitted"} 1.0' in shown[0]
    assert password not in "".join((*shown, service.output))


@pytest.mark.parametrize("command", [("gatekeeper",), ("topics", "plan"), ("up",), ("demo",)], ids=" ".join)
def test_whoever_is_not_let_in_does_not_say_with_which_password(
    command: tuple[str, ...], everything: Mapping[str, str]
) -> None:
    done = holdshort({**everything, "KAFKA_SASL_PASSWORD": WRONG}, *command)

    assert done.returncode != 0
    assert "invalid credentials" in done.stdout + done.stderr
    assert WRONG not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


async def test_an_agent_that_is_not_let_in_says_it_neither(
    everything: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    kafka = load_settings({**everything, "KAFKA_SASL_PASSWORD": WRONG, "KAFKA_SASL_MECHANISM": "PLAIN"})[0]
    worker = AgentWorker("default", kafka=kafka)
    worker.on_run(silent)
    with caplog.at_level(logging.DEBUG), pytest.raises(Fatal, match="does not let") as refused:
        await worker.serve()

    assert WRONG not in f"{worker} {refused.value!r} {caplog.text}"


async def test_a_program_that_logs_at_debug_logs_neither_password_nor_token(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """aiokafka would log its requests, and these are in them."""
    by_password = site.environment("admin", **plain(site, tmp_path, "admin"))
    by_token = site.environment("admin", **bearing(tmp_path / "token", site.user("admin"), 600))
    [password] = site.secured.plain_passwords.values()
    with caplog.at_level(logging.DEBUG):
        for environment in (by_password, by_token):
            await reach(connection_of(load_settings(environment)[0], "test"))

    assert "SaslHandShakeRequest" in caplog.text
    assert password not in caplog.text
    assert (tmp_path / "token").read_text().strip() not in caplog.text


def test_up_shows_it_neither_at_the_terminal_nor_in_its_logs(
    everything: Mapping[str, str], tmp_path: Path
) -> None:
    command = ["up", "--logs", str(tmp_path)]
    shown, status = at_a_terminal(
        {**everything, "HOLDSHORT_PREFIX": "up."}, command, until=r"(?s)ready.*ready"
    )
    written = "".join(file.read_text() for file in tmp_path.glob("*.log"))

    assert status == 0, shown
    assert "lane_runs" in written
    assert "M4rked" not in shown + written


def test_the_demo_runs_on_a_secured_kafka_and_shows_it_nowhere(everything: Mapping[str, str]) -> None:
    done = holdshort(everything, "demo", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["ok"] is True
    assert "M4rked" not in done.stdout + done.stderr


def at_a_terminal(environment: Mapping[str, str], command: list[str], until: str) -> tuple[str, int]:
    """What a command draws at a terminal until it has drawn `until`; it is then interrupted."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdshort.cli", *command],
        env=clean({**environment, "COLUMNS": "200", "NO_COLOR": "1"}),
        stdin=its,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    drawn = b""
    try:
        while chunk := _read(ours):
            drawn += chunk
            if re.search(until, drawn.decode(errors="replace")) and process.poll() is None:
                process.send_signal(signal.SIGINT)
    finally:
        process.kill() if process.poll() is None and not drawn else None
        status = process.wait(40)
        os.close(ours)
    return drawn.decode(errors="replace"), status


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's way of saying that nobody holds the other end any more
        return b""
