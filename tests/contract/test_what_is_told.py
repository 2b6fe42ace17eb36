"""Logs and the audit name the run that the record is about, not whichever run the thread happens to have."""

from typing import Any

import orjson
from tests.playbook import Said, agent, client, rules, sdk, team

from holdshort.contract.keys import partition_of
from holdshort.gatekeeper.decider import Gate
from holdshort.stream.decider import Context
from holdshort.stream.records import Record


class Judged:
    """A gate on the engine's port, and what it tells of each record."""

    def __init__(self) -> None:
        self.gate = Gate(rules())
        self.state: Any = None
        self.offset = 0
        self.audit: list[Any] = []

    def __call__(self, *said: Said) -> None:
        for one in said:
            self.offset += 1
            value = one.value.encode() if isinstance(one.value, str) else orjson.dumps(one.value)
            headers = tuple((name, str(text).encode()) for name, text in one.headers.items())
            record = Record(one.topic, 0, self.offset, (one.key or "").encode(), value, headers, self.offset)
            step = self.gate.decide(self.state, record, Context(0, self.offset, self.offset, {}, {}))
            self.state = step.state
            self.audit += [orjson.loads(out.value or b"") for out in step.outputs if out.topic == "audit"]

    @property
    def last(self) -> tuple[str, Any]:
        """The run id of the last judgement as it was logged and as it was audited."""
        return self.gate.told[-1].run_id or "", self.audit[-1]["runId"]


def test_a_refused_input_is_told_under_its_own_run() -> None:
    judged = Judged()
    judged(client.asks("r1"), client.asks("r2"))
    assert judged.last == ("r2", "r2")


def test_so_is_one_that_cannot_be_read_or_lies_elsewhere() -> None:
    assert partition_of(b"t", 1) == 0
    judged = Judged()
    judged(client.asks("r1"), client.asks("r2").but(value='{"threadId":"t","runId":"r2","x":NaN}'))
    assert judged.last == ("r2", "r2")
    judged(client.asks("r3").but(key="u"))
    assert judged.last == ("r3", "r3")


def test_an_event_that_violates_is_told_under_the_run_that_it_names() -> None:
    judged = Judged()
    judged(client.asks("r1"), agent.finishes("stranger"))
    assert judged.last == ("stranger", "stranger")


def test_an_event_of_the_threads_own_run_is_told_under_that() -> None:
    judged = Judged()
    judged(client.asks("r1"), agent.interrupts("r1", "a"))
    assert judged.last == ("r1", "r1")


def test_an_abandon_is_told_under_the_run_that_it_ends() -> None:
    judged = Judged()
    judged(client.asks("r1"), team.abandons().having(admission="inputs/0/1"))
    assert judged.gate.told[-1].kind == "settled"
    assert judged.last == ("r1", "r1")


def test_an_endless_run_id_is_cut() -> None:
    judged = Judged()
    judged(sdk.starts("r1"), client.asks("r" * 100_000))
    assert judged.last == ("r" * 512, "r" * 512)
