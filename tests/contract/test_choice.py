"""Why an interrupt goes where it goes: what is explained is what is matched (router 1)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdshort.contract.choice import Choice, Kind, choose, in_order
from holdshort.contract.routes import Route, RouteTable

ROUTES = (
    Route(name="tool", team="payments", tools=frozenset({"pay", "refund"})),
    Route(name="space", team="graphs", reason="pay:*"),
    Route(name="both", team="risk", tools=frozenset({"pay"}), metadata={"level": "high"}),
    Route(name="core", team="desk", reason="tool_call", answer_by="anyone"),
    Route(name="deeper", team="deep", reason="pay:eu:*"),
    Route(name="exact", team="db", reason="pay:eu:refund"),
    Route(name="marked", team="risk", metadata={"n": 1}),
)
TABLE = RouteTable(ROUTES, default_team="desk")


def lost(choice: Choice) -> dict[str, str | None]:
    """What is said of each route that matches, in the order in which they are asked."""
    return {one.route.name: one.lost for one in choice.candidates}


def test_the_most_specific_kind_wins_and_the_others_say_why_they_do_not() -> None:
    choice = choose(TABLE, "pay:eu:refund", tool="refund")

    assert choice.destination.team == "db"
    assert lost(choice) == {
        "exact": None,
        "deeper": "exact reason goes before namespace",
        "space": "exact reason goes before namespace",
        "tool": "exact reason goes before tool and metadata",
    }


def test_of_two_namespaces_the_longer_wins_wherever_it_stands() -> None:
    assert lost(choose(TABLE, "pay:eu:x", tool="x")) == {
        "deeper": None,
        "space": "pay:eu:* is the longer namespace",
    }


def test_of_two_routes_by_tool_the_first_wins() -> None:
    choice = choose(TABLE, "tool_call", tool="pay", bound=True, metadata={"level": "high"})

    assert lost(choice) == {
        "tool": None,
        "both": "routes[0] stands before it",
        "core": "tool and metadata goes before core reason",
    }
    assert [(one.place, one.kind) for one in choice.candidates] == [
        (0, Kind.TOOL),
        (2, Kind.TOOL),
        (3, Kind.CORE),
    ]


def test_a_tool_without_a_name_is_nobodys_even_where_a_route_matches() -> None:
    choice = choose(TABLE, "tool_call", metadata={"n": 1})

    assert choice.winner is None
    assert choice.destination.team == "unrouted"
    assert set(lost(choice)) == {"marked", "core"}
    assert choice.why is not None
    assert choice.why.startswith("the name of the tool is not known, and tools are routed")
    assert set(lost(choice).values()) == {choice.why}


@pytest.mark.parametrize(
    ("table", "reason", "team", "why"),
    [
        (TABLE, "core:x", "desk", "the namespace core is reserved: no route is asked"),
        (TABLE, "other", "desk", "no route matches it"),
        (RouteTable(ROUTES), "other", "unrouted", "no route matches it"),
        (RouteTable(), "other", None, "there are neither routes nor a default team: it is its client's"),
    ],
)
def test_what_no_route_has_is_explained(table: RouteTable, reason: str, team: str | None, why: str) -> None:
    choice = choose(table, reason)

    assert (choice.destination.team, choice.why, choice.winner) == (team, why, None)


def test_routes_are_listed_in_the_order_in_which_they_are_asked() -> None:
    names = [route.name for _, route in in_order(TABLE)]
    assert names == ["exact", "deeper", "space", "tool", "both", "marked", "core"]


REASONS = st.sampled_from(["a", "a:b", "a:b:c", "a.b", "core:a", "tool_call", "confirmation", "core"])
MEMBERS = st.dictionaries(st.sampled_from("mn"), st.sampled_from([1, True, "x"]), max_size=2)
TOOLS = st.sampled_from(["t", "u"])


@st.composite
def tables(draw: st.DrawFn) -> RouteTable:
    routes = []
    for number in range(draw(st.integers(0, 5))):
        matches: dict[str, Any] = {"reason": draw(st.sampled_from(["a", "a:*", "a:b:*", "a.*", "tool_call"]))}
        if draw(st.booleans()):
            tools, members = draw(st.frozensets(TOOLS)), draw(MEMBERS)
            matches = {"tools": tools or frozenset({"t"} if not members else ()), "metadata": members}
        routes.append(Route(name=f"r{number}", team=f"team-{number}", **matches))
    return RouteTable(routes, draw(st.sampled_from([None, "default-team"])))


@given(tables(), REASONS, st.none() | TOOLS, st.booleans(), MEMBERS)
def test_the_route_that_is_said_to_win_is_the_one_that_the_gate_takes(
    table: RouteTable, reason: str, tool: str | None, bound: bool, metadata: dict[str, Any]
) -> None:
    choice = choose(table, reason, tool=tool, bound=bound, metadata=metadata)
    taken = table.match(reason, tool=tool, bound=bound, metadata=metadata)

    assert choice.destination == taken
    if choice.winner is None:
        assert choice.why
        assert taken.route in {None, "default", "unrouted"}
    else:
        assert choice.winner == choice.candidates[0]
        assert choice.winner.route.name == taken.route
