"""A whole installation for one test: services in processes of their own, under a prefix of its own."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from tests.clients import Wire

from holdshort.cli.stack import Stack
from holdshort.stream.topics import table

NO_ROUTES = "agents: {default: {}, other: {}}\n"
TWO_TEAMS = """
agents: {default: {}, other: {}}
teams: {payments: {}, dba: {}}
routes:
  - {tool: transfer_money, team: payments}
  - {tool: migrate_database, team: dba}
"""


@dataclass
class Installation:
    """Services that run, and the wire to them."""

    stack: Stack
    wire: Wire
    prefix: str
    partitions: int


@asynccontextmanager
async def installed(
    bootstrap_servers: str,
    directory: Path,
    config: str,
    *,
    gatekeepers: int = 1,
    routers: int = 1,
    partitions: int = 4,
    topics: Sequence[str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Installation]:
    """Start services on a running Kafka and stop them.

    `topics` are those the test reads (default: all), `settings` more of the services' environment.
    """
    file = directory / "holdshort.yaml"
    file.write_text(config)
    prefix = f"t{secrets.token_hex(4)}."
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "HOLDSHORT_CONFIG": str(file),
        "HOLDSHORT_PREFIX": prefix,
        "HOLDSHORT_PARTITIONS": str(partitions),
        "HOLDSHORT_LANES": "2",
        "HOLDSHORT_REPLICATION": "1",
        "HOLDSHORT_MIN_ISR": "1",
        **(settings or {}),
    }
    stack = Stack(
        gatekeepers=gatekeepers, routers=routers, environment=environment, console=Console(quiet=True)
    )
    async with stack:
        _, _, known = stack.settings()
        names = topics or [t.name for t in table(list(known.agents), list(known.teams))]
        wire = Wire(bootstrap_servers, prefix, names)
        try:
            yield Installation(stack, wire, prefix, partitions)
        finally:
            wire.close()
