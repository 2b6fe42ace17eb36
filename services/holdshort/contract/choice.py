"""Why an interrupt goes where it goes: every route that matches it, in the order in which they are asked.

The destination is `RouteTable.match`'s own; what stands here only says how it came about.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, NamedTuple

from holdshort.contract.routes import (
    CORE_REASONS,
    RESERVED_NAMESPACE,
    UNROUTED,
    Destination,
    Route,
    RouteTable,
)


class Kind(StrEnum):
    """What a route matches by; the most specific kind goes first (router 1)."""

    REASON = "exact reason"
    NAMESPACE = "namespace"
    TOOL = "tool and metadata"
    CORE = "core reason"


ORDER: Final = tuple(Kind)
_RESERVED: Final = f"the namespace {RESERVED_NAMESPACE} is reserved: no route is asked"
_NO_TOOL: Final = (
    "the name of the tool is not known, and tools are routed: it might be anybody's, so it is nobody's"
)
_NOTHING: Final = "no route matches it"
_NO_TABLE: Final = "there are neither routes nor a default team: it is its client's"


class Candidate(NamedTuple):
    """A route that matches, `place` in the configuration; `lost` says why another goes before it."""

    place: int
    route: Route
    kind: Kind
    lost: str | None


class Choice(NamedTuple):
    """Where an interrupt goes; `why` says it when no route does."""

    destination: Destination
    why: str | None
    candidates: tuple[Candidate, ...]

    @property
    def winner(self) -> Candidate | None:
        return next((one for one in self.candidates if one.lost is None), None)


def kind_of(route: Route) -> Kind:
    """What a route matches by."""
    if route.reason is None:
        return Kind.TOOL
    if route.reason in CORE_REASONS:
        return Kind.CORE
    return Kind.NAMESPACE if route.reason.endswith("*") else Kind.REASON


def in_order(table: RouteTable) -> list[tuple[int, Route]]:
    """Every route with its place in the configuration, in the order in which they are asked."""
    return sorted(enumerate(table.routes), key=_asked)


def choose(
    table: RouteTable, reason: str, *, tool: str | None = None, bound: bool = False, metadata: Any = None
) -> Choice:
    """The destination of one interrupt, and why; the arguments are those of `RouteTable.match`."""
    destination = table.match(reason, tool=tool, bound=bound, metadata=metadata)
    found = sorted(_matching(table, reason, tool, metadata), key=_asked)
    barred = _barred(table, reason, destination, unknown=tool is None and (bound or reason == "tool_call"))
    candidates = tuple(
        Candidate(place, route, kind_of(route), barred or _lost(found[0], (place, route)))
        for place, route in found
    )
    nothing = None if found else _NOTHING if table.routes or table.default_team else _NO_TABLE
    return Choice(destination, barred or nothing, candidates)


def _matching(table: RouteTable, reason: str, tool: str | None, metadata: Any) -> Iterator[tuple[int, Route]]:
    """Each route that would have the interrupt if it were the only one."""
    for place, route in enumerate(table.routes):
        alone = RouteTable([route]).match(reason, tool=tool or "", bound=False, metadata=metadata)
        if alone.route == route.name:
            yield place, route


def _asked(one: tuple[int, Route]) -> tuple[int, int, int]:
    """The order in which routes are asked: by kind, the longest namespace first, then as they stand."""
    place, route = one
    kind = kind_of(route)
    return ORDER.index(kind), -len(route.reason or "") if kind is Kind.NAMESPACE else 0, place


def _barred(table: RouteTable, reason: str, destination: Destination, *, unknown: bool) -> str | None:
    """Why not even the first that matches has it; `unknown` says that it is about a tool without a name."""
    if ":" in reason and reason.partition(":")[0] == RESERVED_NAMESPACE:
        return _RESERVED
    if unknown and destination.route == UNROUTED and any(route.tools for route in table.routes):
        return _NO_TOOL
    return None


def _lost(first: tuple[int, Route], other: tuple[int, Route]) -> str | None:
    if first[0] == other[0]:
        return None
    kind, than = kind_of(other[1]), kind_of(first[1])
    if kind is not than:
        return f"{than} goes before {kind}"
    if kind is Kind.NAMESPACE and first[1].reason != other[1].reason:
        return f"{first[1].reason} is the longer namespace"
    return f"routes[{first[0]}] stands before it"
