"""`holdshort bench`: the load of our own benchmark against your cluster, with a report to paste."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdshort.cli.bench.room import Room


def bench(  # noqa: PLR0913, PLR0917 - each is an option
    records: Annotated[int, typer.Option(min=100, help="Events to pass through.")] = 200_000,
    threads: Annotated[int, typer.Option(min=10, help="Threads that pause and are answered.")] = 20_000,
    rates: Annotated[str, typer.Option(help="Rates at which latency is measured, per second.")] = "50,500",
    seconds: Annotated[float, typer.Option(min=1, help="How long at each rate.")] = 10.0,
    prefix: Annotated[
        str, typer.Option(help="Before every topic; must contain `bench`.")
    ] = "holdshort-bench.",
    keep: Annotated[bool, typer.Option("--keep", help="Leave the topics where they are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove the topics without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Every figure, as one JSON object.")] = False,
) -> None:
    """Measure this installation: one gatekeeper here, on the Kafka of KAFKA_BOOTSTRAP_SERVERS, under topics
    of its own. Says how many events and answers a second it deals with, and how long they take. Exit 1 if
    anything was lost, doubled or out of order.
    """
    from holdshort.cli.bench.room import Room  # noqa: PLC0415 - heavy
    from holdshort.cli.bench.run import Load, measure  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy

    load = Load(records=records, threads=threads, rates=_rates(rates), seconds=seconds)
    room = Room(load_settings()[0], prefix)
    _make_way(room, yes=yes)
    try:
        report = measure(room, load)
    finally:
        if not keep:
            _tidy(room, yes=yes)
    typer.echo(report.json() if as_json else report.text())
    sys.exit(0 if report.exact else 1)


def _rates(text: str) -> list[int]:
    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    rates = [int(rate) for rate in text.split(",") if rate.strip().isdigit()]
    if not all(rates) or len(rates) != len(text.split(",")):
        raise MendSettingsError(f"--rates {text}: must be numbers with commas between them, such as 50,500")
    return rates


def _make_way(room: "Room", *, yes: bool) -> None:
    """What an earlier benchmark left would be counted, too. Raises MendSettingsError."""
    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    there = room.topics()
    if there and not _agreed(f"Remove {len(there)} topics {room.prefix}* of an earlier benchmark?", yes=yes):
        raise MendSettingsError(
            f"{len(there)} topics {room.prefix}* are there: remove them, or give another --prefix"
        )
    _remove(room, there)


def _tidy(room: "Room", *, yes: bool) -> None:
    there = room.topics()
    if there and _agreed(f"Remove the {len(there)} topics {room.prefix}* of this benchmark?", yes=yes):
        _remove(room, there)
    elif there:
        typer.echo(f"{len(there)} topics {room.prefix}* are left", err=True)


def _agreed(question: str, *, yes: bool) -> bool:
    return yes or (sys.stdin.isatty() and typer.confirm(question, default=False, err=True))


def _remove(room: "Room", topics: list[str]) -> None:
    for problem in room.remove(topics) if topics else ():
        typer.echo(f"not removed: {problem}", err=True)
