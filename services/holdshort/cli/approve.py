"""`holdshort approve`: a team's queue in the terminal, and each step of it for scripts."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from holdshort.cli.naming import Helpful, Named

if TYPE_CHECKING:
    from holdshort.cli.answers import Asked
    from holdshort.sdk.approvals import Approval, Decision, Receipt
    from holdshort.sdk.signing import Signer

app = typer.Typer(invoke_without_command=True, subcommand_metavar="[COMMAND] ...", cls=Helpful)

Id = Annotated[
    str, typer.Argument(metavar="ID", help="An approval's id or its beginning, an interrupt or a thread.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
Comment = Annotated[str | None, typer.Option(help="Why; stands in the record and goes to the agent.")]


class _Who(NamedTuple):
    """Which team's queue, who decides, and their key if they sign."""

    team: str
    by: str | None
    key: Path | None
    key_id: str | None
    key_password_file: Path | None
    installation: str

    def signer(self, by: str | None) -> "Signer | None":
        """What signs in that person's name. Raises Fatal for a key that cannot."""
        from holdshort.sdk.signing import CannotSignError, Signer  # noqa: PLC0415 - heavy
        from holdshort.settings import read_secret  # noqa: PLC0415 - heavy
        from holdshort.stream.errors import Fatal  # noqa: PLC0415 - heavy

        if self.key is None:
            return None
        if self.key_id is None or by is None:
            raise Fatal("--key needs --key-id, its name in the team's configuration, and --by, whose it is")
        file = self.key_password_file
        password = None if file is None else read_secret(file, "--key-password-file").encode()
        try:
            return Signer.from_pem(
                self.key.read_bytes(),
                key_id=self.key_id,
                decider=by,
                installation=self.installation,
                password=password,
            )
        except OSError as error:
            raise Fatal(f"--key: {self.key}: {error.strerror}") from error
        except CannotSignError as error:
            raise Fatal(f"--key: {self.key}: {error}") from error


@app.callback()
def approve(
    context: typer.Context,
    team: Annotated[str | None, typer.Option(help="The team whose questions these are; needed.")] = None,
    by: Annotated[str | None, typer.Option(help="Who decides.")] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="Sign every answer with this private key, as `openssl genpkey -algorithm ed25519` makes one."
        ),
    ] = None,
    key_id: Annotated[str | None, typer.Option(help="The key's name in the team's configuration.")] = None,
    key_password_file: Annotated[Path | None, typer.Option(help="What the key is encrypted with.")] = None,
    installation: Annotated[
        str, typer.Option(help="The `installation` of the router's configuration, for signatures.")
    ] = "holdshort",
) -> None:
    """Answer what is asked of a team.

    Without a command: a queue to go through, question by question.

    Needs the team's own credentials alone (KAFKA_*, HOLDSHORT_PREFIX), no configuration file.
    """
    if team is None:
        context.fail("Missing option '--team'.")
    who = _Who(_team(team), by, key, key_id, key_password_file, installation)
    context.obj = who
    if context.invoked_subcommand is None:
        from holdshort.cli.queue import go_through  # noqa: PLC0415 - heavy

        name = by or typer.prompt("Who decides?")
        go_through(who.team, name, who.signer(name))


def _team(name: str) -> str:
    import re  # noqa: PLC0415 - only here

    from holdshort.settings import NAME  # noqa: PLC0415 - heavy

    if not re.fullmatch(NAME, name):
        raise typer.BadParameter("a team's name is like payments-2", param_hint="--team")
    return name


# -- list, show, receipts -----------------------------------------------------------------------------------


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List what is asked, the most urgent first.

    With --json the approvals as they are, one a line.
    """
    asyncio.run(_list(context.obj, as_json=as_json))


@app.command(cls=Named)
def show(context: typer.Context, name: Id, as_json: AsJson = False) -> None:
    """Show one question with all it says.

    Message, tool and arguments, by which agent, until when, and the schema of the answer.
    """
    asyncio.run(_show(context.obj, name, as_json=as_json))


@app.command()
def receipts(
    context: typer.Context,
    thread: Annotated[str | None, typer.Option(help="Only those of this thread.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what became of the team's decisions, the oldest first."""
    asyncio.run(_receipts(context.obj, thread, as_json=as_json))


