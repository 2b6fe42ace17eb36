"""A gate under attack, alone in a process with little time and memory: transcript lines in, verdicts out.

Run as a module; it reads a JSON list of transcript lines and prints the last answer of each. Whatever opens a
connection or a file once it has begun ends the process.
"""

import json
import resource
import sys
import time
from typing import Any

from tests.expected import admitted, refused
from tests.playbook import Playbook, agent, client, question, rules

from holdshort.gatekeeper.transcript import Transcript

SECONDS = 5
MEGABYTES = 700
FORBIDDEN = ("socket.", "open", "urllib.", "subprocess.")


def confine() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES * 2**20, MEGABYTES * 2**20))
    sys.addaudithook(_stay_inside)


def _stay_inside(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith(FORBIDDEN):
        raise PermissionError(event)


def judge(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    gate = Transcript(rules())
    answers = []
    for line in lines:
        began = time.process_time()
        (answer,) = gate.play(line)
        took = time.process_time() - began
        codes = [problem["code"] for problem in answer["problems"]]
        answers.append({**answer, "problems": codes, "emits": len(answer["emits"]), "seconds": took})
    return answers


def warm() -> None:
    """What is imported only when it is first used must not look like an attack."""
    play = Playbook()
    schema = {"type": "object", "properties": {"a": {"pattern": "^x"}}, "maxProperties": 1}
    play(agent.interrupts("r0", question("a", responseSchema=schema)))
    play >> client.resumes("r1", a={"a": 1.5, "b": 2}) << refused("INVALID_PAYLOAD")
    play >> client.resumes("r1", a={"a": "x", "ä": 1.5}) << refused("INVALID_PAYLOAD")
    play >> client.resumes("r1", a={"ä": 1.5}) << admitted()


if __name__ == "__main__":
    given = json.load(sys.stdin)
    warm()
    confine()
    json.dump(judge(given), sys.stdout)
