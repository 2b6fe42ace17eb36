"""A team's queue at a terminal: the list, one question with all it says, and what can be done about it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, Final

import click
import orjson
import typer

from holdshort.cli.answers import Asked, TeamDesk, desk, fitting, misfits
from holdshort.cli.forms import ask_line, fill_in
from holdshort.cli.showing import moment, now_ms, plain, pretty, print_facts, print_table, short, span, until
from holdshort.contract.codes import Code
from holdshort.router.codes import DecisionCode
from holdshort.sdk import approvals
from holdshort.sdk.approvals import Approval, Decision, Receipt
from holdshort.sdk.signing import Signer
from holdshort.stream.errors import Fatal

NO_RECEIPT: Final = (
    "the answer is written, but no receipt has come: is a router running? `approve receipts` shows it later, "
    "and to answer again does no harm"
)


def print_queue(asked: Sequence[Asked]) -> None:
    """The list, numbered."""
    if not asked:
        typer.echo("Nothing is asked.")
        return
    now = now_ms()
    columns: tuple[str, ...] = (
        "",
        "approval",
        "what",
        "tool",
        "agent",
        "requester",
        "since",
        "until",
        "claimed by",
    )
    rows: list[tuple[str, ...]] = [_cells(n, one.approval, now) for n, one in enumerate(asked, 1)]
    if any(one.approval.previous is not None for one in asked):
        columns = (*columns, "previous answer")
        rows = [(*row, _previously(one.approval)) for row, one in zip(rows, asked, strict=True)]
    print_table(columns, rows)


def _previously(one: Approval) -> str:
    """What `confirm` would say again, and whose it was."""
    if one.previous is None:
        return "-"
    return short(_decided({**one.previous, "decidedAt": None}), 40)


def _decided(answer: Mapping[str, Any]) -> str:
    """An answer that stands or stood, and whose it is; not everybody is told its payload."""
    cause = answer.get("cause")
    by = f"the router ({cause})" if cause else answer.get("decidedBy") or "somebody"
    when = f", {answer['decidedAt']}" if answer.get("decidedAt") else ""
    what = orjson.dumps(answer["payload"]).decode() if "payload" in answer else answer["status"]
    return f"{what} by {by}{when}"


def _cells(number: int, one: Approval, now: int) -> tuple[str, ...]:
    marks = "".join(mark for mark, on in (("! ", one.priority > 0), ("again: ", one.attempt > 1)) if on)
    return (
        str(number),
        one.approval_id,
        marks + short(one.message or one.reason, 50),
        short(one.tool.name if one.tool else "-", 30),
        short(one.agent, 20),
        short(one.requester or "-", 20),
        span(now - _ms(one.opened_at)),
        until(None if one.deadline is None else _ms(one.deadline), now),
        short(one.held_by(datetime.now(UTC)) or "-", 20),
    )


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def print_question(one: Approval) -> None:
    """Everything that the team may know about one question."""
    now = now_ms()
    deadline = None if one.deadline is None else _ms(one.deadline)
    print_facts(
        [
            ("approval", one.approval_id),
            ("asks", f"agent {one.agent}, thread {one.thread_id}, pause {one.generation}"),
            ("for", one.requester or ""),
            ("reason", one.reason),
            ("message", one.message or ""),
            ("since", f"{moment(_ms(one.opened_at))} ({span(now - _ms(one.opened_at))})"),
            ("until", "" if deadline is None else f"{moment(deadline)} ({until(deadline, now)})"),
            ("part of", f"{one.batch.get('total', 1)} questions, {one.batch.get('yours', 1)} of them yours"),
            ("voices", _voices(one)),
            ("moved from", one.moved_from or ""),
            ("claimed by", one.held_by(datetime.now(UTC)) or ""),
            ("proof", _proof(one)),
            ("requester", "" if one.requester_may_decide else "may not decide this"),
        ]
    )
    _print_history(one)
    if one.tool is not None:
        typer.echo(f"tool {plain(one.tool.name)}")
        typer.echo("  arguments were too large to be kept" if one.tool.args is None else _args(one.tool.args))
    if one.response_schema is not None:
        typer.echo("the answer must fit")
        typer.echo(pretty(one.response_schema))


def _voices(one: Approval) -> str:
    need = one.quorum.get("need", 1)
    return f"{one.quorum.get('have', 0)} of {need} who must answer alike" if need > 1 else ""


def _proof(one: Approval) -> str:
    """Whether it is refused where nobody knows who decides."""
    if one.signature == "required":
        return "a signature is required"
    wanted = one.quorum.get("need", 1) > 1 or not one.requester_may_decide
    return "it matters who decides: sign, or decide where people are known" if wanted else ""


def _print_history(one: Approval) -> None:
    """What makes an answer dangerous: it may have happened already."""
    if one.attempted:
        typer.echo("ATTENTION: the tool has had a result already; to approve may do it twice")
    if one.attempt > 1:
        unknown = one.previous is not None and one.problem is None
        why = ": nobody knows what became of the last answer" if unknown else ""
        typer.echo(f"asked again, attempt {one.attempt}{why}")
    if one.problem is not None:
        typer.echo(f"the last answer was refused: {one.problem}")
    if one.previous is not None:
        typer.echo("previous answer, which to confirm says once more")
        typer.echo(pretty(one.previous))


def _args(text: str) -> str:
    try:
        return pretty(orjson.loads(text))
    except orjson.JSONDecodeError:
        return f"  {plain(text)}"


def print_receipt(receipt: Receipt) -> None:
    """What became of a decision, entry by entry."""
    typer.echo(f"{receipt.verdict}{f': {receipt.code}' if receipt.code else ''}")
    _say(receipt.code, "  ")
    for entry in receipt.entries:
        code = f": {entry.code}" if entry.code else ""
        typer.echo(f"  {plain(entry.interrupt_id)} {entry.verdict}{code}")
        _say(entry.code, "    ")
        for problem in entry.problems:
            typer.echo(plain(f"    {problem.get('path') or ''} {problem.get('message') or ''}"))
        if entry.decided is not None:
            typer.echo(plain(f"    decided already: {_decided(entry.decided)}"))
    waiting = receipt.batch.get("waitingFor") or []
    if receipt.batch.get("complete"):
        held = "what is answered is not sent yet: an alert says why"
        typer.echo("  all is answered; the agent goes on" if receipt.batch.get("runId") else f"  {held}")
    elif waiting:
        typer.echo(plain(f"  the agent waits for {', '.join(waiting)}"))


def _say(code: str | None, indent: str) -> None:
    """What a code means; nothing of one that only a newer router knows."""
    known: Mapping[str, DecisionCode | Code] = {one.value: one for one in (*DecisionCode, *Code)}
    if code is not None and code in known:
        typer.echo(f"{indent}{known[code].sentence}")


# -- going through it ---------------------------------------------------------------------------------------


def go_through(team: str, by: str, signer: Signer | None) -> None:
    """The queue, until the person leaves; the loop sleeps while they think."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        mine = runner.run(stack.enter_async_context(desk(team, signer)))
        try:
            _Visit(runner, mine, by).go()
        finally:
            runner.run(stack.aclose())


