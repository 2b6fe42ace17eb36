"""Histories for real clients: agents that speak AG-UI, and do everything else wrong that can be done wrong.

The gate judges how runs begin, pause and end, and passes what runs say in between as it came. A client
reads all of it and gives up at a message that has no beginning, so here messages and tool calls are whole.
"""

import os
import random
from collections.abc import Iterator
from typing import Any, Final

from tests.contract.histories import ECHOING, Choice, History, Step, plain_rules, strict_rules

HISTORIES: Final = 5 * int(os.environ.get("HOLDSHORT_TEST_HISTORIES", "60"))
LATER_MS: Final = 10**7


class WholeMessages(History):
    """A history in which what agents say between lifecycle events is whole, and new each time."""

    messages = 0

    def _event(self, choice: Choice, thread: str) -> Iterator[Step]:
        agent, names = self._speaker(choice, thread)
        if agent not in ECHOING:
            names.pop("holdshort-admission", None)
        whole = self._whole(self._says(choice, thread, names.get("holdshort-run", "r0")))
        for part in whole:
            line = {"topic": f"agent-events.{agent}", "key": thread, "value": part, "headers": names}
            if len(whole) == 1:
                self.events.append(line)
            yield self._judge({**line, "at": self.at})

    def _whole(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """The event with what must stand around it."""
        self.messages += 1
        match event["type"]:
            case "TEXT_MESSAGE_CONTENT":
                message = {"messageId": f"m{self.messages}"}
                begins = {"type": "TEXT_MESSAGE_START", "role": "assistant", **message}
                return [begins, event | message, {"type": "TEXT_MESSAGE_END", **message}]
            case "TOOL_CALL_START":
                call = {"toolCallId": f"call{self.messages}"}
                arguments = {"type": "TOOL_CALL_ARGS", "delta": "{}", **call}
                return [event | call, arguments, {"type": "TOOL_CALL_END", **call}]
            case _:
                return [event]

    def answers(self, source: list[bytes]) -> Iterator[list[dict[str, Any]]]:
        """What the gate says of each record, and at last, when every run that goes on is given up."""
        for step in self.play(source):
            yield step.said
        yield self.gate.play({"at": self.at + LATER_MS})

    def open(self) -> dict[str, list[str]]:
        """The ids of the interrupts that are there, by thread."""
        pauses = {(key or b"").decode(): state.pause for key, state in self.gate.threads.items()}
        return {thread: sorted(pause.ids) for thread, pause in pauses.items() if pause and pause.ids}


def histories() -> Iterator[tuple[int, WholeMessages, list[bytes]]]:
    """Always the same, as many as are asked for: a seed, a history that has not begun, its choices."""
    for seed in range(HISTORIES):
        chance = random.Random(seed)
        rules = chance.choice((plain_rules, strict_rules))()
        yield seed, WholeMessages(rules), [chance.randbytes(12) for _ in range(chance.randint(20, 80))]
