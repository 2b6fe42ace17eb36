"""ag-ui-validate reads everything that the gate shows, run by run, and finds nothing."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.contract.peers.histories import HISTORIES, histories
from tests.contract.peers.streams import FALSE_ALARMS, FalseAlarm, Streams, emitted, findings
from tests.contract.test_cases import CASES
from tests.playbook import Playbook, rules

from holdshort.gatekeeper.transcript import Transcript


def test_it_finds_nothing_in_any_run_of_any_history() -> None:
    read = 0
    for seed, history, source in histories():
        streams = Streams()
        for answers in history.answers(source):
            for answer in answers:
                streams.read(answer["emits"])
        assert streams.findings() == [], f"seed {seed}"
        read += len(streams.events)
    assert read > 3 * HISTORIES, "histories that show nothing prove nothing"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_it_finds_nothing_in_the_cases_with_known_answers(case: Mapping[str, Any]) -> None:
    transcript, streams = Transcript(rules()), Streams()
    for line in case["transcript"]:
        for answer in transcript.play(line):
            streams.read(answer["emits"])
    assert streams.events
    assert streams.findings() == []


@pytest.mark.parametrize("alarm", FALSE_ALARMS, ids=lambda alarm: alarm.rule)
def test_every_rule_that_is_off_would_be_a_false_alarm(alarm: FalseAlarm) -> None:
    streams = Streams()
    for emits in emitted(Playbook(agents={"default": alarm.agent}), alarm.example):
        streams.read(emits)
    found = {one.rule for events in streams.events.values() for one in findings(events, ())}
    assert found == {alarm.rule}
