"""Drains: a load lies ready when the system starts, and it works it off as fast as it can.

`pass_through` (W1) is what agents say all day; `pauses_and_answers` (W2) is what the gate is for.
"""

from collections.abc import Callable

from holdshort.cli.bench.exact import Story, passage_problems
from holdshort.cli.bench.gate import Figures, Gate, Measured
from holdshort.cli.bench.load import Passage, pausing, resumes
from holdshort.cli.bench.wire import Arrivals, Wire

Told = Callable[[str], None]
"""Is told what is being done, and how far it is."""


def counting(told: Told, what: str, of: int) -> Callable[[int], None]:
    return lambda count: told(f"{what}: {count:,} of {of:,}")


def pass_through(gate: Gate, wire: Wire, records: int, told: Told) -> Measured:
    """W1: events of up to 5,000 runs that go on at once. CPU is that of the whole process, from its start."""
    passage = Passage.of(records)
    told(f"writing {records:,} events")
    wire.fill(wire.topics.agent_events, passage)
    with wire.reader(wire.topics.events) as reader:
        before = gate.spent()
        began = gate.start()
        arrivals = reader.until(records, gate.check, counting(told, "events", records))
        spent = gate.spent().since(before)
    gate.stop()
    told("reading it all again")
    figures = {
        **_rates(arrivals, "events"),
        "first output s": arrivals.first - began,
        **spent.figures(records, "events"),
    }
    return Measured(figures, passage_problems(wire, passage))


def pauses_and_answers(gate: Gate, wire: Wire, threads: int, told: Told) -> Measured:
    """W2: a question of every thread lies ready; when all are open, all answers appear at one moment.

    CPU is that of the answers alone.
    """
    numbers = range(threads)
    told(f"writing {threads:,} runs that pause")
    wire.fill(wire.topics.agent_events, pausing(numbers))
    with wire.reader(wire.topics.events) as reader:
        gate.start()
        opened = reader.until(2 * threads, gate.check, counting(told, "events", 2 * threads))
    with wire.reader(wire.topics.runs) as reader:
        before = gate.spent()
        told(f"writing {threads:,} answers")
        visible = wire.fill_together(wire.topics.inputs, resumes(numbers))
        answered = reader.until(threads, gate.check, counting(told, "answers", threads))
        spent = gate.spent().since(before)
    gate.stop()
    told("reading it all again")
    figures = {
        **_rates(opened, "pauses", records=2),
        **_rates(answered, "answers"),
        "all answers s": answered.last - visible,
        **spent.figures(threads, "answers"),
    }
    story = Story(threads=numbers, answered=numbers, ended=False)
    return Measured(figures, story.problems(wire))


def _rates(arrivals: Arrivals, of: str, records: int = 1) -> Figures:
    """Of what takes so many records each; what came all at once has no rate."""
    found = {
        f"{of}/s": arrivals.per_second(),
        f"second half {of}/s": arrivals.per_second_of_second_half(),
    }
    return {name: rate / records for name, rate in found.items() if rate is not None}
