"""Clients and people of the chaos world: threads with stories, each told to its end, whatever happens."""

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer
from tests.chaos.story import Question, questions, wish
from tests.chaos.team import decision_of
from tests.clients import Seen, an_input

from holdshort.contract.resume import BINDING
from holdshort.sdk.approvals import Approval, approve, decision_record, deny

AT_ONCE: Final = 16  # threads whose stories are told at the same time
RATE: Final = 8.0  # records a second that clients and people write, at most
ROUNDS: Final = (1, 2, 3)
TOLD_TWICE: Final = 0.2  # of a person's decisions
CONTRADICTED: Final = 0.1


@dataclass
class Story:
    """One thread: in each round it asks, tries what is not allowed, waits for people, and goes on.

    `open` are its runs of which the client has not heard the end.
    """

    thread: str
    rounds: deque[list[Question]]
    number: int = 0
    tries: int = 0
    open: set[str] = field(default_factory=set)
    generation: int | None = None
    wrong: str | None = None
    settled: bool = False
    answerable: dict[str, tuple[Approval, int]] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return not self.rounds and not self.open and self.generation is None

    @property
    def strict(self) -> bool:
        """Whether the wrong input must be refused: a person waits for that before answering."""
        return any(question.who == "person" for question in self.rounds[0])


class Load:
    """Tells stories until it is to `wind_down`; `saw` is called with every record that becomes visible."""

    def __init__(self, servers: str, prefix: str, random: Random) -> None:
        self.stories: dict[str, Story] = {}
        self.begun = 0
        self.pauses: dict[str, set[int]] = {}  # generations that clients saw, by thread
        self.must_be_refused: set[str] = set()  # run ids
        self.sent: set[str] = set()  # run ids of inputs that were acknowledged
        self.troubles: list[str] = []
        self._winding_down = False
        self._random = random
        self._prefix = prefix
        self._told: set[tuple[str, int]] = set()
        self._waiting: deque[tuple[str, Any, int]] = deque()
        self._names = (f"t{number}" for number in itertools.count())
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.timeout.ms": 0,
                "reconnect.backoff.max.ms": 1000,
                "linger.ms": 0,
                "log_level": 0,
            }
        )

    # -- telling -------------------------------------------------------------------------------------------

    async def tell(self) -> None:
        """Write what is due, at a modest rate, until cancelled."""
        while True:
            for _ in range(AT_ONCE - len(self.stories)):
                self._begin()
            if self._waiting:
                topic, value, partition = self._waiting.popleft()
                self._produce(topic, value, partition)
            self._producer.poll(0)
            await asyncio.sleep(1 / RATE)

    def wind_down(self) -> None:
        """No new threads, and no new rounds of those that there are."""
        self._winding_down = True
        for story in self.stories.values():
            while len(story.rounds) > 1:
                story.rounds.pop()

    @property
    def done(self) -> bool:
        return not self.stories and not self._waiting and len(self._producer) == 0

    def _begin(self) -> None:
        if self._winding_down:
            return
        rounds = [questions(self._random) for _ in range(self._random.choice(ROUNDS))]
        story = Story(next(self._names), deque(rounds))
        self.stories[story.thread] = story
        self.begun += 1
        self._ask(story)

    def _produce(self, topic: str, value: Any, partition: int) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self.troubles.append(f"{topic} of {value['threadId']}: {error}")
            elif topic == "inputs":
                self.sent.add(value["runId"])

        raw = json.dumps(value).encode()
        self._producer.produce(self._prefix + topic, raw, value["threadId"], partition, on_delivery=delivered)

    def _say(self, topic: str, value: Any, partition: int = -1) -> None:
        self._waiting.append((topic, value, partition))

    def _input(self, story: Story, run: str, asked: list[Question]) -> None:
        messages = [{"id": f"u-{run}", "role": "user", "content": wish(asked)}]
        story.open.add(run)
        self._say("inputs", an_input(story.thread, run, messages=messages))

    def _ask(self, story: Story) -> None:
        story.tries += 1
        self._input(story, f"{story.thread}.a{story.number}.{story.tries}", story.rounds[0])

    # -- listening -----------------------------------------------------------------------------------------

    def saw(self, seen: Seen) -> None:
        if seen.topic == "events" and seen.key in self.stories:
            self._heard(self.stories[seen.key], seen)
        elif seen.topic.startswith("approvals."):
            self._asked(seen)

    def _heard(self, story: Story, seen: Seen) -> None:
        run, type_ = seen.headers["holdshort-run"], seen.value["type"]
        if type_ not in ("RUN_FINISHED", "RUN_ERROR"):
            return
        story.open.discard(run)
        outcome = seen.value.get("outcome") or {}
        if outcome.get("type") == "interrupt":
            self._paused(story, outcome["interrupts"])
        elif type_ == "RUN_FINISHED" and run.startswith("hs-"):
            story.generation, story.settled = None, True
        self._go_on(story)

    def _paused(self, story: Story, interrupts: list[Any]) -> None:
        story.generation = interrupts[0]["metadata"][BINDING]["generation"]
        seen = self.pauses.setdefault(story.thread, set())
        seen.add(story.generation)
        story.wrong = f"{story.thread}.w{len(seen)}"
        if story.strict:
            self.must_be_refused.add(story.wrong)
        self._input(story, story.wrong, [])

    def _go_on(self, story: Story) -> None:
        """Whatever has just ended: what comes next, if nothing else has to end before."""
        if story.open:
            return
        for approval, partition in list(story.answerable.values()):
            self._decide(approval, partition)
        story.answerable.clear()
        if story.generation is not None:
            return
        if story.settled:
            story.rounds.popleft()
            story.number += 1
            story.tries, story.settled, story.wrong = 0, False, None
        if story.rounds:
            self._ask(story)
        else:
            del self.stories[story.thread]

    # -- deciding ------------------------------------------------------------------------------------------

    def _asked(self, seen: Seen) -> None:
        if seen.value is None:
            return
        approval = Approval.model_validate(seen.value)
        story = self.stories.get(approval.thread_id)
        if story is None or approval.args["who"] != "person":
            return
        story.answerable[approval.approval_id] = (approval, seen.partition)
        if story.generation == approval.generation and not story.open:
            self._go_on(story)

    def _decide(self, approval: Approval, partition: int) -> None:
        if (approval.approval_id, approval.attempt) in self._told:
            return
        self._told.add((approval.approval_id, approval.attempt))
        for value in self._decisions(approval):
            self._say(f"decisions.{approval.team}", value, partition)

    def _decisions(self, approval: Approval) -> Iterator[dict[str, Any]]:
        """A person's decision; now and then said twice, or followed by the opposite."""
        decision = decision_of(approval)
        first = decision_record(approval, decision, datetime.now(UTC))
        yield first
        if self._random.random() < TOLD_TWICE:
            yield first
        if self._random.random() < CONTRADICTED:
            opposite = deny if decision.payload["approved"] else approve
            other = opposite({"slip": decision.payload["slip"]})
            yield decision_record(approval, other, datetime.now(UTC))
