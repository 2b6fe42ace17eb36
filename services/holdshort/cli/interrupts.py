"""`holdshort interrupts list|show|watch|cancel|abandon`: what waits, on whom, since when and until when."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from holdshort.cli.naming import Named

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdshort.cli.ending import Outcome
    from holdshort.cli.pauses import Filter, Paused, Question
    from holdshort.cli.reading import Cluster
    from holdshort.contract.rules import Rules
    from holdshort.stream.records import Record

app = typer.Typer(
    help="What waits for people, and the two ways to end it. Needs the rights of `operator` "
    "(`holdshort acls print --principal operator`).",
    no_args_is_help=True,
)

PENDING: Final = "pending"
GATHERING: Final = "gathering"
RESUMES: Final = "resumes"

Team = Annotated[str | None, typer.Option(help="Only those that wait on this team.")]
Agent = Annotated[str | None, typer.Option(help="Only those of this agent.")]
Reason = Annotated[
    str | None, typer.Option(help="Only those with this reason; a * at its end stands for the rest.")
]
OlderThan = Annotated[
    str | None, typer.Option(help="Only those that have been open for so long: 30s, 15m, 4h, 2d.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, one object a line.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
By = Annotated[str | None, typer.Option(help="Who does it; told to the agent beside the cancels.")]
Name = Annotated[str, typer.Argument(metavar="ID", help="A thread, an interrupt or an approval.")]


# -- list, show, watch --------------------------------------------------------------------------------------


@app.command("list")
def list_(
    team: Team = None,
    agent: Agent = None,
    reason: Reason = None,
    older_than: OlderThan = None,
    as_json: AsJson = False,
) -> None:
    """List what is open, the oldest first."""
    asyncio.run(_list(_filter(team, agent, reason, older_than), as_json=as_json))


@app.command(cls=Named)
def show(
    name: Name, as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False
) -> None:
    """Show all that is known of one pause.

    Questions, arguments, schemas, answers so far, and its history.
    """
    asyncio.run(_show(name, as_json=as_json))


@app.command()
def watch(
    team: Team = None,
    agent: Agent = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Say what opens, changes and closes, until Ctrl-C.

    Begins with what is open.
    """
    asyncio.run(_watch(_filter(team, agent, reason, None), as_json=as_json))


def _filter(team: str | None, agent: str | None, reason: str | None, older_than: str | None) -> "Filter":
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy

    from holdshort.cli.pauses import Filter  # noqa: PLC0415 - heavy
    from holdshort.routing import DurationMs  # noqa: PLC0415 - heavy

    try:
        age = None if older_than is None else TypeAdapter(DurationMs).validate_python(older_than)
    except ValidationError as error:
        said = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise typer.BadParameter(said, param_hint="--older-than") from None
    return Filter(team, agent, reason, age)


class _Site(NamedTuple):
    """What these commands read with."""

    cluster: "Cluster"
    rules: "Rules"
    configured: bool
    teams: "Collection[str]"

    @property
    def tables(self) -> list[str]:
        return [topic for topic in (PENDING, GATHERING) if topic in self.cluster.seen]

    async def paused(self, name: str | None = None) -> "list[Paused]":
        """Threads with a pause, the oldest first; by name, those that are meant by it."""
        from holdshort.cli.pauses import keep_open, keep_paused, named, paused, questions  # noqa: PLC0415

        rows = await self.cluster.latest(PENDING, keep_paused)
        known = await self.cluster.latest(GATHERING, keep_open) if GATHERING in self.tables else {}
        found = [
            one
            for one in paused(rows, known)
            if name is None or name == one.thread or named(name, questions(one, self.rules))
        ]
        return sorted(found, key=lambda one: one.pause.opened_at)


@asynccontextmanager
async def _site(*, writing: bool = False, context: bool = False) -> AsyncIterator[_Site]:
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy

    _, settings, config = load_settings()
    more = [RESUMES] if writing else []
    origins = ["inputs", RESUMES, *(f"agent-events.{agent}" for agent in config.agents)] if context else []
    optional = {GATHERING, *origins} - set(more)
    async with opened("interrupts", [PENDING, *more], optional) as whole:
        cluster = whole if whole.may_read(GATHERING) else whole.without(GATHERING)
        if cluster is not whole:
            typer.echo("holdshort: `gathering` may not be read: no answers, claims or deadlines", err=True)
        teams = config.asked_teams
        yield _Site(cluster, config.rules(settings.partitions), settings.config is not None, teams)


async def _list(wanted: "Filter", *, as_json: bool) -> None:
    from holdshort.cli.pauses import as_object, of_gone_teams, questions  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import echo_json, now_ms, plain, print_table  # noqa: PLC0415 - heavy

    async with _site() as site:
        found = [one for thread in await site.paused() for one in questions(thread, site.rules)]
    now = now_ms()
    chosen = [one for one in found if wanted.passes(one, now)]
    if as_json:
        for one in chosen:
            echo_json(as_object(one))
    elif chosen:
        print_table(COLUMNS, (_cells(one, now) for one in chosen))
    if not as_json:
        typer.echo(_count(len(chosen), len(found)))
    for said, advice in of_gone_teams(found, site.teams) if site.configured else ():
        typer.echo(f"holdshort: {plain(said)}.\n  -> {plain(advice)}", err=True)


