"""A gathering and its pause, made by the router's own decider: for what a gate seldom says."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson
from tests.systems import PARTITIONS, System
from tests.virtual import EPOCH_MS

from holdshort.contract.codes import Code
from holdshort.contract.keys import partition_of
from holdshort.contract.pending import encode_pending
from holdshort.contract.routes import Route, RouteTable
from holdshort.contract.rules import Rules
from holdshort.contract.state import Interrupt, Pause, Pointer, Refusal, ThreadState
from holdshort.router.decider import RouterDecider
from holdshort.router.gathering import Gathering, decode_gathering
from holdshort.stream.decider import Context
from holdshort.stream.records import Output, Record, RecordPlace, TopicPartition

RULES = Rules(partitions=1, routes=RouteTable([Route(name="p", team="payments", reason="p:*")]))
_replace = msgspec.structs.replace


class Turned(NamedTuple):
    """What the router made of a row of `pending`."""

    gathering: Gathering
    outputs: Sequence[Output]
    pause: Pause


def a_pause(*ids: str) -> Pause:
    """A pause with these interrupts, all of them payments'."""
    interrupts = tuple(
        Interrupt(
            id=id_,
            descriptor=msgspec.Raw(orjson.dumps({"id": id_, "reason": "p:x"})),
            route="p",
            team="payments",
            reserved=True,
        )
        for id_ in ids
    )
    return Pause(
        generation=1,
        run_id="r1",
        admission=Pointer("inputs", 0, 0),
        agent="default",
        opened_at=EPOCH_MS,
        digest="0" * 64,
        interrupts=interrupts,
    )


def row(pause: Pause | None, offset: int) -> Record:
    value = encode_pending("t", ThreadState(generation=1, pause=pause), None)
    return Record("pending", 0, offset, b"t", value, (), EPOCH_MS + offset)


def refused(pause: Pause, code: str) -> Turned:
    """The pause's batch was sent, and the gate has refused it with this code."""
    router = RouterDecider(RULES, ["payments"])
    opened = router.decide(None, row(pause, 1), _context(EPOCH_MS))
    answers = [{"interruptId": one, "status": "resolved", "payload": {"approved": True}} for one in pause.ids]
    decision = {"v": 1, "decisionId": "d", "threadId": "t", "generation": 1, "resume": answers}
    record = Record("decisions.payments", 0, 0, b"t", orjson.dumps(decision), (), EPOCH_MS + 2)
    rows = {"pending": row(pause, 1)}
    sent = router.decide(opened.state, record, _context(EPOCH_MS + 2, rows))
    assert sent.state is not None
    assert sent.state.forwarded is not None
    after = _replace(pause, refusal=Refusal(sent.state.forwarded, Code(code), EPOCH_MS + 3))
    return Turned(sent.state, [], after)


def turned(turn: Turned) -> Turned:
    """What the router makes of the pause as it is now, told once, and told again."""
    router = RouterDecider(RULES, ["payments"])
    once = router.decide(turn.gathering, row(turn.pause, 4), _context(EPOCH_MS + 4))
    again = router.decide(once.state, row(turn.pause, 5), _context(EPOCH_MS + 5))
    assert again.state is once.state, "told twice it does nothing more"
    assert not again.outputs
    assert once.state is not None
    return Turned(once.state, once.outputs, turn.pause)


def shown(turn: Turned) -> list[dict[str, Any]]:
    """The approvals that were written."""
    found = [one.value for one in turn.outputs if one.topic.startswith("approvals.") and one.value]
    return [orjson.loads(one) for one in found]


async def forgetting(s: System, thread: str) -> None:
    """Let the router forget its receipts, as it does when there are very many."""
    await s.stop("router")
    partition = partition_of(thread.encode(), PARTITIONS)
    latest = s.said("gathering", thread)[-1]
    state = _replace(decode_gathering(latest.record.value or b""), receipts=())
    decider = RouterDecider(s.rules, [])
    s.broker.append("gathering", thread.encode(), decider.encode(b"", state), partition=partition)
    await s.start("router")


def _context(now: int, rows: Mapping[str, Record | None] | None = None) -> Context:
    place: RecordPlace = TopicPartition("inputs", 0), 0
    return Context(0, now, now, {place: None}, rows or {})
