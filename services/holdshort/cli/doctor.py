"""`holdshort doctor`: from a broker's name to a lane's lag, what is wrong and what to do about it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from holdshort.cli.checks import Finding, Patient

MARKS: Final = {"ok": "ok", "note": "note", "finding": "WRONG", "skipped": "-"}


def doctor(
    principal: Annotated[
        str | None,
        typer.Option(
            help="Whose rights to look at: gatekeeper, router, agent-NAME, team-NAME, operator, ..."
        ),
    ] = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="With --principal gatekeeper or router: write a record in the transaction, "
            "which is aborted; the router's tells the broker's clock.",
        ),
    ] = False,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="A service's management port to ask, too; again for more."),
    ] = None,
    most_lag: Annotated[
        int, typer.Option("--most-lag", min=0, help="A lane that is further behind is a finding.")
    ] = 1000,
    patience: Annotated[
        float, typer.Option(min=0, help="Seconds that an open transaction has to end, if there is one.")
    ] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object a finding.")] = False,
) -> None:
    """Find what is wrong, and say what to do about it.

    Name resolution, TCP, TLS, SASL, brokers, topics against the table, rights, a transaction, clocks, hanging
    transactions, lanes, questions of teams that are gone. Writes nothing unless told to. Exit 1 if anything
    is wrong.
    """
    found = asyncio.run(_examine(principal, write, at or [], most_lag, patience, as_json=as_json))
    sys.exit(1 if "finding" in found else 0)


async def _examine(
    principal: str | None, write: bool, at: list[str], most_lag: int, patience: float, *, as_json: bool
) -> set[str]:
    from holdshort.cli.checks import Patient  # noqa: PLC0415 - heavy
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy
    from holdshort.stream.connection import connection_of  # noqa: PLC0415 - heavy

    kafka_settings, settings, config = load_settings()
    connection = connection_of(kafka_settings, "holdshort-doctor")
    patient = Patient(connection, settings, config, principal, write, patience)
    told: set[str] = set()
    async for finding in _found(patient, at, most_lag):
        told.add(finding.status)
        _tell(finding, as_json=as_json)
    return told


async def _found(patient: "Patient", at: list[str], most_lag: int) -> "AsyncIterator[Finding]":
    from holdshort.cli import checks, lane_checks  # noqa: PLC0415 - heavy

    for check, needed in (
        (checks.names_and_ports, "tcp"),
        (checks.encryption, None),
        (checks.entrance, "sasl"),
        (checks.cluster, "brokers"),
    ):
        fine = needed is None
        async for finding in check(patient):
            yield finding
            fine = fine or (finding.check == needed and finding.status == "ok")
        if not fine:
            yield checks.Finding("kafka", "skipped", "everything else needs a broker that lets us in")
            break
    else:
        async for finding in _inside(patient, most_lag):
            yield finding
    async for finding in lane_checks.processes(at):
        yield finding


async def _inside(patient: "Patient", most_lag: int) -> "AsyncIterator[Finding]":
    """What can be looked at once we are let in."""
    from holdshort.cli import checks, lane_checks  # noqa: PLC0415 - heavy
    from holdshort.cli.reading import Cluster, troubles_told  # noqa: PLC0415 - heavy
    from holdshort.stream.admin import NO_TOPIC, Admin  # noqa: PLC0415 - heavy
    from holdshort.stream.kafka import AioKafka  # noqa: PLC0415 - heavy
    from holdshort.stream.kafka.writing import Writer  # noqa: PLC0415 - heavy

    admin = Admin(patient.connection, patient.settings.prefix)
    kafka = AioKafka(patient.connection, patient.settings.prefix, stall_deadline=patient.patience)
    try:
        seen = await admin.look([one.name for one in patient.topics])
        known = {name: one for name, one in seen.items() if one.trouble is None}
        cluster = Cluster(kafka.log, Writer(patient.connection, patient.settings.prefix), known)
        absent = frozenset(name for name, one in seen.items() if one.trouble == NO_TOPIC)
        look = lane_checks.Lanes(patient, cluster, kafka, admin, most_lag, absent)
        for check in (
            checks.topics(patient, admin),
            checks.rights(patient, admin),
            checks.a_transaction(patient),
            checks.clock(patient, admin, seen),
            checks.hanging(patient, kafka, seen),
            lane_checks.lanes(look, "gatekeeper"),
            lane_checks.lanes(look, "router"),
            lane_checks.gating(look),
            lane_checks.teams(look),
        ):
            with troubles_told():
                async for finding in check:
                    yield finding
    finally:
        await kafka.close()


def _tell(finding: "Finding", *, as_json: bool) -> None:
    from holdshort.cli.showing import echo_json, plain  # noqa: PLC0415 - heavy

    if as_json:
        told: dict[str, Any] = finding._asdict()
        echo_json(told)
        return
    typer.echo(plain(f"{MARKS[finding.status]:6} {finding.check:12} {finding.said}"))
    if finding.advice and finding.status != "ok":
        typer.echo(plain(f"{'':19} -> {finding.advice}"))
