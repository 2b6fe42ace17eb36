"""The shorter way of a passed event says what the rows say, or nothing; and it is taken."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import orjson
import pytest
from tests.playbook import START_MS, Playbook, agent, client, question, rules

from holdshort.contract.events import judge_event
from holdshort.contract.passing import PLAIN, passed_on
from holdshort.contract.rules import AgentRules, Limits, World
from holdshort.contract.state import Run, ThreadState
from holdshort.contract.verdicts import Kind, Verdict
from holdshort.gatekeeper.transcript import Line

RULES = rules(
    agents={"default": AgentRules(), "strange": AgentRules(foreign_run_ids=True)}, limits=Limits(event=2_000)
)
TYPES = ("TEXT_MESSAGE_CONTENT", "TOOL_CALL_END", "RUN_STARTED", "TOOL_CALL_START", "STATE_DELTA", 7)
NOW = START_MS + 60_000


def state_of(*said: Any) -> ThreadState:
    return Playbook(RULES)(*said).state()


STATES = {
    "a run": state_of(client.asks("r1"), agent.starts("r1")),
    "an outside run": state_of(agent.starts("r1")),
    "a run after others": state_of(
        client.asks("r0"), agent.starts("r0"), agent.finishes("r0"), client.asks("r1"), agent.starts("r1")
    ),
    "a run that answers": state_of(
        client.asks("r0"),
        agent.starts("r0"),
        agent.interrupts("r0", question("a")),
        client.resumes("r1", a=True),
        agent.starts("r1"),
    ),
}


def variants(state: ThreadState) -> Iterator[ThreadState]:
    """The state with all that can be known of its run."""
    run = state.run
    assert isinstance(run, Run)
    yield msgspec.structs.replace(state, run=None)
    long_ago = NOW - RULES.run_lease_ms // 4
    either, seen_at = (True, False), (None, long_ago, NOW - 1)
    for started, shown, changed, seen, who, id_ in product(
        either, either, either, seen_at, ("default", "strange"), ("r1", "r0")
    ):
        known = msgspec.structs.replace(
            run, run_id=id_, started=started, shown=shown, messages_changed=changed, seen_at=seen, agent=who
        )
        yield msgspec.structs.replace(state, run=known)


def words(run: Run, who: str) -> list[Line]:
    """Events of the run and of others, well said or not."""
    admission = str(run.admission).encode()
    echoes = [(), *((("holdshort-admission", one),) for one in (admission, b"inputs/0/77", b"nonsense", b""))]
    more = [(), (("holdshort-run", b"r9"),), (("traceparent", b"x" * 3_000),)]
    return [
        Line(
            f"agent-events.{who}",
            0,
            99,
            b"t",
            orjson.dumps({"type": type_, "runId": run_id, "threadId": thread, "delta": "x"}),
            (*echo, *others),
            NOW,
        )
        for type_, run_id, thread in product(TYPES, (None, "r0", "r1"), (None, "t", "", "other"))
        for echo, others in product(echoes, more)
    ]


@pytest.mark.parametrize("who", ["default", "strange"])
@pytest.mark.parametrize("name", STATES)
def test_it_says_what_the_rows_say_or_nothing(name: str, who: str) -> None:
    taken = 0
    run = STATES[name].run
    assert run is not None
    lines = words(run, who)
    for state in variants(STATES[name]):
        for line in lines:
            said = passed_on(state, line, who, NOW, RULES)
            if said is not None:
                taken += 1
                rows = judge_event(state, line, who, NOW, World(clock=NOW), RULES)
                assert rows == Verdict(Kind.PASSED, (said,)), line
    never = name == "a run that answers" or (name, who) == ("an outside run", "strange")
    assert (taken == 0) == never


def test_every_plain_type_takes_it() -> None:
    state = next(one for one in variants(STATES["a run"]) if one.run and one.run.seen_at == NOW - 1)
    taken = [passed_on(state, plain(type_), "default", NOW, RULES) is not None for type_ in sorted(PLAIN)]
    assert all(taken)


def plain(type_: str) -> Line:
    value = orjson.dumps({"type": type_, "runId": "r1", "threadId": "t"})
    return Line("agent-events.default", 0, 99, b"t", value, (), NOW)