async def _list(who: _Who, *, as_json: bool) -> None:
    from holdshort.cli.answers import desk  # noqa: PLC0415 - heavy
    from holdshort.cli.queue import print_queue  # noqa: PLC0415 - heavy

    async with desk(who.team) as mine:
        asked = await mine.open()
    if as_json:
        for one in asked:
            typer.echo(one.raw)
    else:
        print_queue(asked)


async def _show(who: _Who, name: str, *, as_json: bool) -> None:
    from holdshort.cli.answers import chosen, desk  # noqa: PLC0415 - heavy
    from holdshort.cli.queue import print_question  # noqa: PLC0415 - heavy

    async with desk(who.team) as mine:
        one = chosen(await mine.open(), name)
    if as_json:
        typer.echo(one.raw)
    else:
        print_question(one.approval)


async def _receipts(who: _Who, thread: str | None, *, as_json: bool) -> None:
    from holdshort.cli.answers import as_object, desk  # noqa: PLC0415 - heavy
    from holdshort.cli.queue import print_receipt  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import echo_json, moment  # noqa: PLC0415 - heavy

    async with desk(who.team) as mine:
        found = [(at, one) async for at, one in mine.receipts() if thread is None or one.thread_id == thread]
    for at, receipt in sorted(found, key=lambda one: one[0]):
        if as_json:
            echo_json({"at": at, **as_object(receipt)})
        else:
            typer.echo(moment(at))
            print_receipt(receipt)


# -- answer, claim, release ---------------------------------------------------------------------------------


@app.command(cls=Named)
def answer(  # noqa: PLR0913, PLR0917 - each a way to answer
    context: typer.Context,
    name: Id,
    yes: Annotated[bool, typer.Option("--approve", help="Say yes.")] = False,
    no: Annotated[bool, typer.Option("--deny", help="Say no: the agent goes on without doing it.")] = False,
    payload: Annotated[
        Path | None, typer.Option(help="Answer with the JSON of this file; - is standard input.")
    ] = None,
    edited_args: Annotated[
        Path | None, typer.Option(help="With --approve: the arguments (JSON) to be used instead.")
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Give no answer; the way past a question that has expired.")
    ] = False,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Give the answer of the attempt before once more.")
    ] = False,
    comment: Comment = None,
    by: Annotated[str | None, typer.Option(help="Who decides.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer one question, and print the receipt.

    What does not fit the question's schema is not sent. Exit 1 if the answer is refused or no receipt comes.
    """
    ways = [yes, no, payload is not None, cancel, confirm]
    if sum(ways) != 1:
        raise typer.BadParameter("say one of --approve, --deny, --payload, --cancel, --confirm")
    if edited_args is not None and not yes:
        raise typer.BadParameter("--edited-args goes with --approve")
    said = _Said(
        yes=yes,
        no=no,
        cancel=cancel,
        confirm=confirm,
        payload=_json_of(payload, "--payload"),
        edited_args=_json_of(edited_args, "--edited-args"),
        comment=comment,
    )
    sys.exit(asyncio.run(_answer(context.obj, name, said, by, as_json=as_json)))


@app.command(cls=Named)
def claim(
    context: typer.Context,
    name: Id,
    by: Annotated[str | None, typer.Option(help="Who takes it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a question for one person.

    For a while nobody else of the team decides it.
    """
    sys.exit(asyncio.run(_hold(context.obj, name, by, "claim", as_json=as_json)))


@app.command(cls=Named)
def release(
    context: typer.Context,
    name: Id,
    by: Annotated[str | None, typer.Option(help="Who gives it back.")] = None,
    as_json: AsJson = False,
) -> None:
    """Give a claim back."""
    sys.exit(asyncio.run(_hold(context.obj, name, by, "release", as_json=as_json)))


class _Said(NamedTuple):
    """What was said at the command line; payload and arguments as JSON, or what stands for none."""

    yes: bool
    no: bool
    cancel: bool
    confirm: bool
    payload: Any
    edited_args: Any
    comment: str | None

    def decision(self, approval: "Approval", by: str | None) -> "Decision":
        from holdshort.cli.answers import fitting  # noqa: PLC0415 - heavy
        from holdshort.sdk import approvals  # noqa: PLC0415 - heavy

        more: dict[str, Any] = {"by": by, "comment": self.comment}
        if self.cancel:
            return approvals.cancel(**more)
        if self.confirm:
            return approvals.confirm(**more)
        if self.edited_args is not None:
            return approvals.approve(edited_args=self.edited_args, **more)
        if self.yes or self.no:
            return approvals.answer(fitting(approval, yes=self.yes), **more)
        return approvals.answer(self.payload, **more)


def _json_of(file: Path | None, option: str) -> Any:
    import orjson  # noqa: PLC0415 - only here

    if file is None:
        return None
    try:
        value = orjson.loads(sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes())
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint=option) from None
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}", param_hint=option) from None
    if option == "--edited-args" and not isinstance(value, dict):
        raise typer.BadParameter(f"{file}: arguments are a JSON object", param_hint=option)
    return value


