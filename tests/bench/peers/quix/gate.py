"""Peer `quix`: the simplified gate on Quix Streams: RocksDB with a changelog, exactly-once."""

import os
from typing import Any

import orjson
from quixstreams import Application  # type: ignore[import-not-found]  # in an environment of its own

PREFIX = os.environ["BENCH_PREFIX"]

app = Application(
    broker_address=os.environ["BENCH_BOOTSTRAP_SERVERS"],
    consumer_group=f"{PREFIX}quix",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=int(os.environ["BENCH_COMMIT_MS"]) / 1000,
    state_dir=os.environ["BENCH_STATE_DIRECTORY"],
    loglevel="WARNING",
    consumer_poll_timeout=0.05,
    consumer_extra_config={
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1500,
        "group.instance.id": "bench",
    },
    producer_extra_config={"partitioner": "murmur2_random", "linger.ms": 0},
)

Tagged = tuple[bool, bytes]
"""Whether it comes from `inputs`, or goes to `runs.default`; and the bytes."""


def topic(name: str) -> Any:
    return app.topic(
        PREFIX + name,
        key_deserializer="bytes",
        value_deserializer="bytes",
        key_serializer="bytes",
        value_serializer="bytes",
    )


def judge(tagged: Tagged, state: Any) -> list[Tagged]:
    from_clients, raw = tagged
    value = orjson.loads(raw)
    if not from_clients:
        outcome = value.get("outcome") or {}
        if value["type"] == "RUN_FINISHED" and outcome.get("type") == "interrupt" and outcome["interrupts"]:
            state.set("open", {"runId": value["runId"], "interrupts": outcome["interrupts"]})
        return [(False, raw)]
    pause = state.get("open")
    if pause is None:
        return [(True, raw)]
    wanted = sorted(interrupt["id"] for interrupt in pause["interrupts"])
    if wanted == sorted(entry["interruptId"] for entry in value.get("resume") or ()):
        state.delete("open")
        return [(True, raw)]
    run = {"threadId": value["threadId"], "runId": value["runId"]}
    error = {"type": "RUN_ERROR", **run, "code": "PENDING_INTERRUPTS", "message": "Answer what is open."}
    return [(False, orjson.dumps(event)) for event in ({"type": "RUN_STARTED", **run}, error)]


def main() -> None:
    agent_events = app.dataframe(topic("agent-events.default")).apply(lambda raw: (False, raw))
    inputs = app.dataframe(topic("inputs")).apply(lambda raw: (True, raw))
    judged = agent_events.concat(inputs).apply(judge, stateful=True, expand=True)
    judged.filter(lambda tagged: not tagged[0]).apply(lambda tagged: tagged[1]).to_topic(topic("events"))
    judged.filter(lambda tagged: tagged[0]).apply(lambda tagged: tagged[1]).to_topic(topic("runs.default"))
    app.run()


main()
