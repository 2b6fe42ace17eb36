"""`holdshort audit verify|export|trail`: whether the audit was touched, and what it proves of a tool call."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from holdshort.cli.naming import Named

if TYPE_CHECKING:
    from holdshort.cli.exports import Export, Line
    from holdshort.cli.reading import Cluster
    from holdshort.contract.chains import Chains, Link
    from holdshort.contract.hashing import HashKey
    from holdshort.stream.positions import Positions

app = typer.Typer(
    help="The audit: every judgement as a record of digests, chained by hashes, and each result of a tool "
    "call that people were asked about. Needs the rights of `auditor` (`holdshort acls print`). A thread "
    "whose id is hashed (`audit.hash_ids`) is found with the key: HOLDSHORT_AUDIT_KEY_FILE.",
    no_args_is_help=True,
)

AUDIT: Final = "audit"
SERVICES: Final = ("gatekeeper", "router")
PATIENCE_S: Final = 10.0  # for what was committed just now to become visible in every partition

SinceOption = Annotated[
    str | None, typer.Option("--since", help="Only later ones: 30m, 2d, or a time (RFC 3339, UTC).")
]
UntilOption = Annotated[str | None, typer.Option("--until", help="Only earlier ones, likewise.")]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", exists=True, dir_okay=False, help="An export of all records, instead of Kafka."),
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, one object a line.")]


@app.command()
def verify(
    since: SinceOption = None, until: UntilOption = None, file: FileOption = None, as_json: AsJson = False
) -> None:
    """Follow every chain: say where a record was removed, changed, put in or moved. Exit 1 if any was.

    A chain whose beginning is gone by retention begins with the first record that is there. That the newest
    ones are there is proved, too, if the positions of the services may be read.
    """
    sys.exit(asyncio.run(_verify(_range(since, until), file, as_json=as_json)))


@app.command()
def export(
    since: SinceOption = None,
    until: UntilOption = None,
    thread: Annotated[str | None, typer.Option("--thread", help="Only those of this thread.")] = None,
    code: Annotated[str | None, typer.Option("--code", help="Only those with this code.")] = None,
) -> None:
    """Write the audit as JSON lines: place, digest, and the record byte for byte, partition by partition.

    The last line says what the others cover: partitions, offsets, and the first and newest record of every
    chain. An export of everything (or of a time) can be verified later, without Kafka: `verify --file`.
    Exit 1 if nothing is known of the thread.
    """
    sys.exit(0 if asyncio.run(_export(_range(since, until), thread, code)) else 1)


@app.command(cls=Named)
def trail(
    thread: Annotated[str | None, typer.Argument(help="The thread.")] = None,
    tool_call: Annotated[
        str | None, typer.Option("--tool-call", metavar="ID", help="Only what concerns this tool call.")
    ] = None,
    file: FileOption = None,
    as_json: AsJson = False,
) -> None:
    """Tell in words what was asked, who answered what, and what came of it; with the digests that prove it.

    Exit 1 if nothing is known of it, or if a chain that holds a part of it is broken.
    """
    if thread is None and tool_call is None:
        raise typer.BadParameter("name a thread, or say --tool-call ID")
    sys.exit(asyncio.run(_trail(thread, tool_call, file, as_json=as_json)))


# -- what is read -------------------------------------------------------------------------------------------


class _Range(NamedTuple):
    """Times in ms since the epoch; None lets everything pass."""

    since: int | None
    until: int | None

    @property
    def narrows(self) -> bool:
        return self.since is not None or self.until is not None

    def holds(self, at: int) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def meets(self, first: int, last: int) -> bool:
        """Whether something between these two times could lie in it."""
        return (self.since is None or last >= self.since) and (self.until is None or first < self.until)


def _range(since: str | None, until: str | None) -> _Range:
    from holdshort.cli.dlq import when  # noqa: PLC0415 - heavy

    asked = _Range(when(since, "--since"), when(until, "--until"))
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:
        raise typer.BadParameter("--since is not before --until")
    return asked


class _Source:
    """Where the audit is read from: its first offsets, the newest digests as far as known, its records."""

    def __init__(
        self, begins: dict[int, int], heads: dict[tuple[str, int], str], cluster: "Cluster | None"
    ) -> None:
        self.newest_known = False
        self.young: set[tuple[str, int]] = set()  # the chains whose newest record must still be there
        self.export: Export | None = None
        self.begins = begins
        self.heads = heads
        self._cluster = cluster
        self.ends: Any = {}

    @classmethod
    def of_file(cls, export: "Export") -> "_Source":
        source = cls(export.begins, export.heads, None)
        source.export = export
        return source

    async def records(self) -> "AsyncIterator[Line]":
        """All of it, up to the end as it is at the first call."""
        from holdshort.cli.exports import Line  # noqa: PLC0415 - heavy

        for line in self.export.lines if self.export is not None else ():
            yield line
        if self._cluster is None:
            return
        self.ends = self.ends or await self._cluster.ends(self._cluster.partitions(AUDIT))
        async for record in self._cluster.scan(dict.fromkeys(self.ends, 0), self.ends):
            yield Line(record.partition, record.offset, record.timestamp, record.key, record.value)

    async def heads_now(self) -> dict[tuple[str, int], str]:
        """The newest digests as they are by now; none of an export."""
        return {} if self._cluster is None else _heads(await _positions(self._cluster))

    async def later(self) -> "AsyncIterator[list[Line]]":
        """What comes behind that, as it comes, for some seconds."""
        from holdshort.cli.exports import Line  # noqa: PLC0415 - heavy

        if self._cluster is None:
            return
        async for records in self._cluster.follow(self.ends, PATIENCE_S):
            yield [Line(one.partition, one.offset, one.timestamp, one.key, one.value) for one in records]


@asynccontextmanager
async def _audit(file: Path | None = None) -> "AsyncIterator[_Source]":
    """The audit of the cluster, or of an export. Raises Fatal, MendSettingsError."""
    from holdshort.cli.exports import read_export  # noqa: PLC0415 - heavy
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy
    from holdshort.contract.pending import UpgradeFirstError  # noqa: PLC0415 - heavy
    from holdshort.stream.errors import Fatal, Halt  # noqa: PLC0415 - heavy

    try:
        if file is not None:
            yield _Source.of_file(read_export(file))
            return
        positions = [f"{service}.positions" for service in SERVICES]
        async with opened(AUDIT, [AUDIT], positions) as cluster:
            known = await _positions(cluster)  # before the audit's end is asked for: it holds what they name
            begins = await cluster.beginnings(cluster.partitions(AUDIT))
            firsts = {where.partition: begin for where, begin in begins.items()}
            source = _Source(firsts, _heads(known), cluster)
            source.newest_known = all(cluster.may_read(topic) for topic in positions)
            source.young = _young(known)
            yield source
    except (UpgradeFirstError, Halt) as error:
        raise Fatal(str(error)) from error


async def _positions(cluster: "Cluster") -> "list[tuple[str, Positions]]":
    """The positions of every lane, as far as they may be read, each with its service."""
    from holdshort.stream.positions import decode_positions  # noqa: PLC0415 - heavy

    known: list[tuple[str, Positions]] = []
    for service in SERVICES:
        topic = f"{service}.positions"
        if cluster.may_read(topic):
            lanes = await cluster.latest(topic, lambda record: decode_positions(record.value or b""))
            known += [(service, lane) for lane in lanes.values()]
    return known


def _heads(known: "Iterable[tuple[str, Positions]]") -> dict[tuple[str, int], str]:
    """The newest digest of every chain."""
    return {(service, int(p)): head for service, lane in known for p, head in lane.notes.items()}


def _young(known: "Iterable[tuple[str, Positions]]") -> set[tuple[str, int]]:
    """The chains of partitions in which something was judged more lately than retention reaches."""
    from holdshort.stream.topics import AUDIT_DAYS, DAY_MS  # noqa: PLC0415 - heavy

    since = time.time() * 1000 - AUDIT_DAYS * DAY_MS
    return {
        (service, int(p))
        for service, lane in known
        for places in lane.inputs.values()
        for p, reached in places.items()
        if reached.now > since
    }


def _key() -> "HashKey | None":
    """The key by which a thread is found whose id is hashed. Raises MendSettingsError."""
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy

    return load_settings()[1].hash_key()


# -- verify -------------------------------------------------------------------------------------------------


async def _followed(source: _Source, keep: "Callable[[Link], None] | None" = None) -> "Chains":
    """Every chain to its end; `keep` is told each record that could be read."""
    from holdshort.contract.chains import Chains  # noqa: PLC0415 - heavy

    export = source.export
    firsts = export.firsts if export is not None else None
    chains = Chains(source.begins, source.heads, firsts=firsts, young=source.young)

    def follow(line: "Line") -> None:
        link = chains.follow(*line)
        if link is not None and keep is not None:
            keep(link)

    async for line in source.records():
        follow(line)
    if chains.headless:
        async for lines in source.later():
            for line in lines:
                follow(line)
            if not chains.headless:
                break
    if chains.breaks:
        await _explained(source, chains)
    chains.end(await source.heads_now())
    return chains


async def _explained(source: _Source, chains: "Chains") -> None:
    """Where what a broken record names really stands: only the whole log can tell."""
    from holdshort.contract.canon import sha256  # noqa: PLC0415 - heavy
    from holdshort.contract.chains import read_judgement  # noqa: PLC0415 - heavy

    async for line in source.records():
        digest = sha256(line.value or b"")
        if digest in chains.breaks and (said := read_judgement(line.value)) is not None:
            chains.explain(said.service, line.partition, line.offset, digest)


async def _verify(wanted: _Range, file: Path | None, *, as_json: bool) -> int:
    from holdshort.cli.showing import echo_json  # noqa: PLC0415 - heavy
    from holdshort.cli.trails import chain_object, chain_said, finding_object, finding_said  # noqa: PLC0415
    from holdshort.gatekeeper.transcript import MendTranscriptError  # noqa: PLC0415 - heavy

    async with _audit(file) as source:
        if source.export is not None and source.export.coverage.narrowed:
            what = source.export.coverage.narrowed[0]
            raise MendTranscriptError(f"{file}: narrowed to one {what}, so no chain is whole in it")
        in_time: Counter[bool] = Counter()
        chains = await _followed(source, lambda link: in_time.update([wanted.holds(link.said.at)]))
    found = [one for one in chains.findings if wanted.meets(one.began, one.at)]
    for chain in sorted(chains.chains.values(), key=lambda one: (one.service, one.partition)):
        if as_json:
            echo_json(chain_object(chain))
        else:
            typer.echo(chain_said(chain))
    for one in found:
        if as_json:
            echo_json(finding_object(one))
        else:
            typer.echo(finding_said(one))
    if not as_json:
        typer.echo(_verdict(chains, len(found), source))
        if wanted.narrows:
            others = len(chains.findings) - len(found)
            typer.echo(
                f"{in_time[True]} of the records lie in the time asked; {others} findings lie outside it."
            )
    return 1 if found else 0


def _verdict(chains: "Chains", found: int, source: _Source) -> str:
    records = sum(chain.records for chain in chains.chains.values())
    if found:
        return f"{found} findings in {records} records."
    if chains.findings:
        return f"No findings in the time asked; {records} records were followed."
    newest = (
        "their newest records included"
        if source.newest_known
        else "and all that was exported is here"
        if source.export is not None
        else ("but whether newer ones were removed stands in the positions of the services, not read here")
    )
    return f"All {len(chains.chains)} chains of {records} records are whole, {newest}."


# -- export -------------------------------------------------------------------------------------------------


async def _export(wanted: _Range, thread: str | None, code: str | None) -> bool:
    """Whether what it was narrowed to is known at all."""
    from holdshort.cli.exports import Covering  # noqa: PLC0415 - heavy
    from holdshort.contract.chains import read_judgement  # noqa: PLC0415 - heavy
    from holdshort.contract.hashing import MARK, names_of  # noqa: PLC0415 - heavy

    key = _key()
    threads, covering, hashed, known = names_of(thread, key), Covering(), False, thread is None
    async with _audit() as source:
        async for line in source.records():
            said = read_judgement(line.value)
            if said is None or b"\n" in (line.value or b""):
                typer.echo(f"holdshort: left out, it is no record of the audit: {_place(line)}", err=True)
                continue
            hashed = hashed or said.thread_id.startswith(MARK)
            meant = threads is None or said.thread_id in threads
            known = known or meant
            if meant and wanted.holds(said.at) and code in (None, said.code):
                sys.stdout.buffer.write(covering.line(line, said))
    narrowed = [name for name, value in (("thread", thread), ("code", code)) if value is not None]
    ends = {where.partition: end for where, end in source.ends.items()}
    read = {partition: (begin, ends[partition]) for partition, begin in source.begins.items()}
    sys.stdout.buffer.write(covering.last_line(wanted.since, wanted.until, narrowed, read))
    sys.stdout.buffer.flush()
    if not known:
        _nothing_known(thread or "", key, hashed=hashed)
    return known


def _nothing_known(name: str, key: "HashKey | None", *, hashed: bool) -> None:
    """Nothing was found; where threads are hashed it may be for want of the right key."""
    from holdshort.cli.showing import plain  # noqa: PLC0415 - heavy

    hint = ""
    if hashed and key is None:
        hint = "; its threads are hashed: HOLDSHORT_AUDIT_KEY_FILE?"
    elif hashed:
        hint = "; its threads are hashed: is HOLDSHORT_AUDIT_KEY_FILE the key by which they were?"
    typer.echo(f"holdshort: the audit knows nothing of {plain(name)}{hint}", err=True)


def _place(line: "Line") -> str:
    return f"{AUDIT}/{line.partition}/{line.offset}"


# -- trail --------------------------------------------------------------------------------------------------


async def _trail(thread: str | None, tool_call: str | None, file: Path | None, *, as_json: bool) -> int:
    from holdshort.cli.showing import echo_json  # noqa: PLC0415 - heavy
    from holdshort.cli.trails import Trail, finding_said, link_object, link_said  # noqa: PLC0415 - heavy
    from holdshort.contract.hashing import names_of  # noqa: PLC0415 - heavy

    key = _key()
    kept = Trail(names_of(thread, key), tool_call)
    async with _audit(file) as source:
        chains = await _followed(source, kept.note)
    links = kept.links()
    if not links:
        _nothing_known(tool_call or thread or "", key, hashed=kept.hashed)
        return 1
    for link in links:
        if as_json:
            echo_json(link_object(link))
        else:
            typer.echo(link_said(link))
    held = {(link.said.service, link.partition) for link in links}
    partly = source.export is not None and bool(source.export.coverage.narrowed)
    findings = [] if partly else chains.findings
    broken = [one for one in findings if not one.service or (one.service, one.partition) in held]
    for one in broken:
        typer.echo(finding_said(one), err=True)
    if not as_json:
        state = "broken, see above" if broken else "whole"
        if partly:
            state = "not all here: the export is a narrowed one"
        typer.echo(f"{len(links)} records; the chains that hold them are {state}.")
    return 1 if broken else 0
