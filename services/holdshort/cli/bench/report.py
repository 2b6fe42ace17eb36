"""The report of `holdshort bench`: what was measured, on what, as Markdown that can be pasted. PURE."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdshort.cli.bench.gate import Figures, Measured

DRAINED = (
    ("events/s", "agents' events passed to clients, per second"),
    ("pauses/s", "questions opened, per second"),
    ("answers/s", "answers judged and given to the agent, per second"),
    ("CPU s per 1,000 events", "CPU seconds per 1,000 events passed"),
    ("CPU s per 1,000 answers", "CPU seconds per 1,000 answers"),
)
PHASES = (("pause", "question: agent to `events`"), ("answer", "answer: `inputs` to `runs`"))


class About(NamedTuple):
    """What the figures are of."""

    at: str
    version: str
    machine: str
    cluster: str
    settings: str
    load: str


def rounded(value: float) -> str:
    """Three significant digits, and no more than are read: 61,300, 4.1, 0.0064."""
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def report(about: About, measured: Mapping[str, Measured], rates: Sequence[int]) -> str:
    """The whole report; `measured` by the name of the load."""
    return "\n".join(
        (
            *_head(about),
            *_drains(measured),
            *_latencies(measured["latency"].figures, rates),
            *_exact(measured),
        )
    )


def _head(about: About) -> Iterator[str]:
    yield f"### holdshort bench, {about.at}"
    yield ""
    yield from (f"- {line}" for line in about[1:])
    yield ""


def _drains(measured: Mapping[str, Measured]) -> Iterator[str]:
    figures = measured["passage"].figures | measured["drain"].figures
    yield "| worked off as fast as it can | |"
    yield "|---|---|"
    for name, what in DRAINED:
        if name in figures:
            yield f"| {what} | {rounded(figures[name])} |"
    yield ""


def _latencies(figures: Figures, rates: Sequence[int]) -> Iterator[str]:
    yield f"| latency, ms: p50 / p99 | {' | '.join(f'{rate:,} per second' for rate in rates)} |"
    yield f"|---|{'---|' * len(rates)}"
    for kind, what in PHASES:
        cells = (
            f"{rounded(figures[f'{rate}/s {kind} p50 ms'])} / {rounded(figures[f'{rate}/s {kind} p99 ms'])}"
            for rate in rates
        )
        yield f"| {what} | {' | '.join(cells)} |"
    yield ""


def _exact(measured: Mapping[str, Measured]) -> Iterator[str]:
    problems = [f"{name}: {problem}" for name, one in measured.items() for problem in one.problems]
    if problems:
        yield "**Not exact:**"
        yield from (f"- {problem}" for problem in problems)
    else:
        yield "Everything was read again: each record is there once, in its order, and nothing else."
