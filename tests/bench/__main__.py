"""`./dev bench`: our gatekeeper and its peers under the same load; alone, the short form."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from tests.bench import results, tables
from tests.bench.broker import broker
from tests.bench.compare import Plan, measure_all
from tests.bench.results import Measurement, runs
from tests.bench.systems import SYSTEMS
from tests.bench.workloads import SHORT, WORKLOADS, Sizes

README: Final = Path(__file__).parent / "README.md"
FILE_WIDTH: Final = 220
OURS_ALONE: Final = {"W6": ["holdshort-routed"], "W7": ["holdshort-p2"]}
BEGIN, END = "<!-- results -->", "<!-- /results -->"

app = typer.Typer(help=__doc__, pretty_exceptions_enable=False, add_completion=False)


@app.callback(invoke_without_command=True)
def short(
    context: typer.Context,
    _: Annotated[bool, typer.Option("--short", help="The short form, which is the default.")] = False,
) -> None:
    """Every workload, small, for holdshort and limit: a check that all is exact, not a measurement."""
    if context.invoked_subcommand is None:
        sys.exit(_measure(short_plans(), with_bars=False))


def short_plans() -> list[Plan]:
    """Where answers are judged, the peer has rules, too; of people none of them knows anything."""
    peers = {"W1": "limit", "W3": "limit"}
    pairs = {name: ["holdshort", peers.get(name, "limit-rules")] for name in WORKLOADS}
    return [Plan(name, SHORT, systems, 1) for name, systems in (pairs | OURS_ALONE).items()]


@app.command()
def full(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each comparison.")] = 3,
    only: Annotated[str, typer.Option(help="Workloads, with commas.")] = ",".join(WORKLOADS),
) -> None:
    """Everything that issues 5 and 6 have a bar for, at its sizes: about an hour and a half."""
    sys.exit(_measure([plan for plan in full_plans(rounds) if plan.workload in only.split(",")]))


def full_plans(rounds: int) -> list[Plan]:
    sizes = Sizes()
    million = replace(sizes, open=1_000_000)
    return [
        Plan("W1", sizes, ["holdshort", "holdshort-p2", "limit-lane", "kstreams"], rounds),
        Plan("W2", sizes, ["holdshort", "holdshort-p2", "limit-rules", "kstreams", "quix"], rounds),
        Plan("W3", sizes, ["holdshort", "limit-rules-lane", "kstreams", "kstreams-c10"], rounds),
        Plan("W4", sizes, ["holdshort", "limit-rules", "kstreams"], rounds),
        Plan("W4", million, ["holdshort", "limit-rules", "kstreams"], rounds),
        Plan("W5", sizes, ["holdshort", "limit-rules", "kstreams"], rounds),
        *(Plan(name, sizes, systems, rounds) for name, systems in OURS_ALONE.items()),
    ]


@app.command()
def compare(
    systems: Annotated[list[str], typer.Argument(help="Two or more, or one; `systems` lists them.")],
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "W1",
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    brokers: Annotated[
        int, typer.Option(min=1, max=3, help="Nodes of the embedded Kafka, a copy on each.")
    ] = 1,
    size: Annotated[
        list[str] | None, typer.Option(help="name=value of a size, such as records=200000 or rates=50,500.")
    ] = None,
) -> None:
    """Systems in turn on one workload."""
    unknown = [name for name in systems if name not in SYSTEMS]
    if unknown or workload not in WORKLOADS:
        raise typer.BadParameter(f"there is no {', '.join(unknown) or workload}")
    sys.exit(_measure([Plan(workload, _sized(size or []), systems, rounds)], nodes=brokers))


def _sized(given: Sequence[str]) -> Sizes:
    sizes = Sizes()
    for one in given:
        name, _, text = one.partition("=")
        if name not in Sizes.__dataclass_fields__:
            raise typer.BadParameter(f"there is no size {name}: {', '.join(Sizes.__dataclass_fields__)}")
        value: Any = getattr(sizes, name)
        value = tuple(map(int, text.split(","))) if isinstance(value, tuple) else type(value)(text)
        sizes = replace(sizes, **{name: value})
    return sizes


@app.command("systems")
def list_systems() -> None:
    """List the systems that can be measured."""
    for system in SYSTEMS.values():
        typer.echo(f"{system.name:18} {system.what}")


@app.command()
def show(files: Annotated[list[Path], typer.Argument(help="What earlier runs kept.")]) -> None:
    """Show the tables of what was kept."""
    _show(list(results.kept(files)), _console())


@app.command()
def publish(files: Annotated[list[Path], typer.Argument(help="What a full run kept.")]) -> None:
    """Write the tables of what was kept into tests/bench/README.md."""
    before, _, rest = README.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    written = tables.results(runs(list(results.kept(files))))
    README.write_text(f"{before}{BEGIN}\n{written}\n{END}{after}")


def _measure(plans: Sequence[Plan], *, with_bars: bool = True, nodes: int = 1) -> int:
    """Measure, keep and show; 1 if anything could not be measured or was not exact."""
    signal.signal(signal.SIGTERM, _end_in_order)
    console, file = _console(), results.new_file()
    wanted = sum(len(list(plan.turns())) for plan in plans)
    with broker(nodes) as kafka:
        done = measure_all(plans, kafka, file, console)
    _show(done, console, with_bars=with_bars)
    console.print(f"kept in {file}")
    return 0 if len(done) == wanted and all(one.exact for one in done) else 1


def _console() -> Console:
    """As wide as its terminal; a file is as wide as its tables."""
    console = Console()
    return console if console.is_terminal else Console(width=FILE_WIDTH)


def _end_in_order(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def _show(measurements: Sequence[Measurement], console: Console, *, with_bars: bool = True) -> None:
    found = runs(measurements)
    for run in found:
        for grid in (tables.figures(run), tables.ratios(run)):
            if grid is not None:
                console.print(grid.drawn())
    if with_bars and (grid := tables.bars(found)) is not None:
        console.print(grid.drawn())
    for problem in tables.inexact(found):
        console.print(f"[red]not exact[/red]: {problem}", highlight=False)


if __name__ == "__main__":
    app()
