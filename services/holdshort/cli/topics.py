"""`holdshort topics plan|apply`: the topics of the table, made and mended, never deleted and never shrunk."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdshort.stream.admin import Difference

app = typer.Typer(help="See and make the topics that holdshort needs.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="As JSON, one object a topic.")]


@app.command()
def plan(as_json: AsJson = False) -> None:
    """Show what `apply` would do. Exit 1 if there is anything to do."""
    differences = asyncio.run(_plan())
    _show(differences, as_json=as_json)
    sys.exit(1 if differences else 0)


@app.command()
def apply(as_json: AsJson = False) -> None:
    """Make missing topics and correct their configuration. Exit 1 if a topic cannot be mended."""
    differences = asyncio.run(_apply())
    _show(differences, as_json=as_json)
    sys.exit(1 if any(one.action == "refuse" for one in differences) else 0)


async def _plan() -> "Sequence[Difference]":
    from holdshort.cli.waiting import waiting_for  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy
    from holdshort.stream.admin import Admin  # noqa: PLC0415 - heavy
    from holdshort.stream.connection import connection_of  # noqa: PLC0415 - heavy
    from holdshort.stream.topics import table  # noqa: PLC0415 - heavy

    kafka, settings, config = load_settings()
    admin = Admin(connection_of(kafka, "holdshort-topics"), settings.prefix)
    topics = table(list(config.agents), list(config.teams))
    with waiting_for(kafka):
        return await admin.plan(topics, settings.partitions, settings.lanes)


async def _apply() -> "Sequence[Difference]":
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy
    from holdshort.stream.admin import Admin  # noqa: PLC0415 - heavy
    from holdshort.stream.connection import connection_of  # noqa: PLC0415 - heavy

    differences = await _plan()
    kafka, settings, _ = load_settings()
    admin = Admin(connection_of(kafka, "holdshort-topics"), settings.prefix)
    await admin.apply(differences, replication=settings.replication, min_isr=settings.min_isr)
    return differences


def _show(differences: "Sequence[Difference]", *, as_json: bool) -> None:
    import orjson  # noqa: PLC0415 - only here

    for one in differences:
        if as_json:
            typer.echo(orjson.dumps({"topic": one.topic, "action": one.action, "detail": one.detail}))
        else:
            typer.echo(f"{one.action:10} {one.topic:40} {one.detail}")
    if not differences and not as_json:
        typer.echo("The topics are as they must be.")
