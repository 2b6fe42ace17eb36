"""What `holdshort up` shows, and what commands say while they wait."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from holdshort.cli import waiting
from holdshort.cli.stack import Stack
from holdshort.cli.status import Status, _table
from holdshort.cli.waiting import waiting_for
from holdshort.settings import load_settings

FOUND = [
    Status("gatekeeper 0", 1234567, "ready", "0 running, 1 running, 2 running, 3 running", 12, 45678),
    Status("router 0", 1234568, "starting", "", 1, 45679),
]


def test_at_80_columns_nothing_is_cut(tmp_path: Path) -> None:
    stack = Stack(environment={"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:23456"}, logs=tmp_path)
    console = Console(width=80, file=io.StringIO())
    console.print(_table(stack, FOUND))
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above

    assert max(map(len, shown.splitlines())) <= 80
    for whole in ("gatekeeper 0", "1234567", "ready", "3 running", "12", "45678", "45679", "starting"):
        assert whole in shown
    assert "…" not in shown


def test_what_another_shell_needs_is_told_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "KAFKA_SASL_USERNAME": "o'hara",
        "KAFKA_SASL_PASSWORD": "hunter2",
        "KAFKA_OPTS": "of somebody else",
        "HOLDSHORT_CONFIG": "my own.yaml",
        "HOLDSHORT_INSTANCE": "gatekeeper-0",
    }.items():
        monkeypatch.setenv(name, value)
    environment = {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:23456", "HOLDSHORT_LANES": "2"}

    lines = Stack(environment=environment, logs=tmp_path).for_another_shell()

    assert lines == [
        "export KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:23456",
        """export KAFKA_SASL_USERNAME='o'"'"'hara'""",
        f"export HOLDSHORT_CONFIG='{tmp_path}/my own.yaml'",
        "export HOLDSHORT_LANES=2",
        "# and KAFKA_SASL_PASSWORD, which is a secret",
    ]


async def test_who_waits_for_long_is_told_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SILENCE_S", 0.0)
    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    with waiting_for(load_settings({"KAFKA_BOOTSTRAP_SERVERS": "kafka-1:9092"})[0], told.set_result):
        assert await told == "Waiting for Kafka at kafka-1:9092 ..."


async def test_who_is_served_at_once_is_told_nothing() -> None:
    told: list[str] = []
    with waiting_for(load_settings({})[0], told.append):
        await asyncio.sleep(0)
    assert told == []
