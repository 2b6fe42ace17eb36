"""What `config check` warns of: routes in each other's way, teams that are never asked."""

import pytest
import yaml

from holdshort.findings import findings
from holdshort.settings import Config


def found(*routes: str, teams: str = "{a: {}, b: {}}", default: str | None = "a") -> list[str]:
    listed = "\n".join(f"  - {{{route}}}" for route in routes)
    config = Config.model_validate(
        yaml.safe_load(f"teams: {teams}\nroutes:\n{listed}" if routes else f"teams: {teams}")
    )
    return list(findings(config.routes, config.teams, default))


ASKED = "reason: other, team: b"  # so that both teams are


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (
            "tool: [pay, refund], team: a",
            "tool: pay, team: b",
            "routes[1] (pay): is never used: routes[0] stands before it and matches all that it does",
        ),
        (
            "metadata: {env: prod}, team: a",
            "tool: pay, metadata: {env: prod}, team: b",
            "routes[1] (pay): is never used: routes[0] stands before it and matches all that it does",
        ),
        (
            "tool: pay, team: a",
            "tool: [pay, refund], metadata: {n: 1}, team: b",
            "routes[1] (pay,refund): is never used for tool pay: routes[0] has it",
        ),
        (
            "tool: pay, team: a",
            "metadata: {env: prod}, team: b",
            (
                "routes[1] (env): overlaps routes[0] (pay): tool pay with metadata env goes to a, "
                "for that route stands first"
            ),
        ),
        (
            "tool: pay, metadata: {n: 1}, team: a",
            "tool: pay, metadata: {env: prod}, team: b",
            (
                "routes[1] (pay): overlaps routes[0] (pay): tool pay with metadata env, n goes to a, "
                "for that route stands first"
            ),
        ),
        (
            "reason: 'x:*', team: b",
            "reason: 'x:*', team: b",
            "routes[1] (x:*): is never used: routes[0] says the same",
        ),
    ],
)
def test_routes_in_each_others_way_are_told_with_their_places(first: str, second: str, said: str) -> None:
    assert found(first, second, ASKED) == [said]


def test_a_route_that_several_cover_together_is_never_used() -> None:
    assert found("tool: pay, team: a", "tool: refund, team: a", "tool: [pay, refund], team: b") == [
        (
            "routes[2] (pay,refund): is never used: "
            "routes[0], routes[1] stand before it and match all that it does"
        )
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tool: pay, metadata: {env: prod}, team: a", "tool: pay, team: b"),  # an exception, then its rule
        ("tool: pay, metadata: {env: prod}, team: a", "metadata: {env: prod}, team: b"),
        ("tool: pay, team: a", "tool: refund, team: b"),
        ("metadata: {env: prod}, team: a", "metadata: {env: test}, team: b"),
        ("metadata: {n: 1}, team: a", "metadata: {n: true}, team: b"),
        ("tool: pay, team: b", "metadata: {env: prod}, team: b"),  # it makes no difference which has it
        ("reason: 'x:y:*', team: a", "reason: 'x:*', team: b"),
        ("reason: 'x:*', team: a", "tool: pay, team: b"),
    ],
)
def test_what_is_meant_so_is_not_told(first: str, second: str) -> None:
    assert found(first, second, ASKED) == []


def test_a_team_that_nobody_asks_is_told() -> None:
    teams = "{a: {}, b: {}, c: {}, d: {}}"
    routes = "reason: x, team: b, escalate_after: 1h, escalate_to: c"
    assert found(routes, teams=teams) == [
        "teams.d: is never asked: no route names it, and it is not the default_team"
    ]
    assert len(found(routes, teams=teams, default=None)) == 2
    assert len(found(teams=teams)) == 3


def test_times_that_never_come_are_told() -> None:
    late = "reason: x, team: b, ttl: 2h, remind_after: 2h, escalate_after: 1h, escalate_to: a"
    assert found(late) == ["routes[0] (x).remind_after: never comes: its ttl is not later"]
    assert found(f"{late}, deadline: 30m") == [
        "routes[0] (x).remind_after: never comes: its deadline is not later",
        "routes[0] (x).escalate_after: never comes: its deadline is not later",
    ]
    assert found("reason: x, team: b, ttl: 2h, deadline: 3h") == [
        "routes[0] (x).deadline: never comes: its ttl is earlier"
    ]
