"""`holdshort config check|show|schema`: the configuration file and the environment, before they are used."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Check and show the configuration.", no_args_is_help=True)


@app.command()
def check(
    file: Annotated[Path | None, typer.Argument(help="The YAML file; HOLDSHORT_CONFIG by default.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if there is any warning.")] = False,
) -> None:
    """Say what is wrong with the configuration, line by line. Exit 2 if anything is.

    Routes that are in each other's way or never used, teams that are never asked, and words that change
    nothing are warnings.
    """
    from holdshort.findings import findings  # noqa: PLC0415 - heavy
    from holdshort.settings import MendSettingsError, load_config, load_settings, rules_of  # noqa: PLC0415

    if file is None:
        _, settings, config = load_settings()
        if settings.config is None:
            raise MendSettingsError("nothing to check: name a file, or set HOLDSHORT_CONFIG")
        file = settings.config
        rules_of(settings, config)  # what the services ask of the environment besides
    else:
        config = load_config(file)
    warnings = list(
        findings(
            config.routes,
            config.teams,
            config.default_team,
            trusted=config.trust_principal,
            max_attempts=config.max_attempts,
            unsafe=sorted(name for name, one in config.agents.items() if one.cancel == "unsafe"),
        )
    )
    for warning in warnings:
        typer.echo(f"{file}: warning: {warning}", err=True)
    if warnings and strict:
        raise typer.Exit(1)
    typer.echo(
        f"{file}: fine: {len(config.agents)} agents, {len(config.teams)} teams, {len(config.routes)} routes"
    )


@app.command()
def show() -> None:
    """Print the configuration in effect, secrets masked, as JSON."""
    import orjson  # noqa: PLC0415 - only here

    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy

    kafka, settings, config = load_settings()
    effective = {
        "kafka": kafka.model_dump(mode="json"),
        "holdshort": settings.model_dump(mode="json"),
        "config": config.model_dump(mode="json"),
    }
    typer.echo(orjson.dumps(effective, option=orjson.OPT_INDENT_2))


@app.command()
def schema() -> None:
    """Print the JSON Schema of the configuration file, for editors."""
    import orjson  # noqa: PLC0415 - only here

    from holdshort.settings import config_schema  # noqa: PLC0415 - heavy

    typer.echo(orjson.dumps(config_schema(), option=orjson.OPT_INDENT_2))
