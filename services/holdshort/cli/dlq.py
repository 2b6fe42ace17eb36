"""`holdshort dlq list|show|replay`: records that could not be used, and sending them again as they were."""

import asyncio
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

if TYPE_CHECKING:
    from holdshort.cli.letters import Filter, Letter
    from holdshort.cli.reading import Cluster

app = typer.Typer(
    help="Dead letters: records that no service could use. Needs the rights of `operator`; to replay one, "
    "also the right to write the topic that it came from.",
    no_args_is_help=True,
)

TOPIC: Final = "dead-letters"

CodeOption = Annotated[str | None, typer.Option("--code", help="Only those with this code.")]
TopicOption = Annotated[
    str | None, typer.Option("--topic", help="Only those that came from this topic (without the prefix).")
]
KeyOption = Annotated[str | None, typer.Option("--key", help="Only those with this key, a thread mostly.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", help="Only later ones: 30m, 2d, or a time (RFC 3339, UTC).")
]
UntilOption = Annotated[str | None, typer.Option("--until", help="Only earlier ones, likewise.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most so many, the newest.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, one object a line.")]


@app.command("list")
def list_(
    code: CodeOption = None,
    topic: TopicOption = None,
    key: KeyOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 100,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the newest last, and count them by code and origin."""
    asyncio.run(_list(_filter(code, topic, key, since, until), limit, as_json=as_json))


@app.command()
def show(
    place: Annotated[str, typer.Argument(help="PARTITION/OFFSET, as `list` names it.")],
    raw: Annotated[bool, typer.Option("--raw", help="Only the value, its very bytes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Show one dead letter: why, where from, its headers, its value."""
    asyncio.run(_show(_place(place), raw=raw, as_json=as_json))


@app.command()
def replay(  # noqa: PLR0913, PLR0917 - each narrows down what is meant
    places: Annotated[
        list[str] | None, typer.Argument(metavar="[PLACE]...", help="PARTITION/OFFSET, as `list` names them.")
    ] = None,
    code: CodeOption = None,
    topic: TopicOption = None,
    key: KeyOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 100,
    max_attempts: Annotated[
        int, typer.Option("--max-attempts", min=1, help="Not those that have been sent again so often.")
    ] = 3,
    all_: Annotated[
        bool, typer.Option("--all", help="Really all of them, where nothing else is said.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object a letter.")] = False,
) -> None:
    """Send dead letters again, to where they came from.

    Each goes to its own topic and to no other, the oldest first.

    Key, value and headers are what they were; `holdshort-dead-letter-attempts` counts. Letters stay where
    they are: replayed twice, a record is judged twice. Exit 1 if any of those named cannot be sent again.
    """
    wanted = _filter(code, topic, key, since, until)
    if not places and not all_ and wanted == type(wanted)():
        raise typer.BadParameter("name letters or filters, or say --all")
    if as_json and not (yes or dry_run):
        raise typer.BadParameter("--json needs --yes or --dry-run: there is nobody to ask")
    named = [_place(one) for one in places or ()]
    how = _How(max_attempts, dry_run=dry_run, yes=yes, as_json=as_json)
    sys.exit(asyncio.run(_replay(named, wanted, limit, how)))


# -- what is asked for --------------------------------------------------------------------------------------


def _filter(
    code: str | None, topic: str | None, key: str | None, since: str | None, until: str | None
) -> "Filter":
    from holdshort.cli.letters import Filter  # noqa: PLC0415 - heavy

    return Filter(code, topic, key, when(since, "--since"), when(until, "--until"))


def when(text: str | None, option: str) -> int | None:
    """A time in ms since the epoch, from one that is written out or from how long ago it was."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy

    from holdshort.cli.showing import now_ms  # noqa: PLC0415 - heavy
    from holdshort.routing import DurationMs  # noqa: PLC0415 - heavy

    if text is None:
        return None
    try:
        return now_ms() - TypeAdapter(DurationMs).validate_python(text)
    except ValidationError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("not like 30m, 2d or 2026-11-30T12:00:00Z", param_hint=option) from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _place(text: str) -> tuple[int, int]:
    partition, _, offset = text.rpartition("/")
    if not (partition.isdecimal() and offset.isdecimal() and text.isascii()):
        raise typer.BadParameter(f"{text!r} is not PARTITION/OFFSET")
    return int(partition), int(offset)


# -- list, show ---------------------------------------------------------------------------------------------


async def _letters(cluster: "Cluster", wanted: "Filter") -> "AsyncIterator[Letter]":
    """Those that are meant, up to the present end."""
    from holdshort.cli.letters import read_letter  # noqa: PLC0415 - heavy

    where = cluster.partitions(TOPIC)
    async for record in cluster.scan(dict.fromkeys(where, 0), await cluster.ends(where)):
        if wanted.passes(letter := read_letter(record)):
            yield letter


async def _newest(cluster: "Cluster", wanted: "Filter", limit: int) -> "tuple[list[Letter], Counter[Any]]":
    """The newest of them, the oldest of those first, and how many there are by code and origin.

    Each partition is in order, so the newest of all are among the newest of each.
    """
    tails: dict[int, deque[Letter]] = {}
    counts: Counter[Any] = Counter()
    async for letter in _letters(cluster, wanted):
        counts[letter.code, letter.topic] += 1
        tails.setdefault(letter.record.partition, deque(maxlen=limit)).append(letter)
    found = sorted(
        (one for tail in tails.values() for one in tail), key=lambda one: (one.at, one.record.offset)
    )
    return found[-limit:], counts


async def _list(wanted: "Filter", limit: int, *, as_json: bool) -> None:
    from holdshort.cli.letters import as_object  # noqa: PLC0415 - heavy
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import echo_json, moment, print_table, short  # noqa: PLC0415 - heavy

    async with opened("dlq", [TOPIC]) as cluster:
        found, counts = await _newest(cluster, wanted, limit)
    if as_json:
        for one in found:
            echo_json(as_object(one))
        return
    if found:
        columns = ("place", "at", "code", "from", "key", "bytes", "attempts")
        print_table(
            columns,
            (
                (
                    one.place,
                    moment(one.at),
                    one.code,
                    one.came_from,
                    short(one.key, 40),
                    str(len(one.record.value or b"")),
                    str(one.attempts),
                )
                for one in found
            ),
        )
    _echo_counts(counts, len(found))


def _echo_counts(counts: "Counter[Any]", shown: int) -> None:
    total = sum(counts.values())
    typer.echo(f"{total} dead letters." if shown == total else f"{shown} of {total} dead letters.")
    for (code, topic), count in counts.most_common():
        typer.echo(f"  {count:6}  {code} from {topic}")


async def _show(place: tuple[int, int], *, raw: bool, as_json: bool) -> None:
    from holdshort.cli.letters import as_object  # noqa: PLC0415 - heavy
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import echo_json, moment, plain, print_facts  # noqa: PLC0415 - heavy

    async with opened("dlq", [TOPIC]) as cluster:
        [letter] = await _named(cluster, [place])
    value = letter.record.value or b""
    if raw:
        sys.stdout.buffer.write(value)
        return
    headers = [(name, (held or b"").decode(errors="replace")) for name, held in letter.record.headers]
    if as_json:
        echo_json(as_object(letter) | {"headers": headers, "value": value.decode(errors="replace")})
        return
    print_facts(
        [
            ("place", f"{TOPIC}/{letter.place}"),
            ("at", moment(letter.at)),
            ("from", f"{letter.came_from}, appended {moment(letter.timestamp)}"),
            ("why", f"{letter.code}: {letter.detail} (said the {letter.service})"),
            ("sent again", f"{letter.attempts} times"),
            ("key", letter.key),
        ]
    )
    typer.echo("headers")
    print_facts([(plain(name), text) for name, text in headers], "  ")
    typer.echo(f"value, {len(value)} bytes" + (" (left out: it was too large)" if letter.cut else ""))
    typer.echo(plain(value.decode(errors="replace"), lines=True))


async def _named(cluster: "Cluster", places: Sequence[tuple[int, int]]) -> "list[Letter]":
    """The letters at these places. Raises Fatal for what is not there."""
    from holdshort.cli.letters import read_letter  # noqa: PLC0415 - heavy
    from holdshort.stream.errors import Fatal  # noqa: PLC0415 - heavy
    from holdshort.stream.records import TopicPartition  # noqa: PLC0415 - heavy

    ends = await cluster.ends(cluster.partitions(TOPIC))
    found = []
    for partition, offset in dict.fromkeys(places):
        where = TopicPartition(TOPIC, partition)
        records = []
        if offset < ends.get(where, 0):
            records = [one async for one in cluster.scan({where: offset}, {where: offset + 1})]
        if not records:
            raise Fatal(f"there is no dead letter {partition}/{offset}")
        found.append(read_letter(records[0]))
    return found


# -- replay -------------------------------------------------------------------------------------------------


class _How(NamedTuple):
    """How it is done."""

    max_attempts: int
    dry_run: bool
    yes: bool
    as_json: bool


async def _replay(places: list[tuple[int, int]], wanted: "Filter", limit: int, how: _How) -> int:
    from holdshort.cli.letters import why_not  # noqa: PLC0415 - heavy
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy
    from holdshort.stream.topics import table  # noqa: PLC0415 - heavy

    _, settings, config = load_settings()
    topics = [one.name for one in table(list(config.agents), list(config.teams)) if one.name != TOPIC]
    async with opened("dlq", [TOPIC], topics) as cluster:
        letters = await _chosen(cluster, places, wanted, limit)
        limits = config.rules(settings.partitions).limits
        partitions = cluster.seen[TOPIC].partitions
        judged = [
            (one, why_not(one, topics, partitions, limits, how.max_attempts) or _forbidden(cluster, one))
            for one in letters
        ]
        good = [one for one, why in judged if why is None]
        for letter, why in judged:
            if why is not None or how.dry_run:
                _tell(letter, why, "would be sent", how)
        if not how.as_json:
            typer.echo(f"{len(good)} of {len(letters)} dead letters can be sent again.")
        if good and not how.dry_run:
            if not how.yes and not typer.confirm(_question(good), default=False):
                return 1
            await _send(cluster, good, how)
    return 0 if len(good) == len(letters) else 1


async def _chosen(
    cluster: "Cluster", places: Sequence[tuple[int, int]], wanted: "Filter", limit: int
) -> "list[Letter]":
    if places:
        return [one for one in await _named(cluster, places) if wanted.passes(one)]
    return (await _newest(cluster, wanted, limit))[0]


def _forbidden(cluster: "Cluster", letter: "Letter") -> str | None:
    """Who may read dead letters may not write everywhere they came from."""
    seen = cluster.seen.get(letter.topic)
    if seen is None or "Write" not in seen.operations:
        return f"you may not write {letter.topic} (`holdshort acls print` says who may)"
    return None


def _question(good: "Sequence[Letter]") -> str:
    origins = Counter(one.topic for one in good)
    to = ", ".join(f"{count} to {topic}" for topic, count in origins.items())
    return f"Send {len(good)} again ({to})?"


async def _send(cluster: "Cluster", good: "Sequence[Letter]", how: _How) -> None:
    """One after the other, so that the order of a thread stays; what has been sent is told at once."""
    from holdshort.cli.letters import destination, replayed  # noqa: PLC0415 - heavy

    for letter in good:
        where = destination(letter, cluster.seen[letter.topic].partitions)
        offset = await cluster.write(where, replayed(letter))
        _tell(letter, None, f"sent as {letter.topic}/{where.partition}/{offset}", how)
    if not how.as_json:
        typer.echo(f"Sent {len(good)}.")


def _tell(letter: "Letter", why: str | None, done: str, how: _How) -> None:
    from holdshort.cli.letters import as_object  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import echo_json, plain  # noqa: PLC0415 - heavy

    if how.as_json:
        said = {"sent": why is None and not how.dry_run, "said": why or done}
        echo_json(as_object(letter) | said)
    else:
        said_of = f"left alone: {why}" if why else done
        typer.echo(plain(f"{letter.place}  {letter.code} from {letter.came_from}: {said_of}"))
