"""The reference client reads what the gate shows: it can read it, and holds open what the gate does."""

from typing import Any

import pytest
from tests.contract.peers.histories import HISTORIES, histories
from tests.contract.peers.peer import Peer
from tests.contract.peers.unread import UNREAD, Unread, told_by_the_client, told_by_the_gate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # makes and asks other processes

OF_THE_AGENT = "Removed unrecognised material at '/outcome/interrupts/"


def shown(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a client of these threads is given, run by run."""
    return [
        {"key": emit["key"], "run": emit["headers"]["holdshort-run"], "event": emit["value"]}
        for answer in answers
        for emit in answer["emits"]
        if emit["topic"] == "events"
    ]


def test_its_pending_set_is_ours_after_every_record_of_every_history(clients: Peer) -> None:
    held = 0
    for seed, history, source in histories():
        steps, ours = [], []
        for answers in history.answers(source):
            steps.append(shown(answers))
            ours.append(history.open())
        said = clients.ask({"do": "watch", "steps": steps})

        assert said["answer"]["faults"] == [], f"seed {seed}"
        for number, (pending, expected) in enumerate(zip(said["answer"]["pending"], ours, strict=True)):
            theirs = {thread: sorted(ids) for thread, ids in pending.items() if ids}
            assert theirs == expected, f"seed {seed}, record {number}: {history.lines[number]}"
        assert [text for text in said["warnings"] if OF_THE_AGENT not in text] == [], f"seed {seed}"
        held += sum(bool(one) for one in ours)
    assert held > 10 * HISTORIES, "a history in which nothing is open proves nothing"


@pytest.mark.parametrize("case", UNREAD, ids=lambda case: case.says)
def test_what_it_cannot_read_of_an_agent_never_lets_an_input_pass(case: Unread, clients: Peer) -> None:
    """Its stream ends there, so it holds nothing open; the gate does, and says so at the next input."""
    assert told_by_the_client(case, clients) == case.client
    assert told_by_the_gate(case) == case.next
