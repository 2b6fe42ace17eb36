"""Every command and group of the executable; each file imports what is heavy in the command that needs it."""

from typing import Annotated

import typer

from holdshort.cli import (
    acls,
    approve,
    audit,
    bench,
    config,
    demo,
    dlq,
    doctor,
    interrupts,
    judge,
    lanes,
    routes,
    serve,
    threads,
    topics,
    up,
)

app = typer.Typer(
    name="holdshort",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _holdshort(
    _version: Annotated[
        bool, typer.Option("--version", callback=serve.tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A safe pause between AI agents and the world, on Apache Kafka.

    `holdshort --install-completion` lets your shell complete commands and options.
    """


app.command(name="up")(up.up)
app.command(name="demo")(demo.demo)
app.command(name="demo-agent", hidden=True)(demo.demo_agent)
app.command(name="demo-team", hidden=True)(demo.demo_team)
app.command(name="bench")(bench.bench)
app.command(name="gatekeeper")(serve.gatekeeper)
app.command(name="router")(serve.router)
app.add_typer(topics.app, name="topics")
app.add_typer(acls.app, name="acls")
app.add_typer(config.app, name="config")
app.add_typer(routes.app, name="routes")
app.add_typer(lanes.app, name="lanes")
app.command(name="doctor")(doctor.doctor)
app.add_typer(approve.app, name="approve")
app.add_typer(interrupts.app, name="interrupts")
app.add_typer(threads.app, name="threads")
app.add_typer(dlq.app, name="dlq")
app.add_typer(audit.app, name="audit")
app.command(name="judge")(judge.judge)
app.command(name="healthcheck")(serve.healthcheck)
app.command(name="version")(serve.version)
