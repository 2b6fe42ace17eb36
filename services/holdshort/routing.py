"""Teams and routes as the configuration file has them, and what of them cannot work together.

A rule that asks who decides needs somebody who proves it: otherwise one service account could sign with two
names (router 3). So such a rule without a proof is a mistake here, not a surprise later.
"""

import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self

import msgspec
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from holdshort.contract.canon import canonical
from holdshort.contract.routes import DEFAULT, RESERVED_NAMESPACE, UNROUTED, Policy, Route
from holdshort.contract.rules import SigningKey, TeamRules

NAME: Final = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"
DAY_MS: Final = 86_400_000
LONGEST_TTL_MS: Final = 13 * DAY_MS  # the context of a pause lies in topics that are kept a day longer
LONGEST_MS: Final = 366 * DAY_MS
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}

Name = Annotated[str, Field(pattern=NAME)]
Person = Annotated[str, Field(pattern=r"\S", max_length=512)]


def _duration(value: Any) -> int:
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a duration is a number and a unit: 500ms, 30s, 15m, 24h, 7d")
    duration = int(match[1]) * _UNITS[match[2]]
    if duration > LONGEST_MS:
        raise ValueError("a duration is at most 366d")
    return duration


DurationMs = Annotated[
    int,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(ms|s|m|h|d)$", "examples": ["15m", "24h"]}),
]


class Model(BaseModel):
    """A part of the configuration file; what it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KeyConfig(Model):
    """A public key, and the one person who holds its private half."""

    key: str = Field(
        description="The Ed25519 public key: PEM, as `openssl pkey -in KEY.pem -pubout` prints it, or base64."
    )
    decider: Person = Field(description="Whose it is; stands in signed decisions as `decidedBy`.")
    until: datetime | None = Field(None, description="Decisions that come later are not taken any more.")

    @field_validator("key")
    @classmethod
    def _is_a_key(cls, key: str) -> str:
        public_bytes(key)
        return key

    def rules(self) -> SigningKey:
        until = None
        if self.until is not None:
            aware = self.until if self.until.tzinfo else self.until.replace(tzinfo=UTC)
            until = int(aware.timestamp() * 1000)
        return SigningKey(public=public_bytes(self.key), decider=self.decider, until=until)


_PEM_PREFIX: Final = bytes.fromhex("302a300506032b6570032100")  # SubjectPublicKeyInfo of Ed25519 (RFC 8410)


def public_bytes(text: str) -> bytes:
    """The 32 bytes of an Ed25519 public key. Raises ValueError."""
    pem = "-----BEGIN PUBLIC KEY-----" in text
    body = "".join((text.partition("KEY-----")[2].partition("-----END")[0] if pem else text).split())
    padded = body + "=" * (-len(body) % 4)
    try:
        raw = urlsafe_b64decode(padded) if "-" in body or "_" in body else b64decode(padded, validate=True)
    except ValueError:
        raw = b""
    if len(raw) > 32 and raw.startswith(_PEM_PREFIX):
        raw = raw.removeprefix(_PEM_PREFIX)
    if len(raw) != 32:
        raise ValueError("an Ed25519 public key is 32 bytes in base64, or PEM")
    return raw


class TeamConfig(Model):
    """One team: how much it takes at once, and how its people are known."""

    max_open: int | None = Field(
        None, ge=1, description="Open questions at once, divided over the partitions; more go elsewhere."
    )
    keys: dict[Annotated[str, Field(pattern=r"\S", max_length=128)], KeyConfig] = Field(
        {}, description="Public keys by their key id, for signed decisions; two of a person to rotate one."
    )
    groups: dict[Name, list[Person]] = Field({}, description="Groups of its people, for quorums.")

    @field_validator("keys")
    @classmethod
    def _a_key_is_one_persons(cls, keys: dict[str, KeyConfig]) -> dict[str, KeyConfig]:
        """Else one person could sign for two, and be a quorum alone."""
        owners: dict[bytes, str] = {}
        for name, key in keys.items():
            owner = owners.setdefault(public_bytes(key.key), key.decider)
            if owner != key.decider:
                raise ValueError(f"{name} is the key of {owner}, too: a key is one person's")
        return keys

    def rules(self) -> TeamRules:
        return TeamRules(
            max_open=self.max_open,
            keys={name: key.rules() for name, key in self.keys.items()},
            groups={name: frozenset(people) for name, people in self.groups.items()},
        )


class QuorumConfig(Model):
    """How many different people must answer alike, and of which groups one each."""

    need: int = Field(2, ge=1, le=16)
    groups: list[Name] = Field([], max_length=8)
    denial: Literal["decides", "counts"] = Field(
        "decides", description="`decides`: one denial is enough. `counts`: it needs the quorum, too."
    )


class RouteConfig(Model):
    """One route: what it matches (`reason`, or `tool` and `metadata`), whose it is, how it is put to them."""

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
    priority: int = Field(0, ge=-100, le=100, description="Shown in the approval; higher goes first.")
    ttl: DurationMs = Field(7 * DAY_MS, description="What has no deadline ends after so long.")
    deadline: DurationMs | None = Field(None, description="Else the interrupt's `expiresAt` less a margin.")
    remind_after: DurationMs | None = None
    escalate_after: DurationMs | None = None
    escalate_to: Name | None = None
    on_deadline: Literal["wait", "cancel", "answer"] = Field(
        "cancel", description="`wait`: until an interrupt of the pause expires, then cancel."
    )
    answer: Any = Field(None, description="The payload of `answer`; without it, a plain denial.")
    quorum: int | QuorumConfig = Field(1, description="So many different people must answer alike.")
    on_denial: Literal["gather", "cancel_rest"] = "gather"
    requester_may_decide: bool = True
    signature: Literal["optional", "required"] = "optional"
    retry: int = Field(0, ge=0, le=100, description="Send a batch again by itself, if nothing was attempted.")
    overflow_to: Name | None = Field(None, description="Whom to ask when the team has all it takes.")
    on_overflow: Literal["cancel", "answer"] | None = None

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

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.escalate_after is None) != (self.escalate_to is None):
            raise ValueError("escalate_after and escalate_to need each other")
        if self.team in (self.escalate_to, self.overflow_to):
            raise ValueError("escalate_to and overflow_to name another team")
        if "answer" in self.model_fields_set and "answer" not in (self.on_deadline, self.on_overflow):
            raise ValueError("answer is of no use without `on_deadline: answer` or `on_overflow: answer`")
        if not _is_json(self.answer) or canonical(self.answer) is None:
            raise ValueError("answer is a JSON value; quote words such as yes, no and on")
        if not 1000 <= self.ttl <= LONGEST_TTL_MS:
            raise ValueError("ttl is between 1s and 13d: topics are kept for 14 days")
        if self.name in (DEFAULT, UNROUTED):
            raise ValueError(f"the name {self.name} is reserved for what no route matches")
        policy = self.policy()
        if self.answer_by == "anyone" and (policy.needs_proof or policy.signature == "required"):
            raise ValueError("answer_by: anyone would go round quorum, requester_may_decide and signature")
        return self

    @property
    def teams(self) -> tuple[str, ...]:
        """Every team that may be asked."""
        return tuple(one for one in (self.team, self.escalate_to, self.overflow_to) if one is not None)

    @property
    def matches(self) -> tuple[Any, ...]:
        """Equal for routes of which the second could never be used."""
        return self.reason, frozenset(self.tool), frozenset((k, type(v), v) for k, v in self.metadata.items())

    @property
    def called(self) -> str:
        return self.name or self.reason or ",".join(self.tool) or ",".join(self.metadata)

    def policy(self) -> Policy:
        quorum = self.quorum if isinstance(self.quorum, QuorumConfig) else QuorumConfig(need=self.quorum)
        given = "answer" in self.model_fields_set
        return Policy(
            priority=self.priority,
            ttl_ms=self.ttl,
            deadline_ms=self.deadline,
            remind_ms=self.remind_after,
            escalate_ms=self.escalate_after,
            escalate_to=self.escalate_to,
            on_deadline=self.on_deadline,
            answer=msgspec.Raw(msgspec.json.encode(self.answer)) if given else msgspec.UNSET,
            quorum=quorum.need,
            groups=tuple(quorum.groups),
            denial=quorum.denial,
            on_denial=self.on_denial,
            requester_may_decide=self.requester_may_decide,
            signature=self.signature,
            retry=self.retry,
            overflow_to=self.overflow_to,
            on_overflow=self.on_overflow,
        )

    def route(self) -> Route:
        return Route(
            name=self.called,
            team=self.team,
            answer_by=self.answer_by,
            reason=self.reason,
            tools=frozenset(self.tool),
            metadata=self.metadata,
            policy=self.policy(),
        )


def _is_json(value: Any) -> bool:
    """Whether YAML has read what JSON can say: names that are text."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(one) for name, one in value.items())
    if isinstance(value, list):
        return all(_is_json(one) for one in value)
    return value is None or isinstance(value, str | int | float)


