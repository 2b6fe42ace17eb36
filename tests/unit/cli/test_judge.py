"""`holdshort judge` as its users drive it: a transcript in, one answer a line out."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.clients import a_resume, an_input, an_interrupt, paused, started

from holdshort.cli import main

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


def test_a_forgotten_thread_is_told_and_an_input_of_before_is_new_again() -> None:
    opened = judged(PAUSE)[-1]["generation"]
    headers = {"holdshort-action": "forget", "holdshort-generation": str(opened)}
    forget = line("resumes", 3, an_input("t", "hs-end"), headers=headers)

    answers = judged([*PAUSE, forget, line("inputs", 4, an_input("t", "r1"))])

    assert [answers[3][name] for name in ("verdict", "code", "settled", "open", "generation")] == [
        *("forgotten", "ABANDONED", opened, []),
        None,
    ]
    assert answers[4]["verdict"] == "admitted"
    explained = run([*PAUSE, forget], "--explain").stdout
    assert "Decided by the row *forget* for inputs." in explained
    assert "nothing of the thread is remembered" in explained


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
    assert done.stderr.startswith("holdshort: line 1: topic must be inputs, resumes or agent-events.<agent>")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "cold_resum=forward"], "--set: cold_resum: "),
        (["--set", "cold_resume"], "--set cold_resume: must be name=value"),
        (["--set", "partitions=many"], "--set partitions: must be a number from 1"),
        (["--set", "default_agent.x=1"], "--set: default_agent"),
        (["--set", "start_lease=1h", "--set", "start_lease.x=1"], "start_lease has no settings of its own"),
        (["--set", "run_lease=["], "the value is not YAML"),
        (["nowhere.jsonl"], "nowhere.jsonl: No such file or directory"),
        (["--config", "nowhere.yaml"], "nowhere.yaml: No such file or directory"),
    ],
)
def test_a_users_mistake_is_told_in_a_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["holdshort", "judge", *arguments])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.startswith("holdshort: ")


def test_a_configuration_may_say_durations_and_settings_stand_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "holdshort.yaml"
    file.write_text("agents: {billing: {}}\nstart_lease: 3s\n")
    first = line("inputs", 0, an_input("t", "r1"), headers={"holdshort-agent": "billing"})
    both = [first, {"at": AT.format(4)}]

    assert [one["verdict"] for one in judged(both, "--config", str(file))] == ["admitted", "lost"]
    longer = judged(both, "--config", str(file), "--set", "start_lease=1h")
    assert [one["verdict"] for one in longer] == ["admitted"]


def test_the_cases_with_known_answers_are_met_one_and_all() -> None:
    cases = Path(__file__).parents[2] / "contract" / "cases" / "agui.json"
    done = run([], str(cases))
    assert done.returncode == 0
    assert done.stderr == "holdshort: 39 of 39 expectations are met\n"


def test_what_is_not_met_is_told_and_ends_with_one() -> None:
    wrong = line("inputs", 3, an_input("t", "r2"), expect={"verdict": "admitted"})
    done = run([*PAUSE, wrong], "-")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "line 4: verdict: wanted admitted, got refused",
        "holdshort: 0 of 1 expectations are met",
    ]
    assert len(done.stdout.splitlines()) == 4


def test_it_is_said_in_words_if_asked_for() -> None:
    done = run([*PAUSE, line("inputs", 3, an_input("t", "r2"))], "--explain")
    assert done.returncode == 0
    assert "Decided by the row *input while pending* for inputs." in done.stdout
    assert "  PENDING_INTERRUPTS: The thread waits for an answer;" in done.stdout