class _Visit:
    """One person before their team's queue."""

    def __init__(self, runner: asyncio.Runner, mine: TeamDesk, by: str) -> None:
        self._runner = runner
        self._desk = mine
        self._by = by

    def go(self) -> None:
        while True:
            asked = self._runner.run(self._desk.open())
            print_queue(asked)
            word = ask_line("A number to look at, Enter to look again, q to leave").strip()
            if word.lower() in ("q", "quit", "exit"):
                return
            if word.isdecimal() and 1 <= int(word) <= len(asked):
                self._consider(asked[int(word) - 1])
            elif word:
                typer.echo(f"There is no {plain(word)}.")

    def _consider(self, one: Asked) -> None:
        """One question, until it is decided or left."""
        print_question(one.approval)
        ways = self._ways(one.approval)
        while True:
            word = ask_line(" ".join(f"[{key}]{name[1:]}" for key, (name, _) in ways.items()) + " [b]ack")
            key = word.strip().lower()[:1]
            if key in ("b", ""):
                return
            if key not in ways:
                continue
            decision = ways[key][1]()
            if decision is None:
                continue
            try:
                receipt = self._runner.run(self._desk.answer(one, decision))
            except ValueError as error:
                typer.echo(f"Not sent: {error}")
                continue
            typer.echo(NO_RECEIPT) if receipt is None else print_receipt(receipt)
            return

    def _ways(self, one: Approval) -> dict[str, tuple[str, Callable[[], Decision | None]]]:
        """What can be done about it, by its first letter."""
        by = self._by
        ways: dict[str, tuple[str, Callable[[], Decision | None]]] = {
            "a": ("approve", lambda: self._plainly(one, yes=True)),
            "d": ("deny", lambda: self._plainly(one, yes=False)),
            "f": ("form", lambda: approvals.answer(fill_in(one), by=by, comment=_comment())),
            "c": ("claim", lambda: approvals.claim(by=by)),
            "r": ("release", lambda: approvals.release(by=by)),
            "x": ("x: cancel", lambda: approvals.cancel(by=by, comment=_comment())),
        }
        if one.tool is not None and one.tool.args is not None:
            ways["e"] = ("edit", lambda: self._edited(one, one.tool.args if one.tool else None))
        if one.previous is not None:
            ways["p"] = ("previous answer again", lambda: approvals.confirm(by=by, comment=_comment()))
        return ways

    def _plainly(self, one: Approval, *, yes: bool) -> Decision | None:
        payload = fitting(one, yes=yes)
        return self._if_it_fits(one, payload, "it wants more than a yes or no, fill in the [f]orm")

    def _if_it_fits(self, one: Approval, payload: Any, otherwise: str) -> Decision | None:
        wrong = misfits(one, payload)
        for misfit in wrong:
            typer.echo(plain(f"  {misfit.pointer or '(the whole)'} {misfit.message}"))
        if wrong:
            typer.echo(f"Not sent: {otherwise}.")
            return None
        return approvals.answer(payload, by=self._by, comment=_comment())

    def _edited(self, one: Approval, args: str | None) -> Decision | None:
        """Other arguments than the proposed ones, in the person's editor."""
        text = click.edit(_indented(args or "{}"), extension=".json")
        try:
            edited = orjson.loads(text or "")
        except orjson.JSONDecodeError as error:
            typer.echo("Not changed." if text is None else f"Not JSON: {error}")
            return None
        if not isinstance(edited, dict):
            typer.echo("Arguments are a JSON object.")
            return None
        return self._if_it_fits(one, {"approved": True, "editedArgs": edited}, "the schema takes no edits so")


def _indented(args: str) -> str:
    try:
        return orjson.dumps(orjson.loads(args), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        raise Fatal("the arguments are not JSON, so they cannot be edited") from None


def _comment() -> str | None:
    return ask_line("A comment (Enter: none)").strip() or None
