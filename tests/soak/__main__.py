"""`./dev soak`: thousands of pauses over five teams whose people are slow, wrong, late and contradict."""

import asyncio
import secrets
import sys
import time
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from tests.soak.run import Result, soak

SHOWN: Final = 40
LOGGED_EVERY_S: Final = 10.0  # where no terminal shows it all the time

app = typer.Typer(help=__doc__, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    pauses: Annotated[int, typer.Option(min=1, help="How many.")] = 10_000,
    seed: Annotated[int | None, typer.Option(help="Of a run to repeat; by default a new one.")] = None,
) -> None:
    """Open pauses, let five teams decide, kill gatekeeper, router and deciders; explain every receipt."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    console = Console()
    with console.status(f"seed {seed}: starting ...") as status:
        said = time.monotonic()

        def told(text: str) -> None:
            nonlocal said
            status.update(f"seed {seed}: {text}")
            if not console.is_terminal and time.monotonic() - said > LOGGED_EVERY_S:
                said = time.monotonic()
                console.print(text, soft_wrap=True)

        result = asyncio.run(soak(pauses, seed, {}, told))
    sys.exit(_shown(console, seed, result))


def _shown(console: Console, seed: int, result: Result) -> int:
    table = Table("soak", f"seed {seed}", title_justify="left")
    for name, figure in result.figures.items():
        table.add_row(name, figure)
    console.print(table)
    for text in result.findings[:SHOWN]:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if not result.findings:
        console.print("Nothing is open, and every receipt is explained.")
        return 0
    console.print(f"{len(result.findings)} things are not as they must be; logs are in {result.directory}.")
    return 1


if __name__ == "__main__":
    app()
