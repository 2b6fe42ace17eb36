"""The audit in words: what was asked, who answered what, what came of it; and what is wrong with a chain."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from holdshort.cli.showing import moment, plain, short
from holdshort.contract.chains import Finding, Followed, Judgement, Link, What
from holdshort.contract.hashing import MARK

# What each verdict says of the record that it judged; more is said of some in `_more`.
GATE: Final[Mapping[str, str]] = {
    "opened": "run {run} pauses and asks",
    "settled": "run {run} ends, and with it pause {pause}",
    "reopened": "run {run} failed with the answer: pause {pause} is open again",
    "lost": "run {run} was not heard of for too long",
    "violated": "an event of the agent is against the contract",
    "unreadable": "a record that cannot be used",
    "admitted": "run {run} is admitted",
    "refused": "input {run} is refused",
    "duplicate": "input {run} is one that was dealt with",
    "replayed": "input {run} answers what is over: it is told how things stand",
    "forgotten": "the thread is forgotten, and what was open of it is over",
    "attempted": "tool call {call} has its result",
}
ROUTER: Final[Mapping[str, str]] = {
    "accepted": "a decision of team {team} is accepted",
    "refused": "a decision of team {team} is refused",
    "duplicate": "a decision of team {team} says again what was said",
    "unreadable": "a decision that cannot be used",
    "forwarded": "the whole batch is sent to the agent as run {run}",
    "held": "the batch is complete, but not sent",
    "shown_again": "the questions are put again",
    "sent_again": "the same batch is sent again",
    "reminded": "team {team} is reminded of {interrupt}",
    "escalated": "{interrupt} goes to another team than {team}",
    "overflowed": "{interrupt} goes elsewhere, for team {team} has too much open",
    "answered": "{interrupt} is answered as its route says, for nobody did in time",
    "cancelled": "{interrupt} is cancelled by the router",
    "expired": "the answer to {interrupt} came too late to be sent: it is cancelled",
    "overdue": "{interrupt} is overdue, and may not be cancelled",
    "unfit": "the answer that a route gives does not fit {interrupt}",
    "abandoned": "the router asks for the end of pause {pause}",
    "overruled": "what team {team} said of {interrupt} does not count",
}


class Trail:
    """The records of one thread, or of one tool call: of the pauses that asked about it, and its results."""

    def __init__(self, threads: Collection[str] | None, tool_call: str | None) -> None:
        """`threads` are the names under which the thread may stand; None: it is not asked for."""
        self.hashed = False
        self._threads = threads
        self._call = tool_call
        self._pauses: set[tuple[str, int]] = set()
        self._links: list[Link] = []

    def note(self, link: Link) -> None:
        """Keep it if it is meant; every pause is told before what is said of it."""
        said = link.said
        self.hashed = self.hashed or said.thread_id.startswith(MARK)
        meant = self._threads is None or said.thread_id in self._threads
        if meant and (self._call is None or self._concerns(said)):
            self._links.append(link)

    def _concerns(self, said: Judgement) -> bool:
        asks = self._call in (said.digests.get("args") or {})
        if asks and said.generation is not None:
            self._pauses.add((said.thread_id, said.generation))
        if asks or said.tool_call_id == self._call:
            return True
        if said.tool_call_id is not None:
            return False
        named = (said.generation, said.settled, said.superseded)
        return any((said.thread_id, one) in self._pauses for one in named if one is not None)

    def links(self) -> list[Link]:
        """In the order in which it happened: a thread has one partition."""
        return sorted(self._links, key=lambda one: (one.partition, one.offset))


# -- records ------------------------------------------------------------------------------------------------


def link_said(link: Link) -> str:
    """One record: when, by whom, what, and the digests that prove it."""
    said = link.said
    where = f"audit/{link.partition}/{link.offset}"
    lines = [f"{moment(said.at)}  {said.service:10}  {_sentence(said)}.", *_more(said)]
    if said.source.topic:
        source = said.source
        lines.append(f"judged {source.topic}/{source.partition}/{source.offset}, written as {where}")
    else:
        lines.append(f"at its deadline, written as {where}")
    return plain("\n    ".join(lines), lines=True)


def _sentence(said: Judgement) -> str:
    words = (GATE if said.service == "gatekeeper" else ROUTER).get(said.verdict, said.verdict)
    text = words.format(
        run=short(said.run_id or "-"),
        pause=said.settled or said.generation or "-",
        call=short(said.tool_call_id or "-"),
        team=said.team or "-",
        interrupt=short(said.interrupt_id or "-"),
    )
    if said.verdict == "admitted" and said.digests.get("batch"):
        text += f" with the answers to pause {said.generation}"
    if said.verdict == "opened":
        text += f" (pause {said.generation})"
    return f"{text}: {said.code}" if said.code else text


def _more(said: Judgement) -> list[str]:
    """What was asked, answered and brought, by digests."""
    lines = []
    if said.principal is not None:
        lines.append(f"asked for by {short(said.principal)}")
    if said.settled is not None:
        lines.append(f"it ends pause {said.settled}, whose answers it carried")
    if said.superseded is not None:
        lines.append(f"it takes the place of pause {said.superseded}")
    if said.verdict == "opened":
        lines.append(f"questions {said.digests.get('descriptors')}")
    for call, digest in (said.digests.get("args") or {}).items():
        lines.append(
            f"tool call {short(call)}, arguments {digest or 'not all kept, so not shown to anybody'}"
        )
    lines += [_entry(entry) for entry in said.entries]
    if said.verdict in ("admitted", "forwarded") and said.digests.get("batch"):
        lines.append(f"answers {said.digests['batch']}")
    if said.digests.get("result"):
        of = "content" if said.tool_call_id is not None else "the run's last event"
        lines.append(f"result {said.digests['result']} ({of})")
    return lines


def _entry(entry: dict[str, Any]) -> str:
    by = f" by {short(entry['decidedBy'])}" if entry.get("decidedBy") else ""
    code = f", {entry['code']}" if entry.get("code") else ""
    answer = f", answer {entry['digest']}" if entry.get("digest") else ""
    return f"{short(str(entry.get('interruptId')))}: {entry.get('verdict')}{by}{code}{answer}"


def link_object(link: Link) -> dict[str, Any]:
    """One record for programs: its place, its digest, and the record as it stands."""
    return {
        "partition": link.partition,
        "offset": link.offset,
        "digest": link.digest,
        "record": orjson.Fragment(link.value),
    }


# -- chains -------------------------------------------------------------------------------------------------


def chain_said(chain: Followed) -> str:
    first, last = chain.first, chain.last
    assert first is not None
    assert last is not None
    begun = "from its first" if not first.said.previous else "the beginning is gone"
    return (
        f"{chain.service}/{chain.partition}: {chain.records} records, "
        f"offsets {first.offset} to {last.offset}, {moment(first.said.at)} to {moment(last.said.at)}, {begun}"
    )


def chain_object(chain: Followed) -> dict[str, Any]:
    first, last = chain.first, chain.last
    assert first is not None
    assert last is not None
    return {
        "service": chain.service,
        "partition": chain.partition,
        "records": chain.records,
        "first": first.offset,
        "last": last.offset,
        "head": last.digest,
        "whole": not first.said.previous,
    }


def finding_said(finding: Finding) -> str:
    """What is wrong, and where: service, partition, offset, and up to where all is proved."""
    proved = "nothing before it is proved" if finding.proved is None else f"proved up to {finding.proved}"
    where = f"{finding.service or 'audit'}/{finding.partition}, offset {finding.offset}"
    return f"{where}: {_wrong(finding)}; {proved}."


_WRONG: Final[Mapping[What, str]] = {
    "unreadable": "this is no record of the audit",
    "rekeyed": "its key is not its thread: the key was changed",
    "begun_anew": "a chain begins anew behind {after}: what the service knew of it was lost",
    "cut_off": "the chain does not begin here, but log or export does: what was before it was removed",
    "gap": "between {after} and this a record was removed, or {after} was changed",
    "inserted": "it follows {other}: what stands between them was put in, or moved here",
    "moved": "what it follows stands behind it, at {other}: the order was changed",
    "headless": "the newest records are gone: the service has written more than this",
    "unsaid": "it stands behind the newest record that its service has written: it was put in",
}


def _wrong(finding: Finding) -> str:
    return _WRONG[finding.what].format(after=finding.after, other=finding.other)


def finding_object(finding: Finding) -> dict[str, Any]:
    return {
        "finding": finding.what,
        "service": finding.service or None,
        "partition": finding.partition,
        "offset": finding.offset,
        "after": finding.after,
        "follows": finding.other,
        "proved": finding.proved,
        "said": _wrong(finding),
    }
