"""What the real clients say of the same inputs: AG-UI's before it sends, TanStack's server before it acts."""

from typing import Any

import orjson
from tests.contract.peers.judged import Gate, Judgement, Verdict, our_verdict
from tests.contract.peers.peer import Peer
from tests.contract.peers.situations import Situation

Json = dict[str, Any]


def parsed(body: str) -> Json | None:
    """An input that a client can be asked to send: a JSON object that is written as libraries write it."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if value.get("runId") and orjson.dumps(value).decode() == body else None


def client_verdict(clients: Peer, situation: Situation, told: Judgement) -> Verdict | None:
    """What AG-UI's client does when its user asks for the input, with our gate behind it.

    None where it is not asked: while a run is in flight, and of what is no input at all.
    """
    if situation.in_flight or parsed(told.body) is None:
        return None
    gate, runs = Gate(told.gate.began), [*(one.body for one in told.given), told.body]
    said = iter([one.events for one in told.given])

    def posted(asked: Json) -> list[Json]:
        answer = gate.put("t", asked["posted"])
        events = next(said, None)
        if answer["verdict"] == "admitted":
            run = orjson.loads(asked["posted"])["runId"]
            plain = [{"type": "RUN_STARTED", "threadId": "t", "runId": run}]
            plain += [{"type": "RUN_FINISHED", "threadId": "t", "runId": run}]
            gate.say("t", plain if events is None else events)

        if len(gate.shown) == len(told.given):
            gate.ahead = situation.seconds_later
        return gate.shown[-1]

    asked = {
        "do": "converse",
        "thread": "t",
        "runs": [orjson.loads(body) for body in runs],
        "ahead": situation.seconds_later * 1000,
    }
    *before, last = clients.ask(asked, posted)["answer"]
    assert all(one["sent"] for one in before), (situation.name, before)
    assert last["pending"] == gate.open("t"), (situation.name, last)
    if last["sent"] is None:
        return Verdict("refused", "does not send it")
    return Verdict(
        "took",
        "sends it"
        if our_verdict(gate.last).kind == told.ours.kind
        else f"sends it otherwise: {our_verdict(gate.last).words}",
    )


def server_verdict(clients: Peer, situation: Situation, told: Judgement) -> Verdict | None:
    """What TanStack's server says of the batch, for the interrupts as the gate shows them.

    None where it is not asked: it judges a list of entries for interrupts that are open.
    """
    value = parsed(told.body)
    ends = [event for shown in told.gate.shown[:-1] for event in shown if event["type"] == "RUN_FINISHED"]
    outcome = (ends[-1].get("outcome") or {}) if ends else {}
    if (
        situation.in_flight
        or outcome.get("type") != "interrupt"
        or value is None
        or not isinstance(value.get("resume", []), list)
    ):
        return None
    asked = {
        "do": "validate",
        "thread": "t",
        "interrupts": outcome["interrupts"],
        "resume": value.get("resume"),
        "now": told.gate.at,
    }
    errors = clients.ask(asked)["answer"]
    codes = list(dict.fromkeys(error["code"] for error in errors))
    return (
        Verdict("refused", ", ".join(f"`{code}`" for code in codes)) if codes else Verdict("took", "takes it")
    )
