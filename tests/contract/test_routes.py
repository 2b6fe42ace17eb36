"""The route table (contract 3.3): a reason to its route, and who may answer."""

from typing import Any

import pytest

from holdshort.contract.routes import Destination, Route, RouteTable

UNROUTED = Destination("unrouted", "unrouted", reserved=True)
EXACT = Route(name="exact", team="db", reason="langgraph:database_modification")
SPACE = Route(name="space", team="graphs", reason="langgraph:*")
DEEPER = Route(name="deeper", team="deep", reason="langgraph:billing:*")
DOTTED = Route(name="dotted", team="users", reason="everruns.*")
TOOL = Route(name="tool", team="payments", tools=frozenset({"pay", "refund"}))
MARKED = Route(name="marked", team="risk", metadata={"level": "high", "n": 1})
BOTH = Route(name="both", team="big", tools=frozenset({"pay"}), metadata={"level": "huge"})
CORE = Route(name="core", team="desk", reason="tool_call")


def match(table: RouteTable, reason: str, tool: str | None = None, **given: Any) -> Destination:
    bound, metadata = given.get("bound", False), given.get("metadata")
    return table.match(reason, tool=tool, bound=bound, metadata=metadata)


def name(table: RouteTable, reason: str, tool: str | None = None, **given: Any) -> str | None:
    return match(table, reason, tool, **given).route


def test_without_any_routes_everything_is_anyones() -> None:
    assert match(RouteTable(), "tool_call", bound=True) == Destination(None, None, reserved=False)


def test_with_any_routes_what_none_matches_is_unrouted() -> None:
    assert match(RouteTable([EXACT]), "something:else") == UNROUTED


def test_a_default_team_takes_what_none_matches() -> None:
    table = RouteTable([EXACT], default_team="desk")
    assert match(table, "something:else") == Destination("default", "desk", reserved=True)
    assert match(RouteTable([], default_team="desk"), "x") == Destination("default", "desk", reserved=True)


@pytest.mark.parametrize(
    ("reason", "route"),
    [
        ("langgraph:database_modification", "exact"),
        ("langgraph:other", "space"),
        ("langgraph:", "space"),
        ("langgraph:billing:refund", "deeper"),
        ("langgraph:billing.refund", "space"),
        ("everruns.ask_user", "dotted"),
        ("everruns.a.b", "dotted"),
        ("langgraph", "unrouted"),
        ("Langgraph:other", "unrouted"),
        ("xlanggraph:other", "unrouted"),
        ("everrunsXask", "unrouted"),
    ],
)
def test_exact_before_the_longest_namespace(reason: str, route: str) -> None:
    table = RouteTable([SPACE, DOTTED, DEEPER, EXACT])
    assert name(table, reason) == route


def test_a_namespace_before_a_tool_and_a_tool_before_a_core_reason() -> None:
    table = RouteTable([CORE, TOOL, SPACE])
    assert name(table, "langgraph:x", "pay", bound=True) == "space"
    assert name(table, "tool_call", "pay", bound=True) == "tool"
    assert name(table, "tool_call", "mail", bound=True) == "core"


def test_within_a_kind_the_first_that_matches() -> None:
    twin = Route(name="twin", team="other", reason=EXACT.reason)
    assert name(RouteTable([EXACT, twin]), str(EXACT.reason)) == "exact"
    assert name(RouteTable([BOTH, TOOL]), "x", "pay", metadata={"level": "huge"}) == "both"
    assert name(RouteTable([TOOL, BOTH]), "x", "pay", metadata={"level": "huge"}) == "tool"


def test_metadata_must_all_match_and_a_bool_is_no_number() -> None:
    table = RouteTable([MARKED])
    assert name(table, "x", metadata={"level": "high", "n": 1, "z": 0}) == "marked"
    assert name(table, "x", metadata={"level": "high", "n": 1.0}) == "marked"
    odd: Any
    for odd in ({"level": "high"}, {"level": "high", "n": True}, {"level": "low", "n": 1}, None, "high", []):
        assert match(table, "x", metadata=odd) == UNROUTED


def test_tool_and_metadata_of_one_route_must_both_match() -> None:
    table = RouteTable([BOTH])
    assert name(table, "x", "pay", metadata={"level": "huge"}) == "both"
    assert match(table, "x", "pay") == UNROUTED
    assert match(table, "x", "mail", metadata={"level": "huge"}) == UNROUTED


def test_a_tool_that_is_not_known_while_tools_are_routed_is_nobodys() -> None:
    """It might be anybody's: the route for another kind of question must not have it."""
    anyones = Route(name="anyone", team="desk", metadata={"low": True}, answer_by="anyone")
    table = RouteTable([TOOL, CORE, anyones], default_team="desk")
    assert match(table, "tool_call") == UNROUTED
    assert match(table, "x:y", bound=True) == UNROUTED
    assert match(table, "tool_call", bound=True, metadata={"low": True}) == UNROUTED
    assert name(table, "tool_call", "mail", bound=True) == "core"


def test_what_asks_about_no_tool_needs_none() -> None:
    table = RouteTable([TOOL, CORE], default_team="desk")
    assert name(table, "confirmation") == "default"


def test_without_routes_by_tool_an_unknown_tool_makes_no_difference() -> None:
    table = RouteTable([CORE, MARKED])
    assert name(table, "tool_call", bound=True) == "core"


@pytest.mark.parametrize("reason", ["core:anything", "core:", "core:tool_call"])
def test_the_core_namespace_is_reserved(reason: str) -> None:
    everything = Route(name="all", team="x", reason="core:*")
    assert match(RouteTable([everything]), reason) == UNROUTED
    assert match(RouteTable([everything], "desk"), reason) == Destination("default", "desk", reserved=True)


def test_a_reason_that_only_begins_like_it_is_not() -> None:
    assert name(RouteTable([Route(name="c", team="x", reason="core.*")]), "core.x") == "c"


def test_answered_by_the_team_unless_the_route_says_anyone() -> None:
    anyones = Route(name="open", team="desk", reason="a:b", answer_by="anyone")
    assert match(RouteTable([anyones]), "a:b") == Destination("open", "desk", reserved=False)
    assert match(RouteTable([EXACT]), str(EXACT.reason)) == Destination("exact", "db", reserved=True)


def test_an_endless_reason_takes_no_time() -> None:
    assert match(RouteTable([SPACE, DEEPER]), "x" + ":y" * 100_000) == UNROUTED
