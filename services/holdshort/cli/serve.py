"""`holdshort gatekeeper`, `router`, `healthcheck`, `version`: what runs in a container."""

import http.client
import os
import sys
from typing import Annotated

import typer


def gatekeeper() -> None:
    """Judge every input and every agent event; run as many as there are lanes to share."""
    from holdshort.gatekeeper.app import Gatekeeper  # noqa: PLC0415 - heavy

    _serve(Gatekeeper)


def router() -> None:
    """Carry open interrupts to their teams and whole batches back."""
    from holdshort.router.app import Router  # noqa: PLC0415 - heavy

    _serve(Router)


def _serve(service: type) -> None:
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy
    from holdshort.telemetry.logs import set_up  # noqa: PLC0415 - heavy

    kafka, settings, config = load_settings()
    set_up(level=settings.log_level, service=service.__name__.lower())
    sys.exit(service(kafka, settings, config).run())


def healthcheck(
    port: Annotated[
        int | None, typer.Option(help="The management port; HOLDSHORT_MANAGEMENT_PORT by default.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask for liveness instead of readiness.")] = False,
) -> None:
    """Exit 0 if the service on this machine is ready (or alive), 1 if it is not."""
    known = port or _management_port()
    connection = http.client.HTTPConnection("127.0.0.1", known, timeout=3)
    try:
        connection.request("GET", "/livez" if live else "/readyz")
        response = connection.getresponse()
        typer.echo(response.read().decode())
        sys.exit(0 if response.status == 200 else 1)
    except OSError as error:
        typer.echo(f"nobody answers on port {known}: {error}", err=True)
        sys.exit(1)


def _management_port() -> int:
    """Read by hand: to import the settings would take longer than the question. Raises MendSettingsError."""
    given = os.environ.get("HOLDSHORT_MANAGEMENT_PORT", "8080")
    if given.isdecimal() and 0 < int(given) < 65536:
        return int(given)
    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    raise MendSettingsError("HOLDSHORT_MANAGEMENT_PORT: must be a port, a number from 1 to 65535")


def tell_version(wanted: bool) -> None:
    """The option `--version`."""
    if wanted:
        version()
        raise typer.Exit


def version(
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Print the version."""
    from holdshort import __version__  # noqa: PLC0415 - reads package metadata

    typer.echo(f'{{"version":"{__version__}"}}' if as_json else __version__)
