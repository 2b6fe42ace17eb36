"""What `holdshort doctor` looks at in the lanes: how far each has come, and why one stands still.

A lane writes its positions in every transaction, so what it has not read, and what would make it halt when it
begins again, can be seen from outside. That a process runs is what its management port says.
"""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from holdshort.cli.checks import Finding, Patient
from holdshort.cli.pauses import keep_open, keep_paused, of_gone_teams, paused, questions
from holdshort.cli.reading import Cluster
from holdshort.contract.pending import UpgradeFirstError, decode_pending
from holdshort.stream.admin import Admin
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.errors import Halt
from holdshort.stream.kafka import AioKafka
from holdshort.stream.positions import Positions, decode_positions
from holdshort.stream.records import Record, TopicPartition
from holdshort.stream.topics import GATEKEEPER, ROUTER

STATES: Final = {GATEKEEPER: "pending", ROUTER: "gathering"}
ASK_S: Final = 5


class Lanes(NamedTuple):
    """What the lanes of an application are compared with."""

    patient: Patient
    cluster: Cluster
    kafka: AioKafka
    admin: Admin
    most_lag: int
    absent: frozenset[str] = frozenset()


async def lanes(look: Lanes, app: str) -> AsyncIterator[Finding]:
    """The lanes of one application."""
    topic = f"{app}.positions"
    unseen = [one for one in (topic, STATES[app]) if one not in look.cluster.seen]
    if gone := [one for one in unseen if one in look.absent]:
        yield _without_topics(app, gone)
        return
    if unseen or not look.cluster.may_read(topic):
        advice = f"look as {app}, the only one who may read {topic}"
        said = f"those of the {app}: {' and '.join(unseen or [topic])} may not be read"
        yield Finding("lanes", "skipped", said, advice)
        return
    rows = await look.cluster.latest(topic, lambda record: record)
    engine = EngineSettings(
        app=app, partitions=look.patient.settings.partitions, lanes=look.patient.settings.lanes
    )
    for number in range(engine.lanes):
        row = rows.get(str(number).encode())
        async for finding in _lane(look, engine, number, row):
            yield finding


def _without_topics(app: str, gone: Sequence[str]) -> Finding:
    said = f"no lane of the {app} can run: there is no {' and no '.join(gone)}"
    advice = (
        "if it was never there, `holdshort topics apply` makes it; if it was deleted, what it held is gone: "
        "services/operating.md, Backup and disaster, says what to do first"
    )
    return Finding("lanes", "finding", said, advice)


async def _lane(
    look: Lanes, engine: EngineSettings, number: int, row: Record | None
) -> AsyncIterator[Finding]:
    name = f"lane {number} of the {engine.app}"
    state = [TopicPartition(STATES[engine.app], one) for one in engine.partitions_of(number)]
    if row is None or row.value is None:
        yield await _without_positions(look, name, number, state)
        return
    try:
        positions = decode_positions(row.value)
    except Halt as halt:
        yield Finding("lanes", "finding", f"{name} cannot begin: {halt.reason}", "see services/runbooks.md")
        return
    if (positions.partitions, positions.lanes) != (engine.partitions, engine.lanes):
        text = f"{name} was run with {positions.partitions} partitions and {positions.lanes} lanes"
        advice = "HOLDSHORT_PARTITIONS and HOLDSHORT_LANES must be those"
        yield Finding("lanes", "finding", text, advice)
        return
    ends = await look.kafka.log.ends(state, committed=False)
    inputs = [one async for one in _lost_inputs(look, engine, number, positions)]
    for one in (lost := [*_lost_state(positions, ends), *inputs]):
        advice = f"`holdshort lanes accept-loss {engine.app} {number}`, once it is clear why"
        yield Finding("lanes", "finding", f"{name} halts: {one}", advice)
    if not lost:
        yield await _lag(look, engine, number, positions)


async def _without_positions(look: Lanes, name: str, number: int, state: Sequence[TopicPartition]) -> Finding:
    """Nothing has been committed yet, or the positions are gone. What was aborted counts as nothing."""
    app = name.rpartition(" ")[2]
    there = [one for one in state if one.partition < look.cluster.seen[one.topic].partitions]
    ends = await look.cluster.ends(there)
    async for _ in look.cluster.scan(dict.fromkeys(there, 0), ends):
        advice = f"`holdshort lanes accept-loss {app} {number}`, once it is clear why"
        return Finding("lanes", "finding", f"{name} halts: it has state and no positions", advice)
    return Finding("lanes", "note", f"{name} has committed nothing yet", f"does a {app} run?")


def _lost_state(positions: Positions, ends: Mapping[TopicPartition, int]) -> Iterator[str]:
    for where, end in ends.items():
        if end < (before := positions.changelog.get(str(where.partition), 0)):
            yield f"{where.topic}/{where.partition} ends at {end}, it has held {before}"


