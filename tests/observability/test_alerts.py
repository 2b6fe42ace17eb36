"""The alert rules: sound, each tried both ways by promtool, each with a runbook that names what exists."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import yaml
from tests.observability.prometheus import RULES
from tests.observability.test_boards import rules
from typer.testing import CliRunner

from holdshort.cli import app
from holdshort.telemetry.logs import Event

TRIED = Path(__file__).with_name("alerts.yaml")
RUNBOOKS = Path(__file__).parents[2] / "services" / "runbooks.md"
DESIGNED = {
    "HoldshortOldestInterruptTooOld",
    "HoldshortUnrouted",
    "HoldshortDeadLetters",
    "HoldshortLaneStalled",
    "HoldshortFencing",
    "HoldshortRestoreSlow",
    "HoldshortRefusedRatioHigh",
    "HoldshortLaneHalted",
    "HoldshortMetricsAbsent",
    "HoldshortTooManyPauses",
    "HoldshortBatchesHeld",
}


def names() -> set[str]:
    return {rule["alert"] for rule in rules()}


def test_everything_that_should_wake_somebody_has_a_rule() -> None:
    assert names() >= DESIGNED


def test_promtool_takes_the_rules(prometheus_program: Callable[[str], str]) -> None:
    checked = [prometheus_program("promtool"), "check", "rules", "--lint-fatal", str(RULES)]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_fires_on_its_fault_and_on_nothing_else(prometheus_program: Callable[[str], str]) -> None:
    tried = [prometheus_program("promtool"), "test", "rules", str(TRIED)]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried_both_ways() -> None:
    tries: dict[str, set[bool]] = defaultdict(set)
    for one in yaml.safe_load(TRIED.read_text())["tests"]:
        for tried in one["alert_rule_test"]:
            tries[tried["alertname"]].add(bool(tried["exp_alerts"]))

    assert dict(tries) == {name: {True, False} for name in names()}


def test_every_alert_says_how_urgent_it_is_and_points_to_its_runbook() -> None:
    headings = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), flags=re.MULTILINE)

    assert {heading for heading in headings if heading.startswith("Holdshort")} == names()
    for rule in yaml.safe_load(RULES.read_text())["groups"]:
        for one in rule["rules"]:
            assert one["labels"]["severity"] in ("page", "ticket")
            assert one["annotations"]["runbook"] == f"services/runbooks.md#{one['alert'].lower()}"
            assert one["annotations"].keys() == {"summary", "description", "runbook"}


def test_runbooks_name_commands_and_log_events_that_exist() -> None:
    text = RUNBOOKS.read_text()
    commands = set(re.findall(r"`holdshort ([a-z]+(?: [a-z-]+)?)", text))
    events = set(re.findall(r"\b(?:lane|pause|batch|record|input|decision|question|service)_[a-z]+\b", text))

    assert commands
    for command in commands:
        assert CliRunner().invoke(app, [*command.split(), "--help"]).exit_code == 0, command
    assert events
    assert events <= set(Event)