# -- what cannot work together ------------------------------------------------------------------------------


def mistakes(
    routes: Sequence[RouteConfig], teams: Mapping[str, TeamConfig], trusted: Collection[str]
) -> Iterator[str]:
    """What of these routes and teams could not be kept, one sentence each; `trusted` are topics."""
    policies: dict[str, Policy] = {}
    places: dict[tuple[Any, ...], int] = {}
    for place, route in enumerate(routes):
        first = places.setdefault(route.matches, place)
        if routes[first] != route:
            yield f"routes[{place}] matches the same as routes[{first}] and says something else; one must go"
        if policies.setdefault(route.called, route.policy()) != route.policy():
            yield f"two routes are called {route.called}, and say different things"
        for team in route.teams:
            yield from _unprovable(route, team, teams.get(team, TeamConfig()), trusted)
        if not route.requester_may_decide and "inputs" not in trusted:
            yield (
                f"route {route.called}: requester_may_decide: false needs to know who asks: "
                "add inputs to trust_principal"
            )


def _unprovable(route: RouteConfig, team: str, known: TeamConfig, trusted: Collection[str]) -> Iterator[str]:
    policy, authenticated = route.policy(), f"decisions.{team}" in trusted
    if policy.signature == "required" and not known.keys:
        yield f"route {route.called}: signature: required needs keys of team {team}"
    if policy.needs_proof and not authenticated and not known.keys:
        yield (
            f"route {route.called}: quorum and requester_may_decide need to know who decides: "
            f"add decisions.{team} to trust_principal, or keys to team {team}"
        )
    people = {key.decider for key in known.keys.values()}
    if known.keys and not authenticated and len(people) < max(policy.quorum, len(policy.groups)):
        yield f"route {route.called}: team {team} has keys of fewer people than the quorum needs"
    for group in policy.groups:
        if not known.groups.get(group):
            yield f"route {route.called}: team {team} has nobody in group {group}"
