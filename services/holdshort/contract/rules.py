"""What may be configured about the contract: agents, routes, leases, limits. All with their defaults."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from holdshort.contract.hashing import HashKey
from holdshort.contract.routes import RouteTable

KIB = 1024
MIB = 1024 * KIB
MINUTE = 60_000
HOUR = 60 * MINUTE
DEFAULT_AGENT = "default"


class AgentRules(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one agent's habits.

    `foreign_run_ids`: it writes run ids of its own, so only the admission echo names its runs.
    `legacy_interrupts`: it pauses by CUSTOM `on_interrupt` and a plain RUN_FINISHED (contract 2).
    `resume`: whether it is known to replay from messages, or to restore a checkpoint of its own (router 4).
    `cancel`: whether a cancel denies, or may be taken for an answer; None: by the framework (router 5).
    """

    foreign_run_ids: bool = False
    legacy_interrupts: bool = False
    resume: Literal["replay", "restore"] | None = None
    cancel: Literal["denies", "unsafe"] | None = None


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """A public Ed25519 key (32 bytes) and the person who alone holds its private half.

    Valid until `until` (ms since the epoch), by the append time of the decision; None: until it is removed.
    """

    public: bytes
    decider: str
    until: int | None = None


class TeamRules(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one team: how many questions it takes at once, its people's keys and groups."""

    max_open: int | None = None
    keys: Mapping[str, SigningKey] = {}
    groups: Mapping[str, frozenset[str]] = {}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of contract section 9; bytes unless a name says otherwise."""

    input: int = MIB
    event: int = MIB
    id: int = 512
    interrupts: int = 64
    descriptors: int = 256 * KIB
    schemas: int = 16
    payload: int = 64 * KIB
    entries: int = 512 * KIB
    tool_args: int = 64 * KIB
    remembered: int = 16
    memory_ms: int = 24 * HOUR
    open_pauses: int = 100_000
    open_bytes: int = 256 * MIB
    work: int = 25_000
    dead_letter: int = 2 * MIB


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a judgement may depend on beside state and record."""

    agents: Mapping[str, AgentRules] = msgspec.field(default_factory=lambda: {DEFAULT_AGENT: AgentRules()})
    default_agent: str | None = DEFAULT_AGENT
    routes: RouteTable = RouteTable()
    teams: Mapping[str, TeamRules] = {}
    installation: str = "holdshort"
    deadline_margin_ms: int = MINUTE
    claim_lease_ms: int = 10 * MINUTE
    max_attempts: int = 5
    partitions: int = 12
    trust_principal: frozenset[str] = frozenset()
    start_lease_ms: int = 15 * MINUTE
    run_lease_ms: int = 15 * MINUTE
    cold_resume: Literal["refuse", "forward"] = "refuse"
    outside_runs: Literal["pass", "refuse"] = "pass"
    unusable_schema: Literal["cancel_only", "accept"] = "cancel_only"
    unaddressed_reuse: Literal["accept", "refuse"] = "accept"
    limits: Limits = Limits()
    audit_key: HashKey | None = None

    def after(self, earlier: "Rules") -> "Rules":
        """These rules, with what of earlier ones is still needed: key, policies of routes that are gone."""
        return msgspec.structs.replace(
            self, routes=self.routes.after(earlier.routes), audit_key=earlier.audit_key
        )

    def agent(self, name: str) -> AgentRules:
        return self.agents.get(name, _UNCONFIGURED)

    def team(self, name: str) -> TeamRules:
        return self.teams.get(name, _PLAIN_TEAM)


class World(msgspec.Struct, frozen=True, kw_only=True):
    """The little that a judgement is told beside the record; what is used of it is kept in the state.

    `clock` is the engine's when it judges, in ms. `open_pauses` and `open_bytes` count the other threads'
    pauses of the agent in this partition.
    """

    clock: int
    open_pauses: int = 0
    open_bytes: int = 0


_UNCONFIGURED = AgentRules()
_PLAIN_TEAM = TeamRules()