def _readable_inputs(
    look: Lanes, engine: EngineSettings, number: int, positions: Positions
) -> dict[TopicPartition, int]:
    """Where the lane goes on, in those of its own partitions that may be seen here."""
    own = engine.partitions_of(number)
    return {
        TopicPartition(topic, int(one)): reached.offset
        for topic, places in positions.inputs.items()
        for one, reached in places.items()
        if int(one) in own and topic in look.cluster.seen
    }


async def _lost_inputs(
    look: Lanes, engine: EngineSettings, number: int, positions: Positions
) -> AsyncIterator[str]:
    places = _readable_inputs(look, engine, number, positions)
    topics = {one.topic for one in places}
    ids = await look.admin.topic_ids([*topics, STATES[engine.app]])
    for topic, known in positions.topics.items():
        if topic in ids and ids[topic] != known:
            yield f"{topic} was deleted and made again"
    begins = await look.kafka.log.beginnings(list(places))
    ends = await look.kafka.log.ends(list(places), committed=False)
    for where, offset in places.items():
        if ids.get(where.topic) != positions.topics.get(where.topic, ids.get(where.topic)):
            continue
        if offset < begins[where]:
            yield f"{where.topic}/{where.partition} begins at {begins[where]}, it was read to {offset} only"
        elif offset > ends[where]:
            yield f"{where.topic}/{where.partition} ends at {ends[where]}, it was read to {offset}"


async def _lag(look: Lanes, engine: EngineSettings, number: int, positions: Positions) -> Finding:
    name = f"lane {number} of the {engine.app}"
    places = _readable_inputs(look, engine, number, positions)
    ends = await look.cluster.ends(list(places))
    behind = {one: ends[one] - offset for one, offset in places.items() if ends[one] > offset}
    total = sum(behind.values())
    if total <= look.most_lag:
        return Finding("lanes", "ok", f"{name} has read all but {total} records of {len(places)} partitions")
    worst = max(behind, key=lambda one: behind[one])
    text = f"{name} is {total} records behind, most in {worst.topic}/{worst.partition}: {behind[worst]}"
    advice = f"does a {engine.app} run, and own it? /readyz of its processes says (--at HOST:PORT)"
    return Finding("lanes", "finding", text, advice)


async def gating(look: Lanes) -> AsyncIterator[Finding]:
    """Runs that paused past the gate: agents that should be declared (contract 2, legacy pauses)."""
    if not look.cluster.may_read("pending"):
        return
    threads: dict[str, int] = {}
    for agent in (await look.cluster.latest("pending", _ungated_agent)).values():
        threads[agent] = threads.get(agent, 0) + 1
    for agent, count in sorted(threads.items()):
        text = f"agent {agent} pauses by CUSTOM on_interrupt, unseen by the gate, in {count} threads"
        yield Finding("gating", "finding", text, f"agents: {{{agent}: {{legacy_interrupts: true}}}}")


async def teams(look: Lanes) -> AsyncIterator[Finding]:
    """Questions that are open and of a team that the configuration does not have any more."""
    if not look.cluster.may_read("pending"):
        return
    config = look.patient.config
    rows = await look.cluster.latest("pending", keep_paused)
    may = look.cluster.may_read("gathering")
    known = await look.cluster.latest("gathering", keep_open) if may else {}
    rules = config.rules(look.patient.settings.partitions)
    found = [one for thread in paused(rows, known) for one in questions(thread, rules)]
    for said, advice in of_gone_teams(found, config.asked_teams):
        yield Finding("teams", "finding", said, advice)


def _ungated_agent(record: Record) -> str | None:
    if b'"notGated":true' not in (record.value or b""):
        return None
    try:
        state = decode_pending(record.value or b"")
    except UpgradeFirstError:
        return None
    return state.ended[0].agent if state.last_not_gated else None


# -- processes ----------------------------------------------------------------------------------------------


async def processes(addresses: Sequence[str]) -> AsyncIterator[Finding]:
    """What the management ports say."""
    for address in addresses:
        try:
            fine, report = await asyncio.to_thread(_ask, address)
        except (OSError, ValueError, http.client.HTTPException) as error:
            advice = "is the process up, HOLDSHORT_MANAGEMENT_HOST open to you?"
            yield Finding("processes", "finding", f"{address} does not answer: {error}", advice)
            continue
        halted = [lane for lane in report if lane.get("halted")]
        for lane in halted:
            text = f"{address}: lane {lane['lane']} is halted: {lane['halted']}"
            yield Finding("processes", "finding", text, lane.get("command") or "see its log")
        if not fine and not halted:
            states = ", ".join(f"{lane['lane']} {lane['state']}" for lane in report) or "none"
            text = f"{address} is not ready; lanes: {states}"
            yield Finding(
                "processes", "finding", text, "a restore takes its time; its log says what it waits for"
            )
        elif fine:
            yield Finding("processes", "ok", f"{address} is ready, with {len(report)} lanes")


def _ask(address: str) -> tuple[bool, list[dict[str, Any]]]:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]") or "127.0.0.1", int(port), timeout=ASK_S)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        body = json.loads(response.read())
    finally:
        connection.close()
    return response.status == 200, list(body["lanes"])
