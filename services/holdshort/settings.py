"""Settings: the connection and wiring from the environment, agents, teams and routes from one YAML file.

`KAFKA_*` names the cluster, `HOLDSHORT_*` everything else; a `HOLDSHORT_*` variable that is not known is an
error, for a misspelt one would silently do nothing. Units stand in values (`15m`, `64KiB`).
"""

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from msgspec.structs import replace
from pydantic import (
    AfterValidator,
    BaseModel,
    ByteSize,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from holdshort.contract.hashing import HashKey
from holdshort.contract.routes import RESERVED_TEAMS, RouteTable
from holdshort.contract.rules import KIB, MIB, AgentRules, Limits, Rules
from holdshort.mistakes import explained, parsed, unknown, unread, variables
from holdshort.routing import NAME, DurationMs, Model, Name, RouteConfig, TeamConfig, mistakes

__all__ = ("NAME", "RouteConfig", "TeamConfig", "explained")

SHORTEST_KEY: Final = 16  # characters

M = TypeVar("M", bound=BaseModel)


class MendSettingsError(ValueError):
    """Something in the environment or the configuration file; each line says what and where."""


def _of_a_record(size: ByteSize) -> ByteSize:
    if not KIB <= size <= 2 * MIB:
        raise ValueError("must be between 1KiB and 2MiB, the most that a record of our topics may have")
    return size


def _lease(milliseconds: int) -> int:
    if milliseconds < 1000:
        raise ValueError("must be at least 1s")
    return milliseconds


def _kept(size: ByteSize) -> ByteSize:
    if size < KIB:
        raise ValueError("must be at least 1KiB")
    return size


RecordSize = Annotated[ByteSize, AfterValidator(_of_a_record)]
KeptSize = Annotated[ByteSize, AfterValidator(_kept)]
Lease = Annotated[DurationMs, AfterValidator(_lease)]


class AgentConfig(Model):
    """One agent."""

    foreign_run_ids: bool = Field(False, description="It writes run ids of its own; only the echo counts.")
    legacy_interrupts: bool = Field(False, description="It pauses by CUSTOM on_interrupt.")
    resume: Literal["replay", "restore"] | None = Field(
        None,
        description="`replay`: it goes on from messages alone, so it is not resumed with incomplete ones.",
    )
    cancel: Literal["denies", "unsafe"] | None = Field(
        None,
        description="Whether it may take a cancel for a yes, so that nothing is cancelled by itself; "
        "by default LangGraph and CrewAI, by their reasons.",
    )


class LimitsConfig(Model):
    """The limits of what one record may hold and what is kept of a thread."""

    input: RecordSize | None = None
    event: RecordSize | None = None
    interrupts: int | None = Field(None, ge=1, le=1024)
    descriptors: RecordSize | None = None
    payload: RecordSize | None = None
    entries: RecordSize | None = None
    tool_args: RecordSize | None = None
    remembered: int | None = Field(None, ge=1, le=256)
    memory: DurationMs | None = None
    open_pauses: int | None = Field(None, ge=1)
    open_bytes: KeptSize | None = None

    def limits(self) -> Limits:
        given = {name: value for name, value in self.model_dump().items() if value is not None}
        if "memory" in given:
            given["memory_ms"] = given.pop("memory")
        return Limits(**{name: int(value) for name, value in given.items()})


class AuditConfig(Model):
    """What the audit holds."""

    hash_ids: bool = Field(
        False,
        description="Thread ids and people as keyed hashes; the key is HOLDSHORT_AUDIT_KEY_FILE.",
    )


class Config(Model):
    """The configuration file: agents, teams, routes, and how strict the gate is."""

    agents: dict[Name, AgentConfig] = Field(
        default_factory=lambda: {"default": AgentConfig.model_construct()}
    )
    default_agent: Name | None = Field(
        None, description="For inputs that name none; `default`, if there is one."
    )
    teams: dict[Name, TeamConfig] = Field({})
    default_team: Name | None = Field(None, description="For what no route matches; else `unrouted`.")
    routes: list[RouteConfig] = Field([])
    trust_principal: list[str] = Field([], description="Topics whose writers authenticate people.")
    installation: str = Field(
        "holdshort", pattern=r"\S", max_length=128, description="Its name in signed decisions (`aud`)."
    )
    deadline_margin: DurationMs = Field(
        60_000, description="Answers must be there so long before expiry; at least 3 s."
    )
    claim_lease: Lease = Field(10 * 60_000, description="How long a claim holds.")
    max_attempts: int = Field(
        5,
        ge=1,
        le=100,
        description="Runs that get an answer and do not settle the pause; then it is given up.",
    )
    start_lease: Lease = 15 * 60_000
    run_lease: Lease = 15 * 60_000
    cold_resume: Literal["refuse", "forward"] = "refuse"
    outside_runs: Literal["pass", "refuse"] = "pass"
    unusable_schema: Literal["cancel_only", "accept"] = "cancel_only"
    unaddressed_reuse: Literal["accept", "refuse"] = "accept"
    audit: AuditConfig = AuditConfig.model_construct()
    limits: LimitsConfig = LimitsConfig.model_construct()

    @property
    def asked_teams(self) -> tuple[str, ...]:
        """Every team that questions may be put to: those of the file, and those that are always there."""
        return (*self.teams, *RESERVED_TEAMS)

    @field_validator("agents")
    @classmethod
    def _somebody_is_there(cls, agents: dict[Name, AgentConfig]) -> dict[Name, AgentConfig]:
        if not agents:
            raise ValueError("must name one agent at least; left out, there is one that is called default")
        return agents

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for team in [team for route in self.routes for team in route.teams] + [self.default_team or "client"]:
            if team not in self.asked_teams:
                raise ValueError(f"team {team!r} is routed to but not listed under teams")
        if reserved := set(self.teams) & set(RESERVED_TEAMS):
            raise ValueError(f"team names reserved for what they say: {', '.join(sorted(reserved))}")
        if self.default_agent is not None and self.default_agent not in self.agents:
            raise ValueError(f"default_agent {self.default_agent!r} is not listed under agents")
        if found := list(mistakes(self.routes, self.teams, self.trust_principal)):
            raise ValueError("; ".join(dict.fromkeys(found)))
        return self

    def rules(self, partitions: int) -> Rules:
        default = self.default_agent or ("default" if "default" in self.agents else None)
        routes = RouteTable([route.route() for route in self.routes], self.default_team)
        return Rules(
            agents={name: AgentRules(**agent.model_dump()) for name, agent in self.agents.items()},
            default_agent=default,
            routes=routes,
            teams={name: team.rules() for name, team in self.teams.items()},
            installation=self.installation,
            deadline_margin_ms=self.deadline_margin,
            claim_lease_ms=self.claim_lease,
            max_attempts=self.max_attempts,
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
    """How to reach the cluster (`KAFKA_*`). Secrets are best kept in files, which are read at every start."""

    model_config = SettingsConfigDict(env_prefix="KAFKA_", frozen=True, hide_input_in_errors=True)

    bootstrap_servers: str = Field("127.0.0.1:9092", description="host:port of some brokers, with commas.")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "SCRAM-SHA-512", description="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."
    )
    sasl_username: str | None = Field(None, description="Who we are to Kafka.")
    sasl_password: SecretStr | None = Field(None, description="Better in a file.")
    sasl_password_file: Path | None = Field(None, description="Holds the password; read at every start.")
    sasl_oauth_token_file: Path | None = Field(
        None, description="The bearer token; read again for every new connection."
    )
    ssl_ca_file: Path | None = Field(None, description="PEM; without it, the system's authorities.")
    ssl_cert_file: Path | None = Field(None, description="PEM: our certificate and its chain.")
    ssl_key_file: Path | None = Field(
        None, description="PEM; without it, the key is in the certificate's file."
    )
    ssl_key_password: SecretStr | None = Field(None, description="Of an encrypted key; better in a file.")
    ssl_key_password_file: Path | None = Field(None, description="Holds the key's password.")

    @field_validator("bootstrap_servers")
    @classmethod
    def _names_a_server(cls, servers: str) -> str:
        if not all(server.strip() for server in servers.split(",")):
            raise ValueError("is empty, or a name in it is: host:port of one broker or more, with commas")
        return servers

    @model_validator(mode="after")
    def _says_who_we_are(self) -> Self:
        if self.ssl_key_file is not None and self.ssl_cert_file is None:
            raise ValueError("KAFKA_SSL_KEY_FILE is of no use without KAFKA_SSL_CERT_FILE")
        if not self.security_protocol.startswith("SASL"):
            return self
        needed = f"{self.security_protocol} by {self.sasl_mechanism} needs"
        if self.sasl_mechanism == "OAUTHBEARER":
            if self.sasl_oauth_token_file is None:
                raise ValueError(f"{needed} KAFKA_SASL_OAUTH_TOKEN_FILE")
        elif not self.sasl_username or (self.sasl_password is None and self.sasl_password_file is None):
            raise ValueError(
                f"{needed} KAFKA_SASL_USERNAME, and KAFKA_SASL_PASSWORD_FILE or KAFKA_SASL_PASSWORD"
            )
        return self

    def password(self) -> str | None:
        """The password, from its file if one is named: so it can be rotated. Raises MendSettingsError."""
        return _secret(self.sasl_password, self.sasl_password_file, "KAFKA_SASL_PASSWORD_FILE")

    def key_password(self) -> str | None:
        """What the private key is encrypted with, likewise. Raises MendSettingsError."""
        return _secret(self.ssl_key_password, self.ssl_key_password_file, "KAFKA_SSL_KEY_PASSWORD_FILE")


def _secret(given: SecretStr | None, file: Path | None, variable: str) -> str | None:
    if file is None:
        return given.get_secret_value() if given else None
    return read_secret(file, variable)


def read_secret(file: Path, variable: str) -> str:
    """The text of a file without the line end behind it. Raises MendSettingsError, naming `variable`."""
    try:
        secret = file.read_text("utf-8").rstrip("\r\n")
    except OSError as error:
        raise MendSettingsError(f"{variable}: {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise MendSettingsError(f"{variable}: {file} is not text") from None
    if not secret:
        raise MendSettingsError(f"{variable}: {file} is empty")
    return secret


class Settings(BaseSettings):
    """The wiring of one process (`HOLDSHORT_*`)."""

    model_config = SettingsConfigDict(env_prefix="HOLDSHORT_", frozen=True, hide_input_in_errors=True)

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
    audit_key: SecretStr | None = Field(
        None, description="Hashes ids in the audit (`audit.hash_ids`); better in a file."
    )
    audit_key_file: Path | None = Field(None, description="Holds that key; read at every start.")
    management_host: str = Field("127.0.0.1", description="Where health and metrics are served.")
    management_port: int = Field(8080, ge=0, le=65535, description="And on which port; 0 is any free one.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="DEBUG, INFO, WARNING or ERROR."
    )

    @model_validator(mode="after")
    def _lanes_share_partitions(self) -> Self:
        if self.lanes > self.partitions:
            raise ValueError(
                "there cannot be more lanes than partitions (HOLDSHORT_LANES, HOLDSHORT_PARTITIONS)"
            )
        return self

    def hash_key(self) -> HashKey | None:
        """The key for ids in the audit, if one is given. Raises MendSettingsError."""
        key = _secret(self.audit_key, self.audit_key_file, "HOLDSHORT_AUDIT_KEY_FILE")
        if key is None:
            return None
        if len(key) < SHORTEST_KEY:
            raise MendSettingsError(
                f"HOLDSHORT_AUDIT_KEY_FILE: a key has {SHORTEST_KEY} characters or more: openssl rand -hex 32"
            )
        return HashKey(key.encode())


def rules_of(settings: Settings, config: Config) -> Rules:
    """The rules by which a service judges. Raises MendSettingsError."""
    key = settings.hash_key() if config.audit.hash_ids else None
    if config.audit.hash_ids and key is None:
        raise MendSettingsError(
            "audit.hash_ids needs a key: HOLDSHORT_AUDIT_KEY_FILE, the same for gatekeeper and router"
        )
    return replace(config.rules(settings.partitions), audit_key=key)


def load_settings(given: Mapping[str, str] | None = None) -> tuple[KafkaSettings, Settings, Config]:
    """Everything a service is told; `given` stands before the environment. Raises MendSettingsError."""
    given = given or {}
    tell_what_is_unread({*os.environ, *given})
    if found := list(unknown({*os.environ, *given}, _known() | {"HOLDSHORT_TEST_PROFILE"})):
        raise MendSettingsError("\n".join(found))
    try:
        kafka = KafkaSettings(**_fields(KafkaSettings, "KAFKA_", given))
        settings = Settings(**_fields(Settings, "HOLDSHORT_", given))
    except ValidationError as error:
        raise MendSettingsError(explained(error)) from error
    return kafka, settings, load_config(settings.config)


def _known() -> set[str]:
    return variables({"KAFKA_": KafkaSettings.model_fields, "HOLDSHORT_": Settings.model_fields})


_told: Final[set[str]] = set()


def tell_what_is_unread(environment: Collection[str]) -> None:
    """Say on stderr, once a process, which variables look like ours and would silently do nothing."""
    for sentence in unread(environment, _known()):
        if sentence not in _told:
            _told.add(sentence)
            sys.stderr.write(f"holdshort: {sentence}\n")


def _fields(model: type[BaseSettings], prefix: str, given: Mapping[str, str]) -> dict[str, Any]:
    names = {prefix + name.upper(): name for name in model.model_fields}
    return {name: given[variable] for variable, name in names.items() if variable in given}


def load_config(path: Path | None) -> Config:
    """The configuration file; without one, an agent `default` and no teams. Raises MendSettingsError."""
    return Config() if path is None else config_of(content_of(path), path)


def content_of(path: Path) -> bytes:
    """What stands in the configuration file now. Raises MendSettingsError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise MendSettingsError(f"{path}: {error.strerror}") from error


def config_of(content: bytes, path: Path) -> Config:
    """The configuration that a file with this content holds. Raises MendSettingsError."""
    try:
        raw = parsed(content.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise MendSettingsError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except ValueError as error:
        raise MendSettingsError(str(error)) from error
    if not isinstance(raw, Mapping):
        raise MendSettingsError(f"{path}: must be a mapping with agents, teams and routes")
    return validated(Config, raw, str(path))


def validated(model: type[M], raw: Any, where: str) -> M:
    """A model from raw values. Raises MendSettingsError, each line of which begins with `where`."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise MendSettingsError(explained(error, f"{where}: ")) from error
