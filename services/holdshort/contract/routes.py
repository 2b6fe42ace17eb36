"""Which team an interrupt belongs to, who may answer it, how it is put to people (contract 3.3, router 1).

Matched once, when the pause opens: the gate stores route and team with each interrupt, the router the policy
of that route with its gathering. Changed routes are for new pauses.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

CORE_REASONS: Final = frozenset({"tool_call", "input_required", "confirmation"})
RESERVED_NAMESPACE: Final = "core"
UNROUTED: Final = "unrouted"
CLIENT: Final = "client"
RESERVED_TEAMS: Final = (CLIENT, UNROUTED)  # whose questions need no team that is configured
DEFAULT: Final = "default"
_SEPARATORS: Final = (":", ".")
_DAY_MS: Final = 24 * 3600 * 1000


class Policy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How the questions of a route are put to people (router 1); times are in ms.

    `deadline_ms`, `remind_ms` and `escalate_ms` count from when the question is put, `ttl_ms` from the
    opening of the pause. `answer` is the payload of `on_deadline` and `on_overflow`: answer; unset is a plain
    denial.
    `quorum` different people must agree, of each of `groups` one; `denial: counts` makes a denial one voice
    of them instead of deciding alone. `retry` is how often a batch is sent again by itself.
    """

    priority: int = 0
    ttl_ms: int = 7 * _DAY_MS
    deadline_ms: int | None = None
    remind_ms: int | None = None
    escalate_ms: int | None = None
    escalate_to: str | None = None
    on_deadline: Literal["wait", "cancel", "answer"] = "cancel"
    answer: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    quorum: int = 1
    groups: tuple[str, ...] = ()
    denial: Literal["decides", "counts"] = "decides"
    on_denial: Literal["gather", "cancel_rest"] = "gather"
    requester_may_decide: bool = True
    signature: Literal["optional", "required"] = "optional"
    retry: int = 0
    overflow_to: str | None = None
    on_overflow: Literal["cancel", "answer"] | None = None

    @property
    def needs_proof(self) -> bool:
        """Whether it matters who decides, so that a name alone is not enough (router 3)."""
        return self.quorum > 1 or bool(self.groups) or not self.requester_may_decide


PLAIN: Final = Policy()


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of the route table: what it matches, whose it is.

    Exactly one of `reason` (exact, `namespace:*`, `namespace.*` or a core reason) and `tool` or `metadata`
    (both must match if both stand there) is set.
    """

    name: str
    team: str
    answer_by: Literal["team", "anyone"] = "team"
    reason: str | None = None
    tools: frozenset[str] = frozenset()
    metadata: Mapping[str, str | int | float | bool] = {}
    policy: Policy = PLAIN


class Destination(NamedTuple):
    """Where an interrupt goes: the route's name, the team, and whether only that team may answer."""

    route: str | None
    team: str | None
    reserved: bool


class Owner(NamedTuple):
    """Whose an interrupt is, as metrics name it: its route, empty for none, and its team."""

    route: str
    team: str


def owner_of(route: str | None, team: str | None) -> Owner:
    """The owner of an interrupt; one without a team is its client's."""
    return Owner(route or "", team or CLIENT)


class RouteTable:
    """The configured routes, the most specific kind first; within a kind the first that matches."""

    def __init__(
        self,
        routes: Sequence[Route] = (),
        default_team: str | None = None,
        earlier: Mapping[str, Policy] | None = None,
    ) -> None:
        """`earlier` are policies by name of routes that are gone; they match nothing any more."""
        self.routes = tuple(routes)
        self.default_team = default_team
        self._exact: dict[str, Route] = {}
        self._namespaces: dict[str, Route] = {}
        self._core: dict[str, Route] = {}
        for route in routes:
            if route.reason is not None:
                self._kind(route.reason).setdefault(route.reason.removesuffix("*"), route)
        self._tools = [route for route in routes if route.reason is None]
        self._any_tools = any(route.tools for route in routes)
        self._longest = max(map(len, self._namespaces), default=0)
        own = {route.name: route.policy for route in reversed(self.routes)}
        self.policies = {**(earlier or {}), **own}

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Every owner that an interrupt can have by this table."""
        found = [Owner(route.name, route.team) for route in self.routes]
        if self.default_team is not None:
            found.append(Owner("default", self.default_team))
        return tuple(dict.fromkeys([*found, Owner(UNROUTED, UNROUTED), owner_of(None, None)]))

    def _kind(self, reason: str) -> dict[str, Route]:
        if reason in CORE_REASONS:
            return self._core
        return self._namespaces if reason.endswith("*") else self._exact

    def match(self, reason: str, *, tool: str | None, bound: bool, metadata: Any) -> Destination:
        """The destination of one interrupt.

        `tool` is the tool's name as the agent's own events gave it, `bound` says that the interrupt asks
        about a tool call at all. A tool that is not known while tools are routed might be anybody's, so it
        is nobody's by default: it goes to `unrouted`.
        """
        if not self.routes and self.default_team is None:
            return Destination(None, None, reserved=False)
        if reason.partition(":")[0] == RESERVED_NAMESPACE and ":" in reason:
            return self._default()
        route = self._exact.get(reason) or self._by_namespace(reason)
        if route is None and self._any_tools and tool is None and (bound or reason == "tool_call"):
            return Destination(UNROUTED, UNROUTED, reserved=True)
        if route := route or self._by_tool(tool, metadata) or self._core.get(reason):
            return Destination(route.name, route.team, route.answer_by == "team")
        return self._default()

    def policy(self, route: str | None) -> Policy | None:
        """How the questions of a route are put; None for a route that is not known here.

        What no route names (the default team, `unrouted`, what is asked beside reserved questions) is plain.
        """
        if route in self.policies:
            return self.policies[route]
        return PLAIN if route in (None, UNROUTED, DEFAULT) else None

    def after(self, earlier: "RouteTable") -> "RouteTable":
        """This table, which still knows how the questions of that one's routes are put.

        A gate may have matched by the earlier table what the router sees only under this one.
        """
        return RouteTable(self.routes, self.default_team, earlier.policies)

    def _by_namespace(self, reason: str) -> Route | None:
        """The longest namespace: the reason up to its last separator, then shorter."""
        for end in range(min(len(reason), self._longest), 0, -1):
            if reason[end - 1] in _SEPARATORS and (route := self._namespaces.get(reason[:end])):
                return route
        return None

    def _by_tool(self, tool: str | None, metadata: Any) -> Route | None:
        members = metadata if isinstance(metadata, dict) else {}
        for route in self._tools:
            if route.tools and tool not in route.tools:
                continue
            if all(_equal(members.get(name), value) for name, value in route.metadata.items()):
                return route
        return None

    def _default(self) -> Destination:
        if self.default_team is None:
            return Destination(UNROUTED, UNROUTED, reserved=True)
        return Destination(DEFAULT, self.default_team, reserved=True)


def _equal(one: object, other: object) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other
