"""The holdshort executable: one file a command group, heavy imports only in the command that needs them."""

import sys

import typer

from holdshort.cli import config, demo, judge, lanes, serve, topics, up

app = typer.Typer(
    name="holdshort",
    help="A safe pause between AI agents and the world, on Apache Kafka.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(name="up")(up.up)
app.command(name="demo")(demo.demo)
app.command(name="demo-agent", hidden=True)(demo.demo_agent)
app.command(name="demo-team", hidden=True)(demo.demo_team)
app.command(name="gatekeeper")(serve.gatekeeper)
app.command(name="router")(serve.router)
app.add_typer(topics.app, name="topics")
app.add_typer(config.app, name="config")
app.add_typer(lanes.app, name="lanes")
app.command(name="judge")(judge.judge)
app.command(name="healthcheck")(serve.healthcheck)
app.command(name="version")(serve.version)


def main() -> None:
    """Run the command line; users' mistakes end in a sentence, not in a trace."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if type(error).__name__ not in _MISTAKES:
            raise
        typer.echo(f"holdshort: {error}", err=True)
        sys.exit(2)


_MISTAKES = {
    "ConnectOnceError",
    "Fatal",
    "InstallExtraError",
    "MendSettingsError",
    "MendTranscriptError",
    "ReadLogError",
    "UseAnotherDirectoryError",
}
