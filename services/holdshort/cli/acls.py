"""`holdshort acls print`: the least rights of every principal, for Kafka's own tools or for Strimzi."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from holdshort.stream.access import Principal, Right

app = typer.Typer(
    help="See the rights that each part of an installation needs in Kafka.", no_args_is_help=True
)

STRIMZI: Final = "kafka.strimzi.io/v1"
_ADDRESS: Final = '--bootstrap-server "$KAFKA_BOOTSTRAP_SERVERS" --command-config "$KAFKA_COMMAND_CONFIG"'
_HEAD: Final = """\
# Run this with Kafka's tools on the PATH and KAFKA_BOOTSTRAP_SERVERS set; KAFKA_COMMAND_CONFIG names the
# client properties of somebody who may alter the cluster. It only adds; `kafka-acls.sh --list` shows what is
# there."""


class Format(StrEnum):
    """What is printed: a shell script, KafkaUsers as YAML, or one JSON object a principal."""

    KAFKA_ACLS = "kafka-acls"
    STRIMZI = "strimzi"
    JSON = "json"


class Authentication(StrEnum):
    """How Strimzi's users say who they are."""

    SCRAM = "scram-sha-512"
    TLS = "tls"
    TLS_EXTERNAL = "tls-external"


@app.callback()
def _group() -> None:
    """Make `print` a command of its own, though it is the only one."""


@app.command("print")
def print_rights(
    form: Annotated[Format, typer.Option("--format", help="For whom to print them.")] = Format.KAFKA_ACLS,
    principal: Annotated[
        str | None, typer.Option(help="Only this one: gatekeeper, router, agent-NAME, team-NAME, client, ...")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="How Kafka calls them, {} being the principal; by default the prefix and {}."),
    ] = None,
    cluster: Annotated[str, typer.Option(help="The Kafka that Strimzi's users belong to.")] = "kafka",
    authentication: Annotated[
        Authentication, typer.Option(help="How Strimzi's users say who they are.")
    ] = Authentication.SCRAM,
) -> None:
    """Print rights and quotas of all principals of the configuration."""
    chosen = _chosen(principal, user)
    match form:
        case Format.KAFKA_ACLS:
            typer.echo("\n".join((_HEAD, *_script(chosen))))
        case Format.STRIMZI:
            typer.echo(_manifests(chosen, cluster, authentication))
        case Format.JSON:
            typer.echo("\n".join(_objects(chosen)))


def _chosen(only: str | None, template: str | None) -> "Mapping[str, Principal]":
    """Those that are wanted, by their users' names. Raises MendSettingsError."""
    from holdshort.settings import MendSettingsError, load_settings  # noqa: PLC0415 - heavy
    from holdshort.stream.access import principals  # noqa: PLC0415 - heavy

    _, settings, config = load_settings()
    known = principals(list(config.agents), list(config.teams), settings.prefix)
    if only is not None and only not in (names := [one.name for one in known]):
        raise MendSettingsError(f"there is no principal {only}; there are {', '.join(names)}")
    template = template or f"{settings.prefix.replace('.', '-')}{{}}"
    if template.count("{}") != 1:
        raise MendSettingsError("--user: {} must stand in it once, for the principal")
    return {template.replace("{}", one.name): one for one in known if only in (None, one.name)}


# -- Kafka's tools ------------------------------------------------------------------------------------------


def _script(chosen: "Mapping[str, Principal]") -> Iterator[str]:
    for user, principal in chosen.items():
        yield f"\n# {principal.name}"
        yield from (
            f"kafka-acls.sh {_ADDRESS} {shlex.join(arguments)}"
            for arguments in _additions(user, principal.rights)
        )
        if quota := principal.quota:
            rates = f"producer_byte_rate={quota.produce},consumer_byte_rate={quota.consume}"
            entity = shlex.join(("--entity-type", "users", "--entity-name", user))
            yield f"kafka-configs.sh {_ADDRESS} --alter --add-config {rates} {entity}"


def _additions(user: str, rights: "Sequence[Right]") -> Iterator[list[str]]:
    """As few commands as say it: each gives all its operations on all its resources."""

    def alike(right: "Right") -> tuple[Any, ...]:
        return right.resource, right.prefixed, right.operations

    for (resource, prefixed, operations), some in groupby(sorted(rights, key=alike), alike):
        yield [
            *("--add", "--allow-principal", f"User:{user}"),
            *_each("--operation", operations),
            *_each(f"--{resource}", (right.name for right in some)),
            *(("--resource-pattern-type", "prefixed") if prefixed else ()),
        ]


def _each(option: str, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from (option, value)


# -- Strimzi and JSON ---------------------------------------------------------------------------------------


def _manifests(chosen: "Mapping[str, Principal]", cluster: str, authentication: Authentication) -> str:
    import yaml  # noqa: PLC0415 - only here

    users = [_kafka_user(user, principal, cluster, authentication) for user, principal in chosen.items()]
    return yaml.safe_dump_all(users, sort_keys=False, explicit_start=True).rstrip()


def _kafka_user(
    user: str, principal: "Principal", cluster: str, authentication: Authentication
) -> dict[str, Any]:
    acls = [
        {
            "resource": {
                "type": "transactionalId" if right.resource == "transactional-id" else str(right.resource),
                "name": right.name,
                "patternType": "prefix" if right.prefixed else "literal",
            },
            "operations": [str(operation) for operation in right.operations],
        }
        for right in principal.rights
    ]
    spec: dict[str, Any] = {
        "authentication": {"type": str(authentication)},
        "authorization": {"type": "simple", "acls": acls},
    }
    if quota := principal.quota:
        spec["quotas"] = {"producerByteRate": quota.produce, "consumerByteRate": quota.consume}
    metadata = {"name": user, "labels": {"strimzi.io/cluster": cluster}}
    return {"apiVersion": STRIMZI, "kind": "KafkaUser", "metadata": metadata, "spec": spec}


def _objects(chosen: "Mapping[str, Principal]") -> Iterator[str]:
    import orjson  # noqa: PLC0415 - only here

    for user, principal in chosen.items():
        rights = [right._asdict() for right in principal.rights]
        quota = principal.quota._asdict() if principal.quota else None
        yield orjson.dumps(
            {"principal": principal.name, "user": user, "rights": rights, "quota": quota}
        ).decode()
