"""The service of one team, on a plain Kafka client: reads what is open, does what is planned.

Runs as `python -m tests.soak.decider SERVERS PREFIX PARTITIONS TEAM SEED`. Started anew it reads its team's
topic from the beginning, and finds there just what is open; what it had in mind besides is forgotten.
At SIGTERM it does at once what is still planned.
"""

import heapq
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from types import FrameType
from typing import Any, Final

import orjson
from tests.soak.plans import PRINCIPAL, Step, plan

from holdshort.cli.bench.wire import Reader, Sender

LOOK_S: Final = 0.05


class Desk:
    """The questions of a team and what is planned about them; times are of the monotonic clock."""

    def __init__(self, team: str, seed: int) -> None:
        self._team = team
        self._seed = seed
        self._open: dict[bytes, int] = {}  # attempts, by approval
        self._late: dict[bytes, list[Step]] = {}
        self._planned: list[tuple[float, int, Step, bytes, int]] = []
        self._order = count()

    def saw(self, key: bytes, value: bytes | None, now: float) -> None:
        """A question is asked, changed or withdrawn."""
        if value is None:
            attempt = self._open.pop(key, 0)
            self._plan(self._late.pop(key, []), key, attempt, now)
            return
        asked = orjson.loads(value)
        if self._open.get(key) == asked["attempt"]:
            return
        self._open[key] = attempt = asked["attempt"]
        steps = plan(asked, self._team, self._seed)
        self._late[key] = [step for step in steps if step.when == "withdrawn"]
        self._plan([step for step in steps if step.when != "withdrawn"], key, attempt, now)

    def _plan(self, steps: list[Step], key: bytes, attempt: int, now: float) -> None:
        for step in steps:
            heapq.heappush(self._planned, (now + step.after, next(self._order), step, key, attempt))

    def due(self, now: float) -> Iterator[Step]:
        while self._planned and self._planned[0][0] <= now:
            _, _, step, key, attempt = heapq.heappop(self._planned)
            if step.when != "unanswered" or self._open.get(key) == attempt:
                yield step


def main(servers: str, prefix: str, partitions: str, team: str, seed: str) -> None:
    stopping = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    connection: dict[str, Any] = {"bootstrap.servers": servers}
    desk, sender = Desk(team, int(seed)), Sender(connection)
    with Reader(connection, [f"{prefix}approvals.{team}"], int(partitions)) as reader:
        for key, value in _standing(reader).items():
            desk.saw(key, value, time.monotonic())
        while not stopping:
            for message in reader.take(LOOK_S):
                desk.saw(message.key(), message.value(), time.monotonic())
            for step in desk.due(time.monotonic()):
                _send(sender, prefix, step)
    for step in desk.due(float("inf")):
        _send(sender, prefix, step)
    sender.flush()


def _standing(reader: Reader) -> dict[bytes, bytes]:
    """The questions that are open: the last value of every key that is not a tombstone."""
    last = {one.key(): one.value() for messages in reader.to_the_end() for one in messages}
    return {key: value for key, value in last.items() if value is not None}


def _send(sender: Sender, prefix: str, step: Step) -> None:
    """Keyed as every decision is, also one that has lost its thread: that must be a dead letter."""
    key = str(step.value.get("threadId", step.by)).encode()
    headers: list[tuple[str, str | bytes | None]] = [(PRINCIPAL, step.by.encode())]
    sender.send(f"{prefix}decisions.{step.team}", (key, orjson.dumps(step.value)), headers)


if __name__ == "__main__":
    main(*sys.argv[1:])
