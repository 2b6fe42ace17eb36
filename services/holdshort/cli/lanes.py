"""`holdshort lanes accept-loss`: a halted lane goes on without what is lost, once a human has said so."""

import asyncio
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from holdshort.stream.decider import Decider
    from holdshort.stream.loss import Accepted

app = typer.Typer(help="Lanes that stand still until a human has decided.", no_args_is_help=True)


class App(StrEnum):
    """The services that own lanes."""

    GATEKEEPER = "gatekeeper"
    ROUTER = "router"


class Start(StrEnum):
    """Where inputs are read from if even the positions are lost."""

    BEGINNING = "beginning"
    END = "end"


@app.callback()
def lanes() -> None:
    """Lanes that stand still until a human has decided."""


@app.command("accept-loss")
def accept_loss(
    service: Annotated[App, typer.Argument(help="Whose lane.")],
    lane: Annotated[int, typer.Argument(help="Its number, as /readyz and the log of the halt have it.")],
    start: Annotated[
        Start,
        typer.Option(
            help="If even the positions are lost: go on at the end of what has arrived (nothing is judged "
            "twice, what was not read is lost), or at its beginning."
        ),
    ] = Start.END,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object; needs --yes.")] = False,
) -> None:
    """Let a halted lane go on without what is lost.

    Says what is lost and asks first. The lane's process notices by itself within seconds. Exit 1 if there is
    nothing to accept, or if you decline.
    """
    if as_json and not yes:
        typer.echo("holdshort: --json needs --yes, there is nobody to ask", err=True)
        sys.exit(2)
    if not yes:
        found = asyncio.run(_run("look", service, lane, start))
        _tell(found, "Accepting would give up:")
        if found.fits or not typer.confirm("Accept this?", default=False):
            sys.exit(1)
    accepted = asyncio.run(_run("accept", service, lane, start))
    if as_json:
        import orjson  # noqa: PLC0415 - only here

        typer.echo(orjson.dumps({"app": service, "lane": lane, "lost": accepted.lost}))
    else:
        _tell(accepted, "Accepted. Given up:" if yes else "Accepted.")
    sys.exit(1 if accepted.fits else 0)


def _tell(accepted: "Accepted", heading: str) -> None:
    if accepted.fits:
        typer.echo("Nothing is lost: state, positions and inputs fit each other.")
        return
    if not accepted.lost:
        typer.echo("Nothing is lost, but a topic is not the one it was: the lane begins anew with this one.")
        return
    typer.echo(heading)
    for one in accepted.lost:
        typer.echo(f"  - {one}")


async def _run(step: str, service: App, lane: int, start: Start) -> "Accepted":
    from holdshort.cli.waiting import waiting_for  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy
    from holdshort.stream import loss  # noqa: PLC0415 - heavy
    from holdshort.stream.connection import connection_of  # noqa: PLC0415 - heavy
    from holdshort.stream.engine_settings import EngineSettings  # noqa: PLC0415 - heavy
    from holdshort.stream.errors import Fatal, Halt, Retry  # noqa: PLC0415 - heavy
    from holdshort.stream.kafka import AioKafka  # noqa: PLC0415 - heavy

    kafka_settings, settings, _ = load_settings()
    if not 0 <= lane < settings.lanes:
        raise Fatal(f"there is no lane {lane}: lanes go from 0 to {settings.lanes - 1}")
    engine = EngineSettings(app=service, partitions=settings.partitions, lanes=settings.lanes)
    kafka = AioKafka(connection_of(kafka_settings, "holdshort-lanes"), settings.prefix)
    act = loss.accept if step == "accept" else loss.look
    try:
        with waiting_for(kafka_settings):
            return await act(lane, engine, kafka, _decider(service), start.value)
    except Halt as halt:
        raise Fatal(f"this cannot be accepted: {halt.reason}") from halt
    except Retry as trouble:
        raise Fatal(f"Kafka did not let us, try again: {trouble}") from trouble
    finally:
        await kafka.close()


def _decider(service: App) -> "Decider[Any]":
    from holdshort.gatekeeper.decider import Gate  # noqa: PLC0415 - heavy
    from holdshort.router.decider import RouterDecider  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy

    _, settings, config = load_settings()
    rules = config.rules(settings.partitions)
    if service is App.GATEKEEPER:
        return Gate(rules)
    return RouterDecider(rules, config.asked_teams)
