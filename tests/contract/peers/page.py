"""PEERS.md: every input with what each peer says of it; `python -m tests.contract.peers.page` renews it."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.contract.peers import made, streams, test_tanstack_client, test_tanstack_hashes, unread
from tests.contract.peers.consumers import client_verdict, server_verdict
from tests.contract.peers.differences import AG2, CLIENT, NOT_ASKED, PEERS, STRANDS, TANSTACK, explained
from tests.contract.peers.judged import Verdict, judge
from tests.contract.peers.peer import Peer
from tests.contract.peers.situations import SITUATIONS, Situation

PAGE: Final = Path(__file__).parents[1] / "PEERS.md"


class Said(NamedTuple):
    """What was said of one input: by us, and by every peer that can be asked about it."""

    row: str
    ours: Verdict
    theirs: Mapping[str, Verdict]
    findings: list[str]

    @property
    def differing(self) -> list[str]:
        """The peers that say something else."""
        return [peer for peer, verdict in self.theirs.items() if not agree(peer, self.ours, verdict)]


def agree(peer: str, ours: Verdict, theirs: Verdict) -> bool:
    """Whether both take an input, both refuse it, or both only repeat what was said.

    A client sends what is only repeated: it cannot know that it was said before.
    """
    return ours.kind == theirs.kind or (peer == CLIENT and (ours.kind, theirs.kind) == ("repeated", "took"))


def asked_about(situation: Situation, strands: Peer, ag2: Peer, clients: Peer) -> Said:
    """Put one input to everybody: AG2 asks one question at a time, those of Strands do not expire."""
    told = {}
    if not situation.seconds_later:
        told[STRANDS] = judge(situation, strands)
    if situation.questions < 2:
        told[AG2] = judge(situation, ag2)
    first = next(iter(told.values()))
    assert all((one.row, one.ours) == (first.row, first.ours) for one in told.values())
    consumers = {
        CLIENT: client_verdict(clients, situation, first),
        TANSTACK: server_verdict(clients, situation, first),
    }
    theirs = {peer: one.theirs for peer, one in told.items()}
    theirs |= {peer: one for peer, one in consumers.items() if one}
    findings = [finding for one in told.values() for finding in one.gate.streams.findings()]
    return Said(first.row, first.ours, theirs, findings)


def name_of(situation: Situation) -> str:
    return f"{situation.row}: {situation.name}"


def difference_lines(situation: Situation, said: Said) -> list[str]:
    """The lines of the first table about one input; a difference without a reason has an empty last cell."""
    why = {one.peer: one.why for one in explained() if (one.row, one.name) == (situation.row, situation.name)}
    return [
        _line(said.row, situation.name, said.ours.words, peer, said.theirs[peer].words, why.get(peer, ""))
        for peer in said.differing
    ]


def judgement_line(situation: Situation, said: Said) -> str:
    """The line of the second table about one input; what differs is bold."""
    cells = []
    for peer in PEERS:
        words = said.theirs[peer].words if peer in said.theirs else ""
        cells.append(f"**{words}**" if peer in said.differing else words)
    return _line(said.row, situation.name, said.ours.words, *cells)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*names: str) -> list[str]:
    return [_line(*names), "|" + "---|" * len(names)]


def page(said: Mapping[str, Said]) -> str:
    """The whole page."""
    return "\n".join(_page(said)) + "\n"


def _page(said: Mapping[str, Said]) -> Iterator[str]:
    yield from INTRODUCTION.splitlines()
    yield from ("", "## Where a peer says something else", "")
    yield from _head("row of the contract", "input", "we say", "peer", "it says", "why")
    for situation in SITUATIONS:
        yield from difference_lines(situation, said[name_of(situation)])
    yield from ("", "## Everything that was put to them", "", JUDGEMENTS, "")
    yield from _head("row of the contract", "input", "we say", *PEERS)
    for situation in SITUATIONS:
        yield judgement_line(situation, said[name_of(situation)])
    yield from ("", "Rows about which nobody else can be asked:", "")
    yield from (f"- *{row}*: {why}." for row, why in NOT_ASKED.items())
    yield from ("", "## What is shown, read by ag-ui-validate", "", streams.INTRODUCTION, "")
    yield from _head("rule", "what it says", "why it is off")
    yield from (_line(f"`{one.rule}`", one.says, one.why) for one in streams.FALSE_ALARMS)
    yield from ("", "## What is shown, read by @ag-ui/client", "", unread.INTRODUCTION, "")
    yield from _head("an agent says", "the client says", "the gate says of the next input", "why we show it")
    yield from (_line(one.says, one.client, f"`{one.next}`", one.why) for one in unread.UNREAD)
    yield from ("", "## Hashes, computed by @tanstack/ai", "", HASHES, "")
    yield from _head("what differs", "why")
    yield from (_test_line(test) for test in test_tanstack_hashes.DIFFERENCES)
    yield from ("", "## What is shown, read by @tanstack/ai-client", "", CHAT, "")
    yield from _head("what differs", "why")
    yield from (_test_line(test) for test in test_tanstack_client.DIFFERENCES)


def _test_line(test: Callable[..., None]) -> str:
    """A test that shows a difference: its name says what, its first line of documentation why."""
    name = test.__name__.removeprefix("test_").replace("_", " ")
    return _line(name, (test.__doc__ or "").splitlines()[0])


INTRODUCTION: Final = """\
# Peers as judges

Real implementations of AG-UI were asked about the inputs that the gate judges, and given what the gate shows.
This page is made from what they said (`python -m tests.contract.peers.page`); tests ask again and compare.

| peer | what it is here |
|---|---|
| ag-ui-strands 1.0.2 | a producer that enforces: a real agent with a scripted model, behind its endpoint |
| AG2 1.2.1 | another, lenient where AG-UI 1.0 wants producers lenient; it asks one question at a time |
| @ag-ui/client 1.0.0 | the reference client: what it sends if its user wants to, with the gate behind it |
| TanStack's server | the validator of batches of @tanstack/ai 0.58.0, for interrupts as the gate shows them |
| ag-ui-validate 0.4.0 | reads what the gate shows |

The same bytes go to the gate and to the producer's endpoint, after the same history:
the producer's own events went through the gate.
Two verdicts are the same if both take the input, both refuse it, or both only say again what had been said.
AG-UI has no vocabulary of error codes, so other names for the same verdict are no difference."""

JUDGEMENTS: Final = """\
Bold is what differs; an empty cell is a peer that cannot be asked: AG2 about two questions at once, Strands
about expiry (its questions have none), the client about what no client writes and while a run is in flight,
TanStack's server where nothing is open.
`runs x` means that the agent's dangerous tool ran."""


HASHES: Final = """\
The canonical form and the hash of values, of the schemas that a question is bound under, and of batches are
those that TanStack's package computes, whatever is generated, but for these."""

CHAT: Final = """\
TanStack's client answers what is asked, shows at the question why an answer was refused, and can mend it.
What `test_tanstack_client.py` expects to fail is a defect of ours; this is none:"""


def main() -> None:
    """Ask everybody, and write the page."""
    python = made.producers_python()
    module = "tests.contract.peers.producers"
    peers = [
        Peer(python, "-m", f"{module}.strands_agent"),
        Peer(python, "-m", f"{module}.ag2_agent"),
        Peer(made.node(), made.node_driver()),
    ]
    PAGE.write_text(page({name_of(one): asked_about(one, *peers) for one in SITUATIONS}))
    for peer in peers:
        peer.stop()
    sys.stdout.write(f"{PAGE.name} renewed\n")


if __name__ == "__main__":
    main()
