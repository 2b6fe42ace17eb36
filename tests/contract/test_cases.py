"""Inputs with known answers from published texts, reference implementations and measured behaviour.

Where implementations disagree there is no case. `expect` holds for the last records, in order.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.playbook import rules
from tests.readers import Reader

from holdshort.gatekeeper.transcript import Transcript

CASES = json.loads((Path(__file__).parent / "cases" / "agui.json").read_text())


def holds(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    return (
        answer["verdict"] in expected.get("verdict", [answer["verdict"]])
        and answer["code"] in expected.get("code", [answer["code"]])
        and set(answer["open"]) == set(expected.get("open", answer["open"]))
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['case']} {case['says']}"[:100])
def test_the_known_answer_is_given(case: Mapping[str, Any]) -> None:
    transcript, reader = Transcript(rules()), Reader()
    answers = [answer for line in case["transcript"] for answer in transcript.play(line)]
    for answer in answers:
        reader.read(answer["emits"])

    last = answers[-len(case["expect"]) :]
    assert all(holds(expected, answer) for expected, answer in zip(case["expect"], last, strict=True)), last


def test_every_case_expects_something() -> None:
    assert all(expected for case in CASES for expected in case["expect"])
    assert len({case["case"] for case in CASES}) == len(CASES) == 39
