"""Real producers and clients are asked about the inputs that the gate judges; PEERS.md says what they say."""

from collections import Counter
from collections.abc import Callable

import pytest
from tests.contract.peers import page
from tests.contract.peers.differences import NOT_ASKED, PEERS, explained
from tests.contract.peers.page import PAGE, Said, name_of
from tests.contract.peers.peer import Peer
from tests.contract.peers.situations import SITUATIONS, Situation

from holdshort.contract.inputs import ROWS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # makes and asks other processes

Ask = Callable[[Situation], Said]


@pytest.fixture(scope="session")
def ask(strands: Peer, ag2: Peer, clients: Peer) -> Ask:
    """What everybody says of a situation; each is put to them once."""
    known: dict[str, Said] = {}

    def asked(situation: Situation) -> Said:
        if (name := name_of(situation)) not in known:
            known[name] = page.asked_about(situation, strands, ag2, clients)
        return known[name]

    return asked


@pytest.mark.parametrize("situation", SITUATIONS, ids=name_of)
def test_what_differs_is_explained(situation: Situation, ask: Ask) -> None:
    said = ask(situation)
    assert said.row == situation.row
    reasons = {one.peer for one in explained() if (one.row, one.name) == (situation.row, situation.name)}
    assert set(said.differing) == reasons, {peer: verdict.words for peer, verdict in said.theirs.items()}


@pytest.mark.parametrize("situation", SITUATIONS, ids=name_of)
def test_what_is_shown_after_each_input_is_valid(situation: Situation, ask: Ask) -> None:
    assert ask(situation).findings == []


def test_the_page_says_what_everybody_says(ask: Ask) -> None:
    said = {name_of(situation): ask(situation) for situation in SITUATIONS}
    assert PAGE.read_text() == page.page(said), "python -m tests.contract.peers.page renews it"


def test_every_row_of_the_contract_is_asked_about_or_cannot_be() -> None:
    rows = {row.__name__.replace("_", " ") for row in ROWS} | {
        "unreadable input",
        "miskeyed",
        "other past answer",
    }
    assert {situation.row for situation in SITUATIONS} | set(NOT_ASKED) == rows
    assert not {situation.row for situation in SITUATIONS} & set(NOT_ASKED)


def test_every_reason_is_about_inputs_and_peers_that_there_are() -> None:
    names = Counter((situation.row, situation.name) for situation in SITUATIONS)
    reasons = Counter((one.peer, one.row, one.name) for one in explained())
    assert set(names.values()) == set(reasons.values()) == {1}
    assert {(row, name) for _, row, name in reasons} <= set(names)
    assert {peer for peer, _, _ in reasons} == set(PEERS)