async def _answer(who: _Who, name: str, said: _Said, by: str | None, *, as_json: bool) -> int:
    from holdshort.cli.answers import chosen, desk, misfits  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import plain  # noqa: PLC0415 - heavy
    from holdshort.stream.errors import Fatal  # noqa: PLC0415 - heavy

    by = by or who.by
    async with AsyncExitStack() as stack:
        mine = await stack.enter_async_context(desk(who.team, who.signer(by)))
        one = chosen(await mine.open(), name)
        if said.confirm and one.approval.previous is None:
            raise Fatal("the question is put for the first time: there is no previous answer to confirm")
        decision = said.decision(one.approval, by)
        if decision.action == "decide" and decision.status == "resolved":
            wrong = misfits(one.approval, decision.payload)
            for misfit in wrong:
                typer.echo(plain(f"holdshort: {misfit.pointer or 'the answer'} {misfit.message}"), err=True)
            if wrong:
                return 1
        try:
            receipt = await mine.answer(one, decision)
        except ValueError as error:
            raise Fatal(f"not sent: {error}") from error
        return _told(receipt, as_json=as_json)


async def _hold(who: _Who, name: str, by: str | None, what: str, *, as_json: bool) -> int:
    from holdshort.cli.answers import chosen, desk  # noqa: PLC0415 - heavy
    from holdshort.sdk import approvals  # noqa: PLC0415 - heavy

    by = by or who.by
    if by is None:
        raise typer.BadParameter("say who: --by NAME")
    decision = approvals.claim(by=by) if what == "claim" else approvals.release(by=by)
    async with desk(who.team) as mine:
        one: Asked = chosen(await mine.open(), name)
        return _told(await mine.answer(one, decision), as_json=as_json)


def _told(receipt: "Receipt | None", *, as_json: bool) -> int:
    from holdshort.cli.answers import as_object, counts  # noqa: PLC0415 - heavy
    from holdshort.cli.queue import NO_RECEIPT, print_receipt  # noqa: PLC0415 - heavy
    from holdshort.cli.showing import echo_json  # noqa: PLC0415 - heavy

    if receipt is None:
        typer.echo(f"holdshort: {NO_RECEIPT}", err=True)
        return 1
    if as_json:
        echo_json(as_object(receipt))
    else:
        print_receipt(receipt)
    return 0 if counts(receipt) else 1
