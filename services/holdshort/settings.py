"""Settings: the connection and wiring from the environment, agents, teams and routes from one YAML file.

`KAFKA_*` names the cluster, `HOLDSHORT_*` everything else; a `HOLDSHORT_*` variable that is not known is an
error, for a misspelt one would silently do nothing. Units stand in values (`15m`, `64KiB`).
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from holdshort.contract.routes import RESERVED_NAMESPACE, Route, RouteTable
from holdshort.contract.rules import AgentRules, Limits, Rules

NAME: Final = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"
RESERVED_TEAMS: Final = ("client", "unrouted")
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

Name = Annotated[str, Field(pattern=NAME)]


M = TypeVar("M", bound=BaseModel)


class MendSettingsError(ValueError):
    """Something in the environment or the configuration file; each line says what and where."""


def _duration(value: Any) -> int:
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a duration is a number and a unit: 500ms, 30s, 15m, 24h, 7d")
    return int(match[1]) * _UNITS[match[2]]


DurationMs = Annotated[
    int,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(ms|s|m|h|d)$", "examples": ["15m", "24h"]}),
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentConfig(_Model):
    """One agent."""

    foreign_run_ids: bool = Field(False, description="It writes run ids of its own; only the echo counts.")
    legacy_interrupts: bool = Field(False, description="It pauses by CUSTOM on_interrupt.")
    resume: Literal["replay", "restore"] | None = Field(
        None,
        description="`replay`: it goes on from messages alone, so it is not resumed with incomplete ones.",
    )


class TeamConfig(_Model):
    """One team; what there is to say of it comes with routing's deadlines and signatures."""


class RouteConfig(_Model):
    """One route: what it matches (`reason`, or `tool` and `metadata`), and whose it is."""

    name: str | None = Field(None, max_length=60)
    reason: str | None = Field(None, description="Exact, `namespace:*`, `namespace.*`, or a core reason.")
    tool: Annotated[
        list[str],
        BeforeValidator(lambda v: [v] if isinstance(v, str) else v),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
    ] = []
    metadata: dict[str, str | bool | int | float] = {}
    team: Name
    answer_by: Literal["team", "anyone"] = "team"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.reason is None) == (not self.tool and not self.metadata):
            raise ValueError("a route matches either by reason, or by tool and metadata")
        if self.reason is not None and self.reason.startswith(f"{RESERVED_NAMESPACE}:"):
            raise ValueError(f"the namespace {RESERVED_NAMESPACE} is reserved")
        if self.reason is not None and "*" in self.reason.removesuffix("*"):
            raise ValueError("a * stands only at the end of a reason")
        if self.reason is not None and self.reason.endswith("*") and self.reason[-2:-1] not in (":", "."):
            raise ValueError("a namespace ends with a separator: `payments:*` or `payments.*`")
        return self

    def route(self) -> Route:
        default = self.reason or ",".join(self.tool) or ",".join(self.metadata)
        return Route(
            name=self.name or default,
            team=self.team,
            answer_by=self.answer_by,
            reason=self.reason,
            tools=frozenset(self.tool),
            metadata=self.metadata,
        )


class LimitsConfig(_Model):
    """The limits of what one record may hold and what is kept of a thread."""

    input: ByteSize | None = None
    event: ByteSize | None = None
    interrupts: int | None = Field(None, ge=1, le=1024)
    descriptors: ByteSize | None = None
    payload: ByteSize | None = None
    entries: ByteSize | None = None
    tool_args: ByteSize | None = None
    remembered: int | None = Field(None, ge=1, le=256)
    memory: DurationMs | None = None
    open_pauses: int | None = Field(None, ge=1)
    open_bytes: ByteSize | None = None

    def limits(self) -> Limits:
        given = {name: value for name, value in self.model_dump().items() if value is not None}
        if "memory" in given:
            given["memory_ms"] = given.pop("memory")
        return Limits(**{name: int(value) for name, value in given.items()})


class Config(_Model):
    """The configuration file: agents, teams, routes, and how strict the gate is."""

    agents: dict[Name, AgentConfig] = Field(
        default_factory=lambda: {"default": AgentConfig.model_construct()}
    )
    default_agent: Name | None = Field(
        None, description="For inputs that name none; `default`, if there is one."
    )
    teams: dict[Name, TeamConfig] = {}
    default_team: Name | None = Field(None, description="For what no route matches; else `unrouted`.")
    routes: list[RouteConfig] = []
    trust_principal: list[str] = Field([], description="Topics whose writers authenticate people.")
    start_lease: DurationMs = 15 * 60_000
    run_lease: DurationMs = 15 * 60_000
    cold_resume: Literal["refuse", "forward"] = "refuse"
    outside_runs: Literal["pass", "refuse"] = "pass"
    unusable_schema: Literal["cancel_only", "accept"] = "cancel_only"
    unaddressed_reuse: Literal["accept", "refuse"] = "accept"
    limits: LimitsConfig = LimitsConfig.model_construct()

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        known = {*self.teams, *RESERVED_TEAMS}
        for team in [route.team for route in self.routes] + [self.default_team or "client"]:
            if team not in known:
                raise ValueError(f"team {team!r} is routed to but not listed under teams")
        if reserved := set(self.teams) & set(RESERVED_TEAMS):
            raise ValueError(f"team names reserved for what they say: {', '.join(sorted(reserved))}")
        if self.default_agent is not None and self.default_agent not in self.agents:
            raise ValueError(f"default_agent {self.default_agent!r} is not listed under agents")
        return self

    def rules(self, partitions: int) -> Rules:
        default = self.default_agent or ("default" if "default" in self.agents else None)
        routes = RouteTable([route.route() for route in self.routes], self.default_team)
        return Rules(
            agents={name: AgentRules(**agent.model_dump()) for name, agent in self.agents.items()},
            default_agent=default,
            routes=routes,
            partitions=partitions,
            trust_principal=frozenset(self.trust_principal),
            start_lease_ms=self.start_lease,
            run_lease_ms=self.run_lease,
            cold_resume=self.cold_resume,
            outside_runs=self.outside_runs,
            unusable_schema=self.unusable_schema,
            unaddressed_reuse=self.unaddressed_reuse,
            limits=self.limits.limits(),
        )


