"""`holdshort threads show|release|forget`: all that is known of one thread; ending its run; forgetting it."""

import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from holdshort.cli.naming import Named

if TYPE_CHECKING:
    from holdshort.cli.ending import Outcome
    from holdshort.cli.pauses import Paused, Question
    from holdshort.cli.reading import Cluster
    from holdshort.contract.rules import Rules
    from holdshort.contract.state import Run
    from holdshort.router.gathering import Answer, Asked, Gathering

app = typer.Typer(
    help="One thread: see it, free it of a run that blocks it, have it forgotten. Needs the rights "
    "of `operator` (`holdshort acls print --principal operator`).",
    no_args_is_help=True,
)

PENDING: Final = "pending"
GATHERING: Final = "gathering"
RESUMES: Final = "resumes"

Thread = Annotated[str, typer.Argument(help="The thread's id.")]


@app.command(cls=Named)
def show(
    thread: Thread, as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False
) -> None:
    """Show all that is known of a thread.

    The run in flight, the pause and its answers, and what is remembered. Exit 1 if nothing is known.
    """
    asyncio.run(_show(thread, as_json=as_json))


@app.command(cls=Named)
def release(thread: Thread, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """End the run that blocks a thread.

    Whoever waits for it is told ABANDONED, and new inputs are admitted again.

    What the agent still says of that run is ignored, but an agent that has not begun it yet may do so: its
    record stands in `runs.<agent>`. A run that is silent ends by itself after its lease;
    this is for those who cannot wait. Exit 1 if nothing blocks, if it was not done, or if you decline.
    """
    outcome = asyncio.run(_release(thread, yes=yes))
    if outcome is None:
        sys.exit(1)
    typer.echo(outcome.said, err=not outcome.fine)
    sys.exit(0 if outcome.fine else 1)


@app.command(cls=Named)
def forget(
    thread: Thread,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object; needs --yes.")] = False,
) -> None:
    """Have everything forgotten that is kept of a thread.

    What is open is abandoned: its run ends, its questions are withdrawn, whoever waits is told ABANDONED.
    Then `pending`, `gathering` and `approvals` keep nothing of it. Not undone.

    What is forgotten is its memory, too: an input or an answer of before that comes once more is not known
    again. An input then runs anew, an answer is refused. So stop first whatever may still send for the
    thread: clients that try again, and the agent, if it is at work on it.

    What was written into the other topics (inputs, resumes, agents' events, runs, events, decisions,
    receipts, dead letters) stays there until its retention is over. That the thread was forgotten stands in
    the audit. Said once more, it ends what was half done. Exit 1 if nothing is known of it, if it was
    not done, or if you decline.
    """
    if as_json and not yes:
        raise typer.BadParameter("--json does not ask: say --yes as well")
    outcome = asyncio.run(_forget(thread, yes=yes))
    if as_json and outcome is not None:
        from holdshort.cli.showing import echo_json  # noqa: PLC0415 - heavy

        echo_json({"threadId": thread, "forgotten": outcome.fine, "said": outcome.said})
    elif outcome is not None:
        typer.echo(outcome.said, err=not outcome.fine)
    sys.exit(0 if outcome is not None and outcome.fine else 1)


async def _read(cluster: "Cluster", thread: str) -> "Paused | None":
    """The rows of one thread, from its own partition."""
    from holdshort.cli.pauses import read_thread  # noqa: PLC0415 - heavy
    from holdshort.contract.keys import partition_of  # noqa: PLC0415 - heavy
    from holdshort.stream.records import TopicPartition  # noqa: PLC0415 - heavy

    key = thread.encode()

    async def row(topic: str) -> bytes | None:
        where = TopicPartition(topic, partition_of(key, cluster.seen[topic].partitions))
        ends = await cluster.ends([where])
        rows = await cluster.latest(topic, lambda one: one.value if one.key == key else None, ends)
        return rows.get(key)

    pending = await row(PENDING)
    gathering = await row(GATHERING) if cluster.may_read(GATHERING) else None
    return None if pending is None and gathering is None else read_thread(key, pending, gathering)


async def _show(thread: str, *, as_json: bool) -> None:
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import echo_json  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy

    _, settings, config = load_settings()
    rules = config.rules(settings.partitions)
    async with opened("threads", [PENDING], [GATHERING]) as cluster:
        one = await _read(cluster, thread)
    if one is None:
        typer.echo(f"holdshort: nothing is known of thread {thread}", err=True)
        sys.exit(1)
    if as_json:
        echo_json(thread_object(one, rules))
    else:
        show_paused(one, rules)


async def _release(thread: str, *, yes: bool) -> "Outcome | None":
    from holdshort.cli.ending import Outcome, abandon_run, written  # noqa: PLC0415 - heavy
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import moment, short  # noqa: PLC0415 - heavy

    async with opened("threads", [PENDING, RESUMES], [GATHERING]) as cluster:
        one = await _read(cluster, thread)
        if one is not None and one.state.pause is not None:
            return Outcome(
                False, "the thread waits for an answer: `holdshort interrupts cancel` or `abandon` ends that"
            )
        run = one.state.run if one is not None else None
        if run is None:
            return Outcome(False, f"no run blocks thread {thread}")
        if not yes:
            typer.echo(
                f"Run {short(run.run_id)} of {run.agent}, admitted {moment(run.admitted_at)}, "
                f"last heard of {moment(run.seen_at)}"
            )
            if not typer.confirm("End it?", default=False):
                return None
        record, over = abandon_run(thread, run)
        return await written(cluster, record, over)


async def _forget(thread: str, *, yes: bool) -> "Outcome | None":
    from holdshort.cli.ending import Outcome, forget_thread, written  # noqa: PLC0415 - heavy
    from holdshort.cli.reading import opened  # noqa: PLC0415 - heavy

    async with opened("threads", [PENDING, RESUMES], [GATHERING]) as cluster:
        one = await _read(cluster, thread)
        if one is None:
            return Outcome(False, f"nothing is known of thread {thread}")
        if one.state.empty:
            return await _router_too(cluster, thread, Outcome(True, f"thread {thread} is forgotten"))
        if not yes:
            typer.echo("\n".join(_of_forgotten(one)))
            if not typer.confirm("Forget it?", default=False):
                return None
        record, over = forget_thread(thread, one.state)
        outcome = await written(cluster, record, over)
        return await _router_too(cluster, thread, outcome) if outcome.fine else outcome


async def _router_too(cluster: "Cluster", thread: str, outcome: "Outcome") -> "Outcome":
    """The gate has forgotten a thread: the same outcome, once the router has, too."""
    from holdshort.cli.ending import Outcome, forgotten_by_router  # noqa: PLC0415 - heavy

    if not cluster.may_read(GATHERING) or await forgotten_by_router(cluster, thread):
        return outcome
    return Outcome(
        False,
        "the gatekeeper has forgotten it, the router not yet: is one running, or its lane halted "
        "(`holdshort doctor`)? It will, as soon as it reads `pending`; `threads forget` says it again",
    )


def _of_forgotten(one: "Paused") -> Iterator[str]:
    """What a thread loses by being forgotten."""
    from holdshort.cli.showing import plain, short  # noqa: PLC0415 - heavy

    state = one.state
    if state.pause is not None:
        open_ = ", ".join(plain(id_) for id_ in state.pause.ids)
        yield f"Open, and abandoned with it: {open_ or 'a sealed pause'}"
    if state.run is not None:
        yield f"In flight, and ended: run {short(state.run.run_id)} of {state.run.agent}"
    yield (
        f"Remembered: {len(state.ended)} runs, {len(state.gone)} pauses; what of them comes once more will "
        "not be known again"
    )


# -- everything that is known -------------------------------------------------------------------------------


def thread_object(one: "Paused", rules: "Rules") -> dict[str, Any]:
    """All of it for programs: the open questions as rows, and the records of gate and router."""
    import msgspec  # noqa: PLC0415 - heavy

    from holdshort.cli.pauses import as_object, questions  # noqa: PLC0415 - heavy

    rows = questions(one, rules) if one.state.pause is not None else []
    return {
        "threadId": one.thread,
        "interrupts": [as_object(row) for row in rows],
        "pending": None if one.state.empty else _built(msgspec.json.encode(one.state)),
        "gathering": None if one.gathering is None else _built(msgspec.json.encode(one.gathering)),
    }


def _built(raw: bytes) -> Any:
    import orjson  # noqa: PLC0415 - only here

    return orjson.loads(raw)


def show_paused(one: "Paused", rules: "Rules") -> None:
    """All of it for people."""
    from holdshort.cli.pauses import questions  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import moment, print_facts  # noqa: PLC0415 - heavy

    pause = one.state.pause
    print_facts([("thread", one.thread)])
    if one.state.empty and one.gathering is not None:
        typer.echo("\nThe gatekeeper knows nothing of it any more; the router still holds:")
        print_facts(_of_gathering(one.gathering), "  ")
    if one.state.run is not None:
        typer.echo("\nrun in flight")
        print_facts(_of_run(one.state.run), "  ")
    if pause is not None:
        typer.echo(f"\npause {pause.generation}")
        print_facts(
            [
                ("agent", pause.agent),
                ("interrupted run", pause.run_id),
                ("requester", pause.principal or ""),
                ("opened", moment(pause.opened_at)),
                ("status", "sealed: too many pauses were open" if pause.sealed else pause.status),
                ("last try", f"run {pause.try_.run_id} {pause.try_.outcome}" if pause.try_ else ""),
                (
                    "last refusal",
                    f"run {pause.refusal.run_id}: {pause.refusal.code}" if pause.refusal else "",
                ),
            ],
            "  ",
        )
        for row in questions(one, rules):
            _show_question(one, row)
    _show_history(one)


def _of_gathering(known: "Gathering") -> Iterator[tuple[str, str]]:
    from holdshort.cli.showing import moment  # noqa: PLC0415 - heavy

    yield "pause", f"{known.generation}, opened {moment(known.opened_at)}"
    yield "questions", ", ".join(f"{one.interrupt_id} (team {one.team})" for one in known.asked)
    yield "receipts", str(len(known.receipts))
    yield "over since", moment(known.closed_at) if known.closed_at is not None else ""


def _of_run(run: "Run") -> Iterator[tuple[str, str]]:
    from holdshort.cli.showing import moment  # noqa: PLC0415 - heavy

    yield "run", run.run_id
    yield "agent", run.agent
    yield "admitted", f"{moment(run.admitted_at)} as {run.admission}" if run.admission else "outside the gate"
    yield "last heard of", moment(run.seen_at)
    yield "answers", f"pause {run.answers}" if run.answers is not None else ""


def _show_question(one: "Paused", row: "Question") -> None:
    from holdshort.cli.showing import moment, now_ms, plain, pretty, print_facts, until  # noqa: PLC0415

    if row.interrupt is None:
        return
    interrupt = next(known for known in one.pause.interrupts if known.id == row.interrupt)
    asked = one.gathered.one(row.interrupt) if one.gathered is not None else None
    typer.echo(f"\ninterrupt {plain(row.interrupt)}")
    waits = f"{moment(row.until)} ({until(row.until, now_ms())})" if row.until is not None else ""
    print_facts(
        [
            ("reason", row.reason or ""),
            ("message", row.message or ""),
            ("team", row.team or ""),
            ("state", f"{row.state}: {row.held}" if row.held else row.state),
            ("claimed by", row.claimed_by or ""),
            ("attempt", str(row.attempt) if row.attempt > 1 else ""),
            ("until", waits),
            ("expires", moment(row.expires_at) if row.expires_at is not None else ""),
            ("approval", row.approval or ""),
            ("tool", interrupt.tool.name if interrupt.tool else ""),
        ],
        "  ",
    )
    _show_content(interrupt.descriptor, interrupt.tool.args if interrupt.tool else None, pretty)
    if asked is not None:
        _show_answers(asked)


def _show_content(descriptor: Any, args: str | None, pretty: Any) -> None:
    schema = _built(bytes(descriptor)).get("responseSchema")
    if args is not None:
        typer.echo("  arguments")
        typer.echo(pretty(parsed(args), 4))
    if schema is not None:
        typer.echo("  schema of the answer")
        typer.echo(pretty(schema, 4))


def parsed(args: str) -> Any:
    """Arguments as JSON, if they are; else as the agent streamed them."""
    import orjson  # noqa: PLC0415 - only here

    try:
        return orjson.loads(args)
    except orjson.JSONDecodeError:
        return args


def _show_answers(asked: "Asked") -> None:
    for name, answer in (
        *(("answer", one) for one in (asked.answer,) if one is not None),
        *(("vote", one) for one in asked.votes),
        *(("previous answer", one) for one in (asked.previous,) if one is not None),
    ):
        typer.echo(f"  {name}: {_said(answer)}")


def _said(answer: "Answer") -> str:
    import msgspec  # noqa: PLC0415 - heavy

    from holdshort.cli.showing import plain, short  # noqa: PLC0415 - heavy

    payload = "" if answer.payload is msgspec.UNSET else f" {short(bytes(answer.payload).decode(), 200)}"
    who = answer.decided_by or (f"the router ({answer.cause})" if answer.cause else answer.team)
    comment = f": {plain(answer.comment)}" if answer.comment else ""
    return f"{answer.status}{payload} by {plain(who)}{comment}"


def _show_history(one: "Paused") -> None:
    from holdshort.cli.showing import moment, print_facts  # noqa: PLC0415 - heavy

    happened = [
        (run.at, f"run {run.run_id} of {run.agent} ended: {run.outcome}") for run in one.state.ended
    ] + [
        (
            gone.at,
            f"pause {gone.generation} ({', '.join(gone.ids)}) {gone.how}"
            + (f" by run {gone.answered_by}" if gone.answered_by else ""),
        )
        for gone in one.state.gone
    ]
    if happened:
        typer.echo("\nhistory")
        print_facts([(moment(at), said) for at, said in sorted(happened, reverse=True)], "  ")
