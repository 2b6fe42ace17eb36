"""Which team an interrupt belongs to, and who may answer it (contract 3.3, router 1).

Matched once, when the pause opens; what it gives is stored with each interrupt.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

CORE_REASONS: Final = frozenset({"tool_call", "input_required", "confirmation"})
RESERVED_NAMESPACE: Final = "core"
UNROUTED: Final = "unrouted"
CLIENT: Final = "client"
_SEPARATORS: Final = (":", ".")


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


class Destination(NamedTuple):
    """Where an interrupt goes: the route's name, the team, and whether only that team may answer."""

    route: str | None
    team: str | None
    reserved: bool


class RouteTable:
    """The configured routes, the most specific kind first; within a kind the first that matches."""

    def __init__(self, routes: Sequence[Route] = (), default_team: str | None = None) -> None:
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
        return Destination("default", self.default_team, reserved=True)


def _equal(one: object, other: object) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other