def _count(chosen: int, found: int) -> str:
    if not found:
        return "Nothing is open."
    return f"{chosen} open." if chosen == found else f"{chosen} of {found} open."


COLUMNS: Final = ("thread", "interrupt", "team", "state", "reason", "tool", "agent", "since", "until")


def _cells(one: "Question", now: int) -> tuple[str, ...]:
    from holdshort.cli.showing import short, span, until  # noqa: PLC0415 - heavy

    state = f"claimed by {one.claimed_by}" if one.claimed_by and one.state == "waiting" else one.state
    return (
        one.thread,
        one.interrupt or "-",
        one.team or "-",
        f"{state}: {one.held}" if one.held else short(state, 30),
        short(one.reason or "-"),
        short(one.tool or "-"),
        one.agent,
        f"{span(now - one.since)}",
        until(one.until, now),
    )


async def _show(name: str, *, as_json: bool) -> None:
    from holdshort.cli.threads import show_paused, thread_object  # noqa: PLC0415 - heavy

    async with _site() as site:
        found = await site.paused(name)
    if not found:
        typer.echo(f"holdshort: nothing of that name is open: {name}", err=True)
        sys.exit(1)
    for one in found:
        if as_json:
            _echo(thread_object(one, site.rules))
        else:
            show_paused(one, site.rules)


def _echo(value: Any) -> None:
    from holdshort.cli.showing import echo_json  # noqa: PLC0415 - heavy

    echo_json(value)


async def _watch(wanted: "Filter", *, as_json: bool) -> None:
    from holdshort.cli.pauses import keep_open, keep_paused  # noqa: PLC0415 - heavy

    async with _site() as site:
        ends = await site.cluster.ends(site.cluster.partitions(*site.tables))
        keep = {PENDING: keep_paused, GATHERING: keep_open}
        rows = {topic: await site.cluster.latest(topic, keep[topic], ends) for topic in site.tables}
        seen = _Seen(site.rules, wanted, as_json=as_json)
        for key in sorted(rows[PENDING]):
            seen.look(key, rows)
        async for came in site.cluster.follow(ends):
            for record in came:
                _put(rows[record.topic], record, keep[record.topic])
            for key in dict.fromkeys(record.key or b"" for record in came):
                seen.look(key, rows)


def _put(rows: dict[bytes, bytes], record: "Record", keep: Any) -> None:
    kept = None if record.value is None else keep(record)
    if kept is None:
        rows.pop(record.key or b"", None)
    else:
        rows[record.key or b""] = kept


class _Seen:
    """What has been said of each thread, so that only what is new is said."""

    def __init__(self, rules: "Rules", wanted: "Filter", *, as_json: bool) -> None:
        self._rules = rules
        self._wanted = wanted
        self._as_json = as_json
        self._known: dict[bytes, dict[Any, Question]] = {}

    def look(self, key: bytes, rows: dict[str, dict[bytes, bytes]]) -> None:
        """Say how this thread's questions differ from what was said last."""
        from holdshort.cli.pauses import questions, read_thread  # noqa: PLC0415 - heavy
        from holdshort.cli.showing import now_ms  # noqa: PLC0415 - heavy

        value, now = rows[PENDING].get(key), now_ms()
        found: list[Question] = []
        if value is not None:
            found = questions(read_thread(key, value, rows.get(GATHERING, {}).get(key)), self._rules)
        before = self._known.pop(key, {})
        after = {(one.generation, one.interrupt): one for one in found if self._wanted.passes(one, now)}
        if after:
            self._known[key] = after
        for name, one in before.items():
            if name not in after:
                self._say("closed", one, now)
        for name, one in after.items():
            if name not in before:
                self._say("open", one, now)
            elif one != before[name]:
                self._say("changed", one, now)

    def _say(self, what: str, one: "Question", now: int) -> None:
        from holdshort.cli.pauses import as_object  # noqa: PLC0415 - heavy
        from holdshort.cli.showing import echo_json, moment, plain  # noqa: PLC0415 - heavy

        if self._as_json:
            echo_json({"at": now, "event": what, **as_object(one)})
        else:
            cells = zip(COLUMNS, _cells(one, now), strict=True)
            said = "  ".join(plain(f"{name} {cell}") for name, cell in cells if cell != "-")
            typer.echo(f"{moment(now)}  {what:7}  {said}")
        sys.stdout.flush()


# -- cancel, abandon ----------------------------------------------------------------------------------------


