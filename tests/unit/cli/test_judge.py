"""`holdshort judge` as its users drive it: a transcript in, one answer a line out."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.clients import a_resume, an_input, an_interrupt, paused, started

AT = "2026-11-30T12:00:0{}Z"


def judged(lines: Sequence[dict[str, Any]], *arguments: str) -> list[dict[str, Any]]:
    done = run(lines, *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(lines: Sequence[dict[str, Any]], *arguments: str) -> subprocess.CompletedProcess[str]:
    text = "\n".join(json.dumps(line) for line in lines)
    command = [sys.executable, "-m", "holdshort.cli", "judge", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def line(topic: str, at: int, value: Any, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "at": AT.format(at), "value": value, **more}


PAUSE = [
    line("inputs", 0, an_input("t", "r1")),
    line("agent-events.default", 1, started("t", "r1")),
    line("agent-events.default", 2, paused("t", "r1", an_interrupt("i"))),
]


def test_each_record_has_one_answer() -> None:
    answers = judged([*PAUSE, line("inputs", 3, a_resume("t", "r2", {"i": True}))])

    assert [answer["verdict"] for answer in answers] == ["admitted", "passed", "opened", "admitted"]
    assert answers[2]["open"] == ["i"]
    assert answers[3]["status"] == "resuming"
    assert answers[3]["emits"][0]["topic"] == "runs.default"


def test_time_passes_by_a_line_without_a_topic() -> None:
    answers = judged([*PAUSE[:2], {"at": "2026-11-30T13:00:00Z"}])

    assert answers[-1]["verdict"] == "lost"
    assert answers[-1]["code"] == "RUN_LOST"


def test_settings_change_what_is_said() -> None:
    cold = [line("inputs", 0, a_resume("t", "r2", {"i": True}))]

    assert judged(cold)[0]["code"] == "UNKNOWN_INTERRUPT_ID"
    assert judged(cold, "--set", "cold_resume=forward")[0]["verdict"] == "admitted"


def test_an_agent_is_configured_by_having_a_topic_in_the_transcript() -> None:
    first = line("inputs", 0, an_input("t", "r1"), headers={"holdshort-agent": "billing"})

    assert judged([first])[0]["code"] == "UNKNOWN_AGENT"
    answers = judged([first, line("agent-events.billing", 1, started("t", "r1"))])
    assert [answer["verdict"] for answer in answers] == ["admitted", "passed"]


def test_a_line_that_is_no_record_is_told_in_a_sentence() -> None:
    done = run([line("elsewhere", 0, {})])

    assert done.returncode == 2
    assert done.stderr.startswith("holdshort: topic must be inputs, resumes or agent-events.<agent>")


def test_an_unknown_setting_is_told_in_a_sentence() -> None:
    done = run(PAUSE, "--set", "cold_resum=forward")

    assert done.returncode == 2
    assert "cold_resum" in done.stderr
