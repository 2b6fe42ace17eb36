"""A load of wild conversations: pauses, answers, refusals, conflicts, duplicates, expiries."""

import random
from datetime import UTC, datetime
from typing import Any

from tests.clients import Json, Seen, Wire, a_resume, an_input, an_interrupt, finished, paused, started

CONFIG = """
agents: {default: {}, other: {}}
teams: {payments: {}, dba: {}}
routes:
  - {reason: "pay:*", team: payments}
  - {reason: "db:*", team: dba, name: database}
  - {reason: input_required, team: client, answer_by: anyone}
limits: {open_pauses: 30}
"""
TOPICS = ("runs.default", "events", "approvals.payments", "approvals.dba", "dead-letters")
SCHEMA = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
PAST = datetime(2020, 1, 1, tzinfo=UTC).isoformat()


class Load:
    """Agent, clients and teams; `kinds` says of each thread what is asked in it."""

    def __init__(self, wire: Wire, chance: random.Random) -> None:
        self.wire = wire
        self.kinds: dict[str, str] = {}
        self._chance = chance
        wire.react = self.react

    def begin(self, *kinds: str) -> None:
        """One thread of each kind: `teams`, `client`, `expired` are answered; `late` is left waiting."""
        for kind in kinds:
            thread = f"thread-{self._chance.random()}"
            self.kinds[thread] = kind
            headers = {"holdshort-principal": f"user-{self._chance.random()}"}
            self.wire.send("inputs", an_input(thread, f"r-{self._chance.random()}"), headers=headers)

    async def until_answered(self) -> None:
        """Every thread that gets an answer has had its run resumed and finished."""
        wanted = {thread for thread, kind in self.kinds.items() if kind != "late"}
        waiting = {thread for thread, kind in self.kinds.items() if kind == "late"}

        def ended(outcome: str) -> set[str | None]:
            return {seen.key for seen in self.wire.seen if _outcome(seen) == outcome}

        await self.wire.until(
            lambda _: wanted <= ended("success") and waiting <= ended("interrupt"),
            patience=60,
            why="not every thread was answered",
        )

    def react(self, seen: Seen) -> None:
        if not isinstance(seen.value, dict) or seen.value.get("threadId") not in self.kinds:
            return
        if seen.topic == "runs.default":
            self._run(seen)
        elif seen.topic.startswith("approvals."):
            self._decide(seen.topic.removeprefix("approvals."), seen.value)
        elif _outcome(seen) == "interrupt":
            assert seen.key is not None
            self.wire.send("inputs", an_input(seen.key, f"wrong-{self._chance.random()}"))
            if self.kinds[seen.key] == "client":
                self.wire.send("inputs", a_resume(seen.key, "answered", {"i": True}))

    def _run(self, seen: Seen) -> None:
        thread, run = seen.value["threadId"], seen.value["runId"]
        headers = {"holdshort-run": run, "holdshort-admission": seen.headers["holdshort-admission"]}
        last = finished(thread, run)
        if not seen.value.get("resume"):
            last = paused(thread, run, *self._questions(self.kinds[thread]))
        for event in (started(thread, run), last):
            self.wire.send("agent-events.default", event, headers=headers)

    def _questions(self, kind: str) -> list[Json]:
        if kind == "client":
            return [an_interrupt("i", reason="input_required", message=str(self._chance.random()))]
        more: dict[str, Any] = {"expiresAt": PAST} if kind == "expired" else {"responseSchema": SCHEMA}
        return [
            an_interrupt("i", reason=f"pay:{self._chance.random()}", **more),
            an_interrupt("j", reason=f"db:{self._chance.random()}", responseSchema=SCHEMA),
        ]

    def _decide(self, team: str, asked: Json) -> None:
        kind = self.kinds[asked["threadId"]]
        if kind == "late" or (kind, team) == ("expired", "payments"):
            return  # what had expired before it was asked, the router cancels by itself
        yes = self._decision(asked, {"status": "resolved", "payload": {"approved": True}})
        answers = [yes, yes, self._decision(asked, {"status": "resolved", "payload": {"approved": False}})]
        for answer in answers:
            self.wire.send(f"decisions.{team}", answer)

    def _decision(self, asked: Json, answer: Json) -> Json:
        return {
            "v": 1,
            "decisionId": f"d-{self._chance.random()}",
            "threadId": asked["threadId"],
            "generation": asked["generation"],
            "decidedBy": f"user-{self._chance.random()}",
            "resume": [{"interruptId": asked["interrupt"]["id"], **answer}],
        }


def _outcome(seen: Seen) -> str | None:
    """How a run ended, if that is what the record tells clients."""
    if seen.topic != "events":
        return None
    outcome: dict[str, str] = seen.value.get("outcome") or {}
    return outcome.get("type")
