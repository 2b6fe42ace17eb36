"""Golden histories: what a real gatekeeper once judged and wrote is judged and written the same for ever.

Recorded by `python -m tests.contract.golden.record`; each is a transcript that `holdshort judge` reads, too.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from holdshort.contract.pending import decode_pending, encode_pending
from holdshort.contract.state import ThreadState
from holdshort.contract.thread import next_due
from holdshort.gatekeeper.cases import Answered, Compared, Source, play, read_cases
from holdshort.gatekeeper.transcript import Transcript
from holdshort.settings import load_config

GOLDEN = Path(__file__).parent / "golden"
HISTORIES = sorted(path.parent for path in GOLDEN.glob("*/records.jsonl"))
PARTITIONS = 2

histories = pytest.mark.parametrize("history", HISTORIES, ids=lambda path: path.name)


def gate(history: Path) -> Transcript:
    return Transcript(load_config(history / "holdshort.yaml").rules(PARTITIONS))


def written(history: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (history / "written.jsonl").read_text().splitlines()]


def by_topic(emits: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """What was written, topic by topic: between topics a log has no order."""
    found: dict[str, list[Any]] = defaultdict(list)
    for emit in emits:
        found[emit["topic"]].append((emit["key"], emit["value"], emit["headers"]))
    return found


def test_there_are_histories() -> None:
    assert {path.name for path in HISTORIES} >= {"teams", "clients"}


@histories
def test_a_history_is_judged_as_it_was(history: Path) -> None:
    source = Source("records", (history / "records.jsonl").read_text())
    (case,) = read_cases([source], "")
    compared = [told for told in play(case, gate(history)) if isinstance(told, Compared)]
    assert len(compared) == len(case.lines)
    assert [one for one in compared if one.differences] == []


@histories
def test_what_is_written_is_what_was_written(history: Path) -> None:
    """Every event, run, dead letter and record of pending, member by member."""
    judge = gate(history)
    for line, told in zip(lines(history), written(history), strict=True):
        before = dict(judge.threads)
        answers = judge.play(line)
        emits = [raw_again(emit) for answer in answers for emit in answer["emits"]]
        assert by_topic(emits) == by_topic([raw_again(emit) for emit in told["emits"]]), line
        keys = changed(before, judge.threads)
        assert len(keys) == ("pending" in told), line
        for key in keys:
            assert stored(judge, key) == told["pending"], line


@histories
def test_every_stored_record_can_still_be_read_and_gone_on_with(history: Path) -> None:
    """A gate that begins with each recorded state, instead of its own, says the same of all that follows."""
    judge = gate(history)
    for line, told in zip(lines(history, expecting=True), written(history), strict=True):
        expected = line.pop("expect")
        (answer,) = judge.play(line)
        assert answer["verdict"] in expected["verdict"], line
        assert answer["code"] == expected["code"], line
        if told.get("pending"):
            raw = json.dumps(told["pending"], separators=(",", ":")).encode()
            judge.keep(told["pending"]["threadId"].encode(), decode_pending(raw))


@pytest.mark.parametrize("history", [path for path in HISTORIES if (path / "kcat.jsonl").exists()], ids=str)
def test_a_dump_of_the_same_topics_is_judged_alike(history: Path) -> None:
    """Read topic by topic as `kcat -J` printed them; the order is found again from the times."""
    wanted = [line["expect"]["code"] for line in lines(history, expecting=True)]
    dump = Source("kcat", (history / "kcat.jsonl").read_text())
    (case,) = read_cases([dump], "holdshort.")
    got = [told.answer["code"] for told in play(case, gate(history)) if isinstance(told, Answered)]
    assert got == wanted


def test_a_golden_history_is_never_overwritten() -> None:
    before = {path: path.read_bytes() for path in GOLDEN.rglob("*.jsonl")}
    command = [sys.executable, "-m", "tests.contract.golden.record", HISTORIES[0].name]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, cwd=GOLDEN.parents[2]
    )
    assert done.returncode == 1
    assert "never overwritten" in done.stderr
    assert {path: path.read_bytes() for path in GOLDEN.rglob("*.jsonl")} == before


def lines(history: Path, *, expecting: bool = False) -> list[dict[str, Any]]:
    parsed = [json.loads(line) for line in (history / "records.jsonl").read_text().splitlines()]
    return parsed if expecting else [{k: v for k, v in line.items() if k != "expect"} for line in parsed]


def changed(
    before: dict[bytes | None, ThreadState], after: dict[bytes | None, ThreadState]
) -> list[bytes | None]:
    return [key for key in {*before, *after} if before.get(key) is not after.get(key)]


def stored(judge: Transcript, key: bytes | None) -> Any:
    """The record of pending for a thread; None for a tombstone."""
    state = judge.threads.get(key)
    if state is None or key is None:
        return None
    due = next_due(state, judge.rules)
    return json.loads(encode_pending(key.decode(), state, due.at if due else None))


def raw_again(emit: dict[str, Any]) -> dict[str, Any]:
    """Parsed and raw values alike: a transcript shows what it can parse."""
    value = emit["value"]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return emit
    return {**emit, "value": value}