@app.command(cls=Named)
def cancel(
    name: Name,
    by: By = None,
    comment: Annotated[str | None, typer.Option(help="Why; told to the agent.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even for an agent that may take a cancel for a yes.")
    ] = False,
    incomplete: Annotated[
        bool,
        typer.Option(
            "--incomplete", help="Even if messages and state are not whole, or may not be read here."
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Cancel: the agent goes on, told that nobody answers.

    One batch answers every open interrupt of the pause with `cancelled`.

    The gatekeeper judges the batch like any other. Exit 1 if it refuses it, or if you decline.
    """
    how = _How(by, comment, force=force, incomplete=incomplete, yes=yes)
    _end(asyncio.run(_cancel(name, how)))


@app.command(cls=Named)
def abandon(name: Name, yes: Yes = False) -> None:
    """Abandon: the pause ends, the agent is told nothing.

    Its client is told, and can begin a new run.

    The way out where an agent can no longer resume, or may not be told a cancel. Exit 1 if it was not done.
    """
    _end(asyncio.run(_abandon(name, yes=yes)))


def _end(outcome: "Outcome | None") -> None:
    if outcome is None:
        sys.exit(1)
    typer.echo(outcome.said, err=not outcome.fine)
    sys.exit(0 if outcome.fine else 1)


class _How(NamedTuple):
    """How to cancel."""

    by: str | None
    comment: str | None
    force: bool
    incomplete: bool
    yes: bool


async def _cancel(name: str, how: _How) -> "Outcome | None":
    from holdshort.cli.ending import cancel_pause, written  # noqa: PLC0415 - heavy

    async with _site(writing=True, context=True) as site:
        one = await _only(site, name)
        if (refused := _uncancellable(one, site, how)) is not None:
            return refused
        record, over, complete = await cancel_pause(site.cluster, one.thread, one.pause, how.by, how.comment)
        if not complete and (refused := _incomplete(one, site.rules, how)) is not None:
            return refused
        if not _agreed(one, "Cancel all of this?", yes=how.yes):
            return None
        return await written(site.cluster, record, over)


def _uncancellable(one: "Paused", site: _Site, how: _How) -> "Outcome | None":
    from holdshort.cli.ending import Outcome  # noqa: PLC0415 - heavy
    from holdshort.router.deadlines import cancel_is_unsafe  # noqa: PLC0415 - heavy

    if one.pause.sealed:
        return Outcome(False, "the pause is sealed, there is nothing to cancel: abandon it")
    if one.pause.status == "resuming":
        return Outcome(False, "an answer is with the agent: wait for the end of that run, or abandon")
    if how.force:
        return None
    if not site.configured:
        text = (
            f"whether agent {one.pause.agent} may take a cancel for a yes is not known: set HOLDSHORT_CONFIG"
        )
        return Outcome(False, f"{text}, abandon it, or say --force")
    if cancel_is_unsafe(one.pause, site.rules):
        text = f"agent {one.pause.agent} may take a cancel for a yes: abandon it, or say --force"
        return Outcome(False, text)
    return None


def _incomplete(one: "Paused", rules: "Rules", how: _How) -> "Outcome | None":
    """An agent that replays is not resumed with a guess (router 4)."""
    from holdshort.cli.ending import Outcome  # noqa: PLC0415 - heavy

    agent = one.pause.agent
    why = f"the messages of agent {agent} are not whole, or may not be read with these rights"
    if rules.agent(agent).resume == "replay":
        return Outcome(False, f"{why}, and it replays from them: abandon it")
    return None if how.incomplete else Outcome(False, f"{why}: abandon it, or say --incomplete")


async def _abandon(name: str, *, yes: bool) -> "Outcome | None":
    from holdshort.cli.ending import abandon_pause, written  # noqa: PLC0415 - heavy

    async with _site(writing=True) as site:
        one = await _only(site, name)
        if not _agreed(one, "Abandon this? Nothing is forwarded.", yes=yes):
            return None
        record, over = abandon_pause(one.thread, one.pause)
        return await written(site.cluster, record, over)


async def _only(site: _Site, name: str) -> "Paused":
    """The one thread that is meant. Raises Fatal: frameworks use an interrupt's id in many threads."""
    from holdshort.stream.errors import Fatal  # noqa: PLC0415 - heavy

    found = await site.paused(name)
    if exact := [one for one in found if one.thread == name]:
        return exact[0]
    if not found:
        raise Fatal(f"nothing of that name is open: {name}")
    if len(found) > 1:
        threads = ", ".join(one.thread for one in found[:5])
        raise Fatal(f"{len(found)} threads have an interrupt of that name, name one of them: {threads}")
    return found[0]


def _agreed(one: "Paused", question: str, *, yes: bool) -> bool:
    from holdshort.cli.showing import short  # noqa: PLC0415 - heavy

    if yes:
        return True
    ids = ", ".join(short(id_) for id_ in one.pause.ids) or "sealed"
    typer.echo(f"Thread {short(one.thread)}, pause {one.pause.generation} of {one.pause.agent}: {ids}")
    return typer.confirm(question, default=False)
