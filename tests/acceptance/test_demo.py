"""`holdshort demo` as a user types it, and the programs of README beside it."""

import json
import os
import subprocess
import sys

import pytest
from tests.readme import README

pytestmark = [pytest.mark.broker, pytest.mark.system]


def test_the_demo_goes_as_said(bootstrap_servers: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdshort.cli", "demo", "--json"],
        env=os.environ | {"KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers, "HOLDSHORT_REPLICATION": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    *steps, last = [json.loads(line) for line in done.stdout.splitlines()]
    summary = last["summary"]
    assert summary["ok"] is True
    assert {name: summary[name] for name in ("refused", "decisions", "receipts_refused", "killed")} == {
        "refused": 2,
        "decisions": 3,
        "receipts_refused": 1,
        "killed": 1,
    }
    assert summary["resumes_delivered"] == 1
    recorded = README.read_text()
    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
    for step in steps:
        assert step["said"] in recorded, "python -m tests.readme --record records the demo anew"
