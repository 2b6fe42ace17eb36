"""`./dev chaos`: kills and worse on a real Kafka of three brokers; at the end everything must add up."""

import asyncio
import secrets
import sys
import time
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from tests.chaos.run import Plan, Result, run

SHOWN: Final = 40
LOGGED_EVERY_S: Final = 10.0  # where no terminal shows it all the time


app = typer.Typer(help=__doc__, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    kills: Annotated[int | None, typer.Option(min=1, help="Until so many SIGKILLs.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.1, help="For so long.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of a run to repeat; by default a new one.")] = None,
) -> None:
    """Kill, pause, cut and delay all that there is, under load, and check everything that came out."""
    if (kills is None) == (minutes is None):
        raise typer.BadParameter("say either --kills or --minutes")
    plan = Plan(
        seed=secrets.randbelow(1_000_000) if seed is None else seed,
        kills=kills,
        seconds=None if minutes is None else minutes * 60,
    )
    sys.exit(_shown(plan))


def _shown(plan: Plan) -> int:
    console = Console()
    with console.status(f"seed {plan.seed}: starting three brokers and eight programs ...") as status:
        said = time.monotonic()

        def told(text: str) -> None:
            nonlocal said
            status.update(f"seed {plan.seed}: {text}")
            if not console.is_terminal and time.monotonic() - said > LOGGED_EVERY_S:
                said = time.monotonic()
                console.print(text, soft_wrap=True)

        result = asyncio.run(run(plan, told))
    console.print(_table(result))
    for finding in result.findings[:SHOWN]:
        console.print(f"{finding.kind}: {finding.text}", markup=False, highlight=False)
    if not result.findings:
        console.print("Everything adds up.")
        return 0
    console.print(
        f"{len(result.findings)} things do not add up; logs and records are in {result.directory}; "
        f"again with --seed {plan.seed}."
    )
    return 1


def _table(result: Result) -> Table:
    table = Table("chaos", f"seed {result.plan.seed}", title_justify="left")
    for name, figure in result.figures.items():
        table.add_row(name, figure)
    return table


if __name__ == "__main__":
    app()
