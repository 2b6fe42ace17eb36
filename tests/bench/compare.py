"""Systems measured in turn in one run, so that what else the machine does meets all of them alike."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from tests.bench import results
from tests.bench.results import Measurement
from tests.bench.subject import Broker, subject
from tests.bench.systems import SYSTEMS, Told
from tests.bench.workloads import WORKLOADS, Sizes

from holdshort.cli.bench.wire import MeasureAgainError
from holdshort.stream.embedded import ConnectOnceError
from holdshort.stream.errors import StreamError


class Plan(NamedTuple):
    """One workload of one size for several systems, so many rounds."""

    workload: str
    sizes: Sizes
    systems: Sequence[str]
    rounds: int

    def turns(self) -> Iterator[tuple[int, str]]:
        """Each round the other way round: nobody always comes first."""
        for turn in range(self.rounds):
            order = self.systems if turn % 2 == 0 else reversed(self.systems)
            yield from ((turn, system) for system in order)


def measure_all(plans: Sequence[Plan], broker: Broker, file: Path, console: Console) -> list[Measurement]:
    """Everything planned; what cannot be measured is said and left out. Keeps each measurement in `file`."""
    todo = [(plan, turn, system) for plan in plans for turn, system in plan.turns()]
    done: list[Measurement] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, refresh_per_second=2, transient=True) as progress:
        task = progress.add_task("", total=None)
        for number, (plan, turn, system) in enumerate(todo, 1):
            where = f"{number} of {len(todo)}: {plan.workload} {system}"

            def told(what: str, where: str = where) -> None:
                progress.update(task, description=f"{where}: {what}")

            try:
                one = _measured(plan, turn, system, broker, told)
            except (MeasureAgainError, ConnectOnceError, StreamError) as error:
                console.print(f"{where}: [red]failed[/red]: {error}", highlight=False)
                continue
            results.keep(file, one)
            done.append(one)
            fine = "exact" if one.exact else f"[red]not exact[/red]: {'; '.join(one.problems)}"
            console.print(f"{where}: {fine}", highlight=False)
    return done


def _measured(plan: Plan, turn: int, system: str, broker: Broker, told: Told) -> Measurement:
    workload = WORKLOADS[plan.workload]
    load = os.getloadavg()[0]
    with subject(SYSTEMS[system], broker, told) as (gate, wire):
        measured = workload.measure(gate, wire, plan.sizes, told)
    return Measurement(
        at=time.strftime("%Y-%m-%dT%H:%M:%S"),
        machine=results.machine(),
        workload=plan.workload,
        title=workload.title(plan.sizes) + broker.told(),
        system=system,
        round=turn,
        load1=load,
        figures=measured.figures,
        problems=measured.problems,
    )
