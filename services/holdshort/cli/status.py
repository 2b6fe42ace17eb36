"""How a stack is: drawn at a terminal, told line by line anywhere else, until SIGINT or SIGTERM."""

import asyncio
import signal
from contextlib import suppress
from typing import Final, NamedTuple

from rich.live import Live
from rich.table import Table

from holdshort.cli.stack import Process, Stack

STARTING: Final = "Starting Kafka, topics and services ..."
STOPPING: Final = "Stopping ..."
ELSEWHERE: Final = "In another shell, before `holdshort doctor`, `approve`, `interrupts` and the rest:"
LOOK_S: Final = 1.0


class Status(NamedTuple):
    """One process at one moment."""

    name: str
    pid: int | None
    state: str
    lanes: str
    starts: int
    port: int


async def show_until_stopped(stack: Stack) -> None:
    """Start the stack and show the state of every process until SIGINT or SIGTERM. Raises as its start."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await (_draw if stack.console.is_terminal else _tell)(stack, stopped)


async def _draw(stack: Stack, stopped: asyncio.Event) -> None:
    with stack.console.status(STARTING):
        if not await _started(stack, stopped):
            return
    try:
        _tell_settings(stack)
        with Live(console=stack.console, refresh_per_second=4) as live:
            while not stopped.is_set():
                live.update(_table(stack, await asyncio.to_thread(_look, stack)))
                await _for_a_while(stopped)
    finally:
        with stack.console.status(STOPPING):
            await stack.__aexit__()


async def _tell(stack: Stack, stopped: asyncio.Event) -> None:
    _say(stack, STARTING)
    telling = asyncio.create_task(_tell_changes(stack))
    try:
        if await _started(stack, stopped):
            try:
                _say(stack, f"holdshort is up on {stack.bootstrap_servers} (logs in {stack.directory})")
                _tell_settings(stack)
                await stopped.wait()
                _say(stack, STOPPING)
            finally:
                await stack.__aexit__()
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


def _tell_settings(stack: Stack) -> None:
    _say(stack, "\n".join((ELSEWHERE, "", *stack.for_another_shell(), "")))


async def _started(stack: Stack, stopped: asyncio.Event) -> bool:
    """Whether everything is ready; False if it was to stop before that, and then it is stopped."""
    starting, told = asyncio.create_task(stack.__aenter__()), asyncio.create_task(stopped.wait())
    await asyncio.wait([starting, told], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return False
    await starting
    return True


async def _tell_changes(stack: Stack) -> None:
    """A line for every process whose state is another than at the last look."""
    known: dict[str, Status] = {}
    while True:
        for now in await asyncio.to_thread(_look, stack):
            if known.get(now.name) != now:
                known[now.name] = now
                lanes = f", lanes {now.lanes}" if now.lanes else ""
                _say(stack, f"{now.name} {now.state}{lanes} (pid {now.pid or '-'}, port {now.port})")
        await asyncio.sleep(LOOK_S)


async def _for_a_while(stopped: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_S):
            await stopped.wait()


def _look(stack: Stack) -> list[Status]:
    return [_status(process, stack.stopping) for process in list(stack.processes)]


def _status(process: Process, stopping: bool) -> Status:
    ready, report = process.ask("/readyz")
    lanes = ", ".join(f"{lane['lane']} {lane['state']}" for lane in (report or {}).get("lanes", []))
    unready = "ended" if process.pid is None else "stopping" if stopping else "starting"
    state = "ready" if ready else unready
    name = f"{process.service} {process.number}"
    return Status(name, process.pid, state, lanes, process.starts, process.port)


def _table(stack: Stack, found: list[Status]) -> Table:
    """Narrow enough for 80 columns: all but the lanes stay in one line."""
    title = f"holdshort on {stack.bootstrap_servers} (logs in {stack.directory}; Ctrl-C stops all)"
    view = Table(title=title, caption="/livez, /readyz and /metrics on each port of 127.0.0.1")
    for name in ("service", "pid", "state", "lanes", "starts", "port"):
        view.add_column(name, no_wrap=name != "lanes", overflow="fold")
    for one in found:
        pid = str(one.pid or "-")
        view.add_row(one.name, pid, one.state, one.lanes or "-", str(one.starts), str(one.port))
    return view


def _say(stack: Stack, sentence: str) -> None:
    stack.console.print(sentence, soft_wrap=True, highlight=False, markup=False)