def config_schema() -> dict[str, Any]:
    """The JSON Schema of the configuration file; names that cannot be topics do not fit."""
    schema = Config.model_json_schema()
    for names in ("agents", "teams"):
        schema["properties"][names]["additionalProperties"] = False
    return schema


class KafkaSettings(BaseSettings):
    """How to reach the cluster (`KAFKA_*`)."""

    model_config = SettingsConfigDict(env_prefix="KAFKA_", frozen=True)

    bootstrap_servers: str = "127.0.0.1:9092"
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    sasl_password_file: Path | None = None
    ssl_ca_file: Path | None = None
    ssl_cert_file: Path | None = None
    ssl_key_file: Path | None = None

    def password(self) -> str | None:
        """The password, from its file if one is named (so that it can be rotated)."""
        if self.sasl_password_file is not None:
            return self.sasl_password_file.read_text().rstrip("\n")
        return self.sasl_password.get_secret_value() if self.sasl_password else None


class Settings(BaseSettings):
    """The wiring of one process (`HOLDSHORT_*`)."""

    model_config = SettingsConfigDict(env_prefix="HOLDSHORT_", frozen=True)

    config: Path | None = Field(None, description="The YAML file with agents, teams and routes.")
    prefix: str = Field("holdshort.", pattern=r"^[a-z0-9.-]*$", description="Before every topic and group.")
    partitions: int = Field(12, ge=1, le=1024, description="Of every topic keyed by thread; fixed for ever.")
    lanes: int = Field(4, ge=1, le=1024, description="Transactional units of a service; fixed for ever.")
    replication: int = Field(3, ge=1, description="Replication factor of topics that are made.")
    min_isr: int = Field(2, ge=1, description="min.insync.replicas of topics that are made.")
    instance: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Names a process across restarts, as a StatefulSet its pods; its lanes then wait for it.",
    )
    management_host: str = "127.0.0.1"
    management_port: int = Field(8080, ge=0, le=65535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @model_validator(mode="after")
    def _lanes_share_partitions(self) -> Self:
        if self.lanes > self.partitions:
            raise ValueError("there cannot be more lanes than partitions")
        return self


def load_settings(given: Mapping[str, str] | None = None) -> tuple[KafkaSettings, Settings, Config]:
    """Everything a service is told; `given` stands before the environment. Raises MendSettingsError."""
    given = given or {}
    known = {f"HOLDSHORT_{name}".upper() for name in Settings.model_fields} | {"HOLDSHORT_TEST_PROFILE"}
    ours = (name for name in {*os.environ, *given} if name.startswith("HOLDSHORT_"))
    if unknown := sorted(name for name in ours if name not in known):
        raise MendSettingsError("\n".join(f"{name}: there is no such setting" for name in unknown))
    try:
        kafka = KafkaSettings(**_fields(KafkaSettings, "KAFKA_", given))
        settings = Settings(**_fields(Settings, "HOLDSHORT_", given))
    except ValidationError as error:
        raise MendSettingsError(
            _explained(error, {"KafkaSettings": "KAFKA_", "Settings": "HOLDSHORT_"})
        ) from error
    return kafka, settings, load_config(settings.config)


def _fields(model: type[BaseSettings], prefix: str, given: Mapping[str, str]) -> dict[str, Any]:
    names = {prefix + name.upper(): name for name in model.model_fields}
    return {name: given[variable] for variable, name in names.items() if variable in given}


def load_config(path: Path | None) -> Config:
    """The configuration file; without one, an agent `default` and no teams. Raises MendSettingsError."""
    if path is None:
        return Config()
    try:
        raw = yaml.safe_load(path.read_text())
    except OSError as error:
        raise MendSettingsError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise MendSettingsError(f"{path}: not YAML: {error}") from error
    if not isinstance(raw, Mapping):
        raise MendSettingsError(f"{path}: must be a mapping with agents, teams and routes")
    return validated(Config, raw, str(path))


def validated(model: type[M], raw: Any, where: str) -> M:
    """A model from raw values. Raises MendSettingsError, each line of which begins with `where`."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise MendSettingsError(_explained(error, {}, f"{where}: ")) from error


def _explained(error: ValidationError, prefixes: Mapping[str, str], where: str = "") -> str:
    """One line a mistake: where it is and what to write; never the value, which may be a secret."""
    prefix = prefixes.get(error.title, "")
    lines = []
    for one in error.errors(include_input=False, include_url=False):
        place = ".".join(str(part) for part in one["loc"])
        name = prefix + place.upper() if prefix else place
        lines.append(f"{where}{name or 'settings'}: {one['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)
