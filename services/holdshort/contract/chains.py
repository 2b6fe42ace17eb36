"""The audit read again: its chains followed record by record, and what is not as it was written. Pure.

Whoever holds the records can tell without our help that none was removed, changed, added or moved: each names
the digest of the value before it, the newest is named by its service's positions. A break lies between two
records; which of the two cases it is (removed, or changed) a chain alone cannot tell, and so is not guessed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import msgspec

from holdshort.contract.canon import sha256
from holdshort.contract.pending import UpgradeFirstError

VERSION: Final = 1
SERVICES: Final = ("gatekeeper", "router")
FOR_EVER: Final = 2**63

What = Literal[
    "unreadable", "rekeyed", "begun_anew", "cut_off", "gap", "inserted", "moved", "headless", "unsaid"
]


class Place(msgspec.Struct, frozen=True):
    """Where the judged record lies; a deadline has an empty topic."""

    topic: str
    partition: int
    offset: int


class Judgement(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record of the audit as far as it is read here; what else stands in it is passed over."""

    v: int
    thread_id: str
    at: int
    service: str
    verdict: str
    code: str | None
    source: Place
    previous: str
    run_id: str | None = None
    generation: int | None = None
    principal: str | None = None
    team: str | None = None
    decision_id: str | None = None
    interrupt_id: str | None = None
    tool_call_id: str | None = None
    settled: int | None = None
    superseded: int | None = None
    digests: dict[str, Any] = {}
    entries: list[dict[str, Any]] = []


class Link(NamedTuple):
    """One record in its place; `digest` is that of its value."""

    partition: int
    offset: int
    digest: str
    said: Judgement
    value: bytes


class Finding(NamedTuple):
    """Something that is not as it was written.

    It lies at `offset`, or (if `after` is given) behind that record of the chain. What lies up to `proved`
    is right for certain; None if nothing of it is. It happened between `began` and `at` (ms).
    """

    what: What
    service: str
    partition: int
    offset: int
    began: int
    at: int
    after: int | None = None
    proved: int | None = None
    other: int | None = None


@dataclass(slots=True)
class Followed:
    """One chain as far as it has been followed: `last` is its newest record, `proved` the one before that."""

    service: str
    partition: int
    records: int = 0
    first: Link | None = None
    last: Link | None = None
    proved: int | None = None


@dataclass(slots=True)
class Chains:
    """Follows all chains; records are told partition by partition, in the order of the log.

    `begins` are the first offsets that the partitions still have: a chain may begin later than it was begun
    only where the log does. `heads` are the newest digests by service and partition, as far as known.
    `firsts` are those of the oldest records, where it is known what must be there (an export says so): then a
    chain of which nothing is there is missed, too. `young` are those whose newest record is younger than
    anything that retention takes away: it must be there, however late the log begins.
    """

    begins: Mapping[int, int]
    heads: Mapping[tuple[str, int], str] = field(default_factory=dict)
    chains: dict[tuple[str, int], Followed] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    breaks: dict[str, list[int]] = field(default_factory=dict)
    found: set[tuple[str, int]] = field(default_factory=set)
    firsts: Mapping[tuple[str, int], str] | None = None
    young: Collection[tuple[str, int]] = ()

    def follow(
        self, partition: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None
    ) -> Link | None:
        """The next record; None if it cannot be read. Raises UpgradeFirstError."""
        said = read_judgement(value)
        if said is None or said.service not in SERVICES:
            self.findings.append(Finding("unreadable", "", partition, offset, timestamp, timestamp))
            return None
        value = value or b""
        link = Link(partition, offset, sha256(value), said, value)
        chain = self.chains.setdefault((said.service, partition), Followed(said.service, partition))
        if key != said.thread_id.encode():
            self._find("rekeyed", chain, link)
        if (what := self._break(chain, link)) is not None:
            self._find(what, chain, link)
            chain.proved = None
        elif chain.last is not None:
            chain.proved = chain.last.offset
        chain.first = chain.first or link
        chain.last = link
        chain.records += 1
        if self.heads.get((said.service, partition)) == link.digest:
            self.found.add((said.service, partition))
        return link

    def _break(self, chain: Followed, link: Link) -> What | None:
        previous = link.said.previous
        if chain.last is None:
            cut_off = bool(previous) and self.begins.get(link.partition, 1) == 0
            if self.firsts is not None:
                cut_off = link.digest != self.firsts.get((chain.service, chain.partition))
            return "cut_off" if cut_off else None
        if previous == chain.last.digest:
            return None
        if not previous:
            return "begun_anew"
        self.breaks.setdefault(previous, []).append(len(self.findings))
        return "gap"

    def _find(self, what: What, chain: Followed, link: Link) -> None:
        last = chain.last or link
        began, at = sorted((last.said.at, link.said.at))  # one of them may be what was changed
        where = (chain.service, chain.partition, link.offset, began, at)
        after = None if chain.last is None else last.offset
        self.findings.append(Finding(what, *where, after=after, proved=chain.proved))

    @property
    def headless(self) -> Collection[tuple[str, int]]:
        """The chains whose newest record has not been seen, though the log could still hold it."""
        return [
            name
            for name, head in self.heads.items()
            if head
            and name not in self.found
            and (name in self.chains or name in self.young or self._must_begin_here(name))
        ]

    def _must_begin_here(self, name: tuple[str, int]) -> bool:
        return self.firsts is not None or self.begins.get(name[1], 1) == 0

    def end(self, heads: Mapping[tuple[str, int], str] | None = None) -> None:
        """Everything has been told: what is missing at the end, or too much there, is found now.

        `heads` are the newest digests as they are after the last record was read: a service names what it
        writes in the same transaction, so a record behind a head that has not moved is none of its own.
        """
        for name, chain in self.chains.items():
            last, head = chain.last, (heads or {}).get(name)
            if last is None or head is None or head != self.heads.get(name) or name not in self.found:
                continue
            if head != last.digest:
                self.findings.append(Finding("unsaid", *name, last.offset, last.said.at, FOR_EVER))
        for service, partition in self.headless:
            chain = self.chains.get((service, partition), Followed(service, partition))
            last, after = chain.last, chain.last.offset if chain.last is not None else None
            at, offset = (
                (last.said.at, last.offset) if last is not None else (0, self.begins.get(partition, 0))
            )
            self.findings.append(
                Finding("headless", service, partition, offset, at, FOR_EVER, after, chain.proved)
            )

    def explain(self, service: str, partition: int, offset: int, digest: str) -> None:
        """Told once more, a record that some break names says what kind of break that is."""
        for number in self.breaks.get(digest, ()):
            finding = self.findings[number]
            if (finding.service, finding.partition) == (service, partition):
                what: What = "inserted" if offset < finding.offset else "moved"
                self.findings[number] = finding._replace(what=what, other=offset)


def read_judgement(value: bytes | None) -> Judgement | None:
    """A record's value; None for what is none of ours. Raises UpgradeFirstError."""
    try:
        said = msgspec.json.decode(value or b"", type=Judgement)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if said.v > VERSION:
        raise UpgradeFirstError(f"a record of the audit has version {said.v}, not {VERSION}: upgrade first")
    return said
