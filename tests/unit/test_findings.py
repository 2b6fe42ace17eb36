"""What `config check` warns of: routes in each other's way, teams that are never asked."""

import pytest
import yaml

from holdshort.findings import findings
from holdshort.settings import Config


def found(
    *routes: str, teams: str = "{a: {}, b: {}}", default: str | None = "a", more: str = ""
) -> list[str]:
    listed = "\n".join(f"  - {{{route}}}" for route in routes)
    config = Config.model_validate(
        yaml.safe_load(f"teams: {teams}\n{more}\nroutes:\n{listed}" if routes else f"teams: {teams}")
    )
    return list(
        findings(
            config.routes,
            config.teams,
            default,
            trusted=config.trust_principal,
            max_attempts=config.max_attempts,
            unsafe=sorted(name for name, one in config.agents.items() if one.cancel == "unsafe"),
        )
    )


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
    assert found("reason: x, team: b, remind_after: 2h, escalate_after: 2h, escalate_to: a") == [
        "routes[0] (x).remind_after: reminds a, not b: escalate_after is not later"
    ]


def test_a_deadline_that_is_not_waited_for_is_told() -> None:
    waits = "reason: x, team: b, on_deadline: wait, deadline: 30m, remind_after: 1h"
    assert found(waits) == [
        (
            "routes[0] (x).deadline: does nothing beside on_deadline: wait, "
            "which waits for an expiry, else for the ttl"
        )
    ]


KEYS = [f"{{key: {one * 43}, decider: {name}}}" for one, name in (("A", "ann"), ("B", "bob"))]
TRUST = "trust_principal: [inputs, decisions.b]"


def people(groups: str, keys: str = "{}") -> str:
    return f"{{a: {{}}, b: {{groups: {groups}, keys: {keys}}}}}"


@pytest.mark.parametrize(
    ("route", "teams", "more", "said"),
    [
        ("overflow_to: a", "{a: {}, b: {}}", "", "overflow_to: does nothing: team b has no max_open"),
        ("on_overflow: cancel", "{a: {}, b: {}}", "", "on_overflow: does nothing: team b has no max_open"),
        (
            "on_overflow: cancel, overflow_to: a",
            "{a: {}, b: {max_open: 3}}",
            "",
            "on_overflow: does nothing: overflow_to takes all, team a has no max_open",
        ),
        (
            "on_deadline: cancel, on_denial: gather",
            "{a: {}, b: {}}",
            "agents: {default: {}, graph: {cancel: unsafe}}",
            "on_deadline: cancel is not done for graph, who may take a cancel for a yes",
        ),
        (
            "quorum: {need: 1, denial: counts}",
            "{a: {}, b: {}}",
            "",
            "quorum.denial: does nothing: one person is enough",
        ),
        (
            "retry: 5",
            "{a: {}, b: {}}",
            "",
            "retry: happens 4 of 5 times: max_attempts (5) ends the pause before",
        ),
        (
            "retry: 1",
            "{a: {}, b: {}}",
            "max_attempts: 1",
            "retry: happens never: max_attempts (1) ends the pause before",
        ),
        (
            "quorum: 2, on_deadline: answer, answer: {approved: true}",
            "{a: {}, b: {}}",
            TRUST,
            "answer: is no denial, and nobody has to prove anything for it: silence would approve",
        ),
        (
            "quorum: {need: 2, groups: [leads, finance]}",
            people("{leads: [ann], finance: [ann]}"),
            TRUST,
            "quorum: can never be met: the groups leads, finance of team b have not one person each",
        ),
        (
            "quorum: {need: 2, groups: [leads]}",
            people("{leads: [zoe]}", f"{{k: {KEYS[0]}, l: {KEYS[1]}}}"),
            "",
            "quorum: can never be met: nobody in group leads of team b has a key",
        ),
    ],
)
def test_what_would_silently_do_nothing_or_never_be_met_is_told(
    route: str, teams: str, more: str, said: str
) -> None:
    assert found(f"reason: x, team: b, {route}", teams=teams, more=more) == [f"routes[0] (x).{said}"]


@pytest.mark.parametrize(
    ("route", "teams", "more"),
    [
        ("overflow_to: a", "{a: {}, b: {max_open: 3}}", ""),
        ("overflow_to: a, on_overflow: cancel", "{a: {max_open: 3}, b: {max_open: 3}}", ""),
        ("retry: 4", "{a: {}, b: {}}", ""),
        ("deadline: 1h, remind_after: 10m, escalate_after: 20m, escalate_to: a", "{a: {}, b: {}}", ""),
        ("quorum: 2, on_deadline: answer, answer: {approved: false, why: late}", "{a: {}, b: {}}", TRUST),
        (
            "quorum: {need: 2, groups: [leads, finance]}",
            people("{leads: [ann, bob], finance: [ann]}"),
            TRUST,
        ),
        (
            "quorum: {need: 2, groups: [leads]}",
            people("{leads: [zoe, bob]}", f"{{k: {KEYS[0]}, l: {KEYS[1]}}}"),
            "",
        ),
    ],
)
def test_what_can_be_kept_is_not_told(route: str, teams: str, more: str) -> None:
    assert found(f"reason: x, team: b, {route}", teams=teams, more=more) == []


def test_groups_that_no_quorum_names_are_told() -> None:
    assert found(ASKED, teams=people("{leads: [ann]}")) == [
        "teams.b.groups.leads: is of no use: no quorum names it"
    ]
