"""What of routes and teams works, but hardly as it was meant: routes in each other's way, teams never asked.

Reasons go before tools, so only routes by tool and metadata can be in each other's way: of two that match the
same interrupt, the first has it. One exception written before its rule is how it is meant; the other way
round the exception is never used.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from holdshort.routing import RouteConfig, TeamConfig


def findings(
    routes: Sequence[RouteConfig], teams: Mapping[str, TeamConfig], default_team: str | None
) -> Iterator[str]:
    """One sentence each, beginning with the place in the configuration file."""
    for place, route in enumerate(routes):
        yield from _unused(place, route, routes[:place])
        yield from _too_late(place, route)
    yield from _overlaps(routes)
    asked = {team for route in routes for team in route.teams} | {default_team}
    for team in teams:
        if team not in asked:
            yield f"teams.{team}: is never asked: no route names it, and it is not the default_team"


# -- routes that are not reached ----------------------------------------------------------------------------


def _unused(place: int, route: RouteConfig, before: Sequence[RouteConfig]) -> Iterator[str]:
    for other, earlier in enumerate(before):
        if earlier.matches == route.matches:
            yield f"routes[{place}] ({route.called}): is never used: routes[{other}] says the same"
            return
    if route.reason is not None:
        return
    covering = [(other, one) for other, one in enumerate(before) if _has_all_of(one, route)]
    if not route.tool:
        if any_tool := [other for other, one in covering if not one.tool]:
            yield _never(place, route, any_tool[:1])
        return
    gone = {
        tool: other
        for other, one in reversed(covering)
        for tool in route.tool
        if not one.tool or tool in one.tool
    }
    if gone.keys() >= set(route.tool):
        yield _never(place, route, set(gone.values()))
        return
    for tool, other in gone.items():
        yield f"routes[{place}] ({route.called}): is never used for tool {tool}: routes[{other}] has it"


def _never(place: int, route: RouteConfig, others: Collection[int]) -> str:
    named = ", ".join(f"routes[{other}]" for other in sorted(others))
    what = "stands before it and matches" if len(others) == 1 else "stand before it and match"
    return f"routes[{place}] ({route.called}): is never used: {named} {what} all that it does"


def _has_all_of(wide: RouteConfig, narrow: RouteConfig) -> bool:
    """Whether, of the tools that both have, the first route matches whatever the second does."""
    return wide.reason is None and _members(wide) <= _members(narrow)


def _members(route: RouteConfig) -> set[tuple[str, bool, Any]]:
    return {(name, isinstance(value, bool), value) for name, value in route.metadata.items()}


# -- routes that cross --------------------------------------------------------------------------------------


def _overlaps(routes: Sequence[RouteConfig]) -> Iterator[str]:
    """Routes of which neither is an exception of the other, and that both match something."""
    numbered = [(place, route) for place, route in enumerate(routes) if route.reason is None]
    for number, (place, one) in enumerate(numbered):
        for later, other in numbered[number + 1 :]:
            if _cross(one, other) and not _same_end(one, other):
                yield (
                    f"routes[{later}] ({other.called}): overlaps routes[{place}] ({one.called}): "
                    f"{_both(one, other)} goes to {one.team}, for that route stands first"
                )


def _cross(one: RouteConfig, other: RouteConfig) -> bool:
    tools = not (one.tool and other.tool) or bool(set(one.tool) & set(other.tool))
    unlike = any(
        name in other.metadata and (name, isinstance(value, bool), value) not in _members(other)
        for name, value in one.metadata.items()
    )
    told = _has_all_of(one, other) and (other.tool or not one.tool)
    return tools and not unlike and not _is_exception(one, other) and not told


def _is_exception(one: RouteConfig, rule: RouteConfig) -> bool:
    """Whether the rule has all that `one` has, and more."""
    return _has_all_of(rule, one) and (not rule.tool or (bool(one.tool) and set(one.tool) <= set(rule.tool)))


def _same_end(one: RouteConfig, other: RouteConfig) -> bool:
    """Whether it makes no difference which of them has an interrupt."""
    return (one.team, one.answer_by, one.policy()) == (other.team, other.answer_by, other.policy())


def _both(one: RouteConfig, other: RouteConfig) -> str:
    tools = [tool for tool in one.tool if not other.tool or tool in other.tool] or other.tool
    members = sorted({**one.metadata, **other.metadata})
    named = [f"tool {'/'.join(tools)}"] if tools else []
    return " with ".join([*named, *([f"metadata {', '.join(members)}"] if members else [])])


# -- times that never come ----------------------------------------------------------------------------------


def _too_late(place: int, route: RouteConfig) -> Iterator[str]:
    """What is to happen only after every question of the route is over."""
    end, name = (
        (route.ttl, "ttl")
        if route.deadline is None
        else min((route.deadline, "deadline"), (route.ttl, "ttl"))
    )
    for what, at in (("remind_after", route.remind_after), ("escalate_after", route.escalate_after)):
        if at is not None and at >= end:
            yield f"routes[{place}] ({route.called}).{what}: never comes: its {name} is not later"
    if route.deadline is not None and route.deadline > route.ttl:
        yield f"routes[{place}] ({route.called}).deadline: never comes: its ttl is earlier"
