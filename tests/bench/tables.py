"""Results as tables: on a terminal, and as Markdown for README. PURE."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rich.markup import escape
from rich.table import Table
from tests.bench.bars import OURS, Judged, judged
from tests.bench.results import Run, Spread
from tests.bench.systems import SYSTEMS

from holdshort.cli.bench.report import rounded

NOT_COMPARED: Final = frozenset({"kills", "drained after s"})
SAID: Final = {True: "yes", False: "NO", None: ""}


class Grid(NamedTuple):
    """A table before it is drawn."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def drawn(self) -> Table:
        table = Table(title=escape(self.title), title_justify="left")
        for number, name in enumerate(self.head):
            table.add_column(name, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table

    def markdown(self) -> str:
        lines = (self.head, ["---", *["---:"] * (len(self.head) - 1)], *self.rows)
        return "\n".join((f"#### {self.title}", "", *(f"| {' | '.join(line)} |" for line in lines), ""))


def said(spread: Spread | None) -> str:
    """The median and the range; of one measurement only itself."""
    if spread is None:
        return "-"
    if spread.lowest == spread.highest:
        return rounded(spread.median)
    return f"{rounded(spread.median)} [{rounded(spread.lowest)} - {rounded(spread.highest)}]"


def figures(run: Run) -> Grid:
    """Every figure of every system of a run; how many measurements were exact stands first."""
    counts = [run.exact(system) for system in run.systems]
    exact = ["exact", *(f"{exact} of {of}" for exact, of in counts)]
    rows = [[name, *(said(run.spread(system, name)) for system in run.systems)] for name in run.figures()]
    return Grid(run.title, ["", *run.systems], [exact, *rows])


def ratios(run: Run) -> Grid | None:
    """Ours over each peer's: the ratio of medians and the range of the ratios of one round."""
    peers = [system for system in run.systems if system != OURS and not system.startswith(f"{OURS}-")]
    if OURS not in run.systems or not peers:
        return None
    compared = [name for name in run.figures() if name not in NOT_COMPARED]
    rows = [[name, *(said(run.ratio(OURS, peer, name)) for peer in peers)] for name in compared]
    return Grid(f"{run.title}: {OURS} / peer", ["", *peers], rows)


def bars(runs: Iterable[Run]) -> Grid | None:
    """The bars of issues 5 and 6 that these runs allow to judge."""
    rows = [_bar(one) for run in runs for one in judged(run)]
    if not rows:
        return None
    head = ["bar", "measured", "bar is", "met", "we want", "as wanted"]
    return Grid(
        "Bars of issues 5 and 6: ratio of medians [ratios of one round], or our own figure", head, rows
    )


def _bar(one: Judged) -> list[str]:
    bar = one.bar
    of = f" of {bar.peer}" if bar.peer else ""
    size = f", {bar.size}" if bar.size else ""
    return [
        f"{bar.workload}{size}: {bar.figure}{of}",
        said(one.value),
        "" if bar.bar is None else f"{bar.side} {bar.bar:g}",
        SAID[one.met],
        "" if bar.want is None else f"{bar.want:g}",
        SAID[one.as_wanted],
    ]


def inexact(runs: Iterable[Run]) -> Iterator[str]:
    """Every problem that the exact check found."""
    for run in runs:
        for one in run.measurements:
            yield from (f"{one.title}, {one.system}, round {one.round + 1}: {text}" for text in one.problems)


def results(runs: Sequence[Run]) -> str:
    """The RESULTS section of README, whole."""
    every = [one for run in runs for one in run.measurements]
    loads = [one.load1 for one in every]
    yielded = [f"{min(one.at for one in every)[:10]}, {every[0].machine}; {len(every)} measurements;"]
    yielded += [f"load of the machine when they began: {min(loads):.1f} to {max(loads):.1f}.", ""]
    names = dict.fromkeys(name for run in runs for name in run.systems)
    yielded += [*(f"- `{name}`: {SYSTEMS[name].what}" for name in names if name in SYSTEMS), ""]
    grids = [bars(runs), *(grid for run in runs for grid in (figures(run), ratios(run)))]
    yielded += [grid.markdown() for grid in grids if grid is not None]
    problems = list(inexact(runs))
    yielded += ["Not exact:", "", *(f"- {problem}" for problem in problems)] if problems else []
    return "\n".join(yielded)
