"""What of routes and teams works, but hardly as it was meant: routes in each other's way, teams never asked,
words that change nothing.

Reasons go before tools, so only routes by tool and metadata can be in each other's way: of two that match the
same interrupt, the first has it. One exception written before its rule is how it is meant; the other way
round the exception is never used.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from holdshort.routing import RouteConfig, TeamConfig


def findings(
    routes: Sequence[RouteConfig],
    teams: Mapping[str, TeamConfig],
    default_team: str | None,
    *,
    trusted: Collection[str] = (),
    max_attempts: int | None = None,
    unsafe: Collection[str] = (),
) -> Iterator[str]:
    """One sentence each, beginning with the place in the configuration file.

    `unsafe` are the agents that are declared to take a cancel for a yes: routes do not say whose they are.
    `trusted` are the topics of `trust_principal`; without `max_attempts` nothing is said of it.
    """
    for place, route in enumerate(routes):
        yield from _unused(place, route, routes[:place])
        told = (
            *_too_late(route),
            *_idle(route, teams, max_attempts),
            *_unattainable(route, teams, trusted),
            *_uncancelled(route, unsafe),
        )
        yield from (f"routes[{place}] ({route.called}).{one}" for one in told)
    yield from _overlaps(routes)
    asked = {team for route in routes for team in route.teams} | {default_team}
    for team in teams:
        if team not in asked:
            yield f"teams.{team}: is never asked: no route names it, and it is not the default_team"
    yield from _groups_of_no_use(routes, teams)


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


def _too_late(route: RouteConfig) -> Iterator[str]:
    """What is to happen only after every question of the route is over, or to another team than meant."""
    end, name = route.ttl, "ttl"
    if route.deadline is not None and route.on_deadline != "wait":
        end, name = min((route.deadline, "deadline"), (end, name))
    for what, at in (("remind_after", route.remind_after), ("escalate_after", route.escalate_after)):
        if at is not None and at >= end:
            yield f"{what}: never comes: its {name} is not later"
    remind, escalate = route.remind_after, route.escalate_after
    if remind is not None and escalate is not None and escalate <= remind < end:
        yield f"remind_after: reminds {route.escalate_to}, not {route.team}: escalate_after is not later"
    if route.deadline is not None and route.on_deadline == "wait":
        yield "deadline: does nothing beside on_deadline: wait, which waits for an expiry, else for the ttl"
    elif route.deadline is not None and route.deadline > route.ttl:
        yield "deadline: never comes: its ttl is earlier"


# -- words that change nothing, or more than meant ----------------------------------------------------------


def _idle(route: RouteConfig, teams: Mapping[str, TeamConfig], max_attempts: int | None) -> Iterator[str]:
    """What stands there and does nothing."""
    limited = route.team in teams and teams[route.team].max_open is not None
    for name in ("overflow_to", "on_overflow"):
        if getattr(route, name) is not None and not limited:
            yield f"{name}: does nothing: team {route.team} has no max_open"
    other = route.overflow_to
    takes_all = other is not None and (other not in teams or teams[other].max_open is None)
    if limited and route.on_overflow is not None and takes_all:
        yield f"on_overflow: does nothing: overflow_to takes all, team {other} has no max_open"
    policy = route.policy()
    if policy.denial == "counts" and policy.quorum <= 1 and not policy.groups:
        yield "quorum.denial: does nothing: one person is enough"
    if max_attempts is not None and route.retry >= max_attempts:
        most = f"{max_attempts - 1} of {route.retry} times" if max_attempts > 1 else "never"
        yield f"retry: happens {most}: max_attempts ({max_attempts}) ends the pause before"
    if _approves(route) and (policy.needs_proof or policy.signature == "required"):
        yield "answer: is no denial, and nobody has to prove anything for it: silence would approve"


def _uncancelled(route: RouteConfig, unsafe: Collection[str]) -> Iterator[str]:
    """Cancels that the route asks for by name, and that some agents never get (router 5)."""
    if not unsafe:
        return
    for name, word in (("on_deadline", "cancel"), ("on_overflow", "cancel"), ("on_denial", "cancel_rest")):
        if name in route.model_fields_set and getattr(route, name) == word:
            yield f"{name}: {word} is not done for {', '.join(unsafe)}, who may take a cancel for a yes"


def _approves(route: RouteConfig) -> bool:
    """Whether the router would say anything but no by itself."""
    if "answer" not in route.model_fields_set or route.answer is False:
        return False
    return not (isinstance(route.answer, dict) and route.answer.get("approved") is False)


def _unattainable(
    route: RouteConfig, teams: Mapping[str, TeamConfig], trusted: Collection[str]
) -> Iterator[str]:
    """Quorums for which a team has not the people; who proves themselves by keys needs one."""
    policy = route.policy()
    for team in dict.fromkeys(route.teams):
        known = teams.get(team, TeamConfig())
        by_keys = f"decisions.{team}" not in trusted or policy.signature == "required"
        signing = {key.decider for key in known.keys.values()}
        groups = [set(known.groups.get(name, ())) for name in policy.groups]
        able = [group & signing if by_keys else group for group in groups]
        if all(groups) and not all(able):
            name = policy.groups[[bool(one) for one in able].index(False)]
            yield f"quorum: can never be met: nobody in group {name} of team {team} has a key"
        elif all(groups) and not _each_has_one(able):
            yield (
                f"quorum: can never be met: the groups {', '.join(policy.groups)} of team {team} "
                "have not one person each"
            )


def _each_has_one(groups: Sequence[Collection[str]]) -> bool:
    """Whether everybody stands for one group only, and each has somebody."""
    if not groups:
        return True
    rest = groups[1:]
    return any(_each_has_one([set(group) - {one} for group in rest]) for one in groups[0])


def _groups_of_no_use(routes: Sequence[RouteConfig], teams: Mapping[str, TeamConfig]) -> Iterator[str]:
    wanted = {(team, name) for route in routes for team in route.teams for name in route.policy().groups}
    for team, known in teams.items():
        for name in known.groups:
            if (team, name) not in wanted:
                yield f"teams.{team}.groups.{name}: is of no use: no quorum names it"
