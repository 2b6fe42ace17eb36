"""Contract 3.3: a question of a team's must not be answerable by whoever sits in front of the chat."""

from tests.expected import admitted, opened, refused, settled
from tests.playbook import Playbook, agent, client, pause_of, question, sdk, team

from holdshort.contract.routes import Route, RouteTable

MONEY = Route(name="money", team="payments", reason="pay:*")
CHAT = Route(name="chat", team="desk", reason="ask:*", answer_by="anyone")
BY_TOOL = Route(name="by-tool", team="payments", tools=frozenset({"pay"}))


def routed(*routes: Route, **questions: str) -> Playbook:
    play = Playbook(routes=RouteTable(routes))
    asked = [question(id_, reason=reason) for id_, reason in questions.items()]
    play >> agent.interrupts("r1", *asked) << opened(*questions)
    return play


def teams(play: Playbook) -> dict[str, tuple[str | None, bool]]:
    return {one.id: (one.team, one.reserved) for one in pause_of(play).interrupts}


def test_route_team_and_reservation_are_stored_with_each_interrupt() -> None:
    play = routed(MONEY, a="pay:now")
    (interrupt,) = pause_of(play).interrupts
    assert (interrupt.route, interrupt.team, interrupt.reserved) == ("money", "payments", True)


def test_changed_routes_are_for_new_pauses() -> None:
    play = routed(MONEY, a="pay:now")
    play.transcript.rules = Playbook().transcript.rules
    play >> client.resumes("r2", a=True) << refused("RESERVED_FOR_TEAM")
    play >> team.resumes("hs-1", a=True) << admitted()


def test_one_interrupt_of_a_team_reserves_the_whole_pause() -> None:
    """AG-UI knows no partial answers."""
    play = routed(MONEY, CHAT, a="pay:now", b="ask:me")
    assert pause_of(play).reserved
    play >> client.resumes("r2", a=True, b=True) << refused("RESERVED_FOR_TEAM")


def test_the_others_are_answered_through_the_router_too() -> None:
    play = routed(MONEY, CHAT, a="pay:now", b="ask:me")
    assert teams(play) == {"a": ("payments", True), "b": ("desk", False)}


def test_one_without_a_team_is_the_clients_through_the_router() -> None:
    nobodys = Route(name="nobody", team="", reason="free:*", answer_by="anyone")
    play = routed(MONEY, nobodys, a="pay:now", b="free:x")
    assert teams(play) == {"a": ("payments", True), "b": ("client", False)}


def test_it_is_the_clients_as_soon_as_another_has_a_team_reserved_or_not() -> None:
    nobodys = Route(name="nobody", team="", reason="free:*", answer_by="anyone")
    play = routed(CHAT, nobodys, a="ask:me", b="free:x")
    assert teams(play) == {"a": ("desk", False), "b": ("client", False)}


def test_if_none_is_reserved_clients_answer_as_in_plain_agui() -> None:
    play = routed(CHAT, a="ask:me", b="ask:you")
    play >> client.resumes("r2", a=1, b=2) << admitted()


def test_without_any_routes_everything_is_anyones() -> None:
    play = routed(a="pay:now", b="tool_call")
    assert teams(play) == {"a": (None, False), "b": (None, False)}


def test_what_no_route_matches_is_unrouted_and_reserved() -> None:
    play = routed(MONEY, a="other:x")
    assert teams(play) == {"a": ("unrouted", True)}


def test_the_tools_name_comes_from_the_agents_own_events() -> None:
    play = Playbook(routes=RouteTable([BY_TOOL]))
    play(client.asks("r1"), sdk.calls("c", "pay"))
    asked = question("a", reason="tool_call", toolCallId="c", metadata={"toolName": "mail"})
    play >> sdk.interrupts("r1", asked) << opened("a")
    assert teams(play) == {"a": ("payments", True)}


def test_metadata_come_from_the_interrupt() -> None:
    risky = Route(name="risky", team="risk", metadata={"level": "high"})
    play = Playbook(routes=RouteTable([risky], default_team="desk"))
    asked = [question(id_, metadata={"level": level}) for id_, level in (("a", "high"), ("b", "low"))]
    play >> agent.interrupts("r1", *asked) << opened("a", "b")
    assert teams(play) == {"a": ("risk", True), "b": ("desk", True)}


def test_a_tool_whose_name_is_not_known_is_unrouted() -> None:
    play = Playbook(routes=RouteTable([BY_TOOL], default_team="desk"))
    play(client.asks("r1"))
    play >> sdk.interrupts("r1", question("a", toolCallId="nowhere")) << opened("a")
    assert teams(play) == {"a": ("unrouted", True)}


def test_an_interrupt_without_a_tool_call_is_not_about_a_tool() -> None:
    for absent in (None, "", "  "):
        play = Playbook(routes=RouteTable([BY_TOOL], default_team="desk"))
        play(client.asks("r1"))
        play >> sdk.interrupts("r1", question("a", toolCallId=absent)) << opened("a")
        assert teams(play) == {"a": ("desk", True)}


def test_a_tool_of_the_interrupted_run_is_known_to_the_run_that_answers() -> None:
    play = Playbook(routes=RouteTable([BY_TOOL]))
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.interrupts("r1", question("a", reason="x:y")))
    play(team.resumes("hs-1", a=True))
    (
        play
        >> sdk.interrupts("hs-1", question("b", reason="tool_call", toolCallId="c"))
        << opened("b", settled=1)
    )
    assert teams(play) == {"b": ("payments", True)}


def test_clients_may_not_write_what_only_the_router_writes() -> None:
    play = routed(MONEY, a="pay:now")
    smuggled = client.resumes("r2", a=True).having(generation=pause_of(play).generation)
    play >> smuggled << refused("RESERVED_FOR_TEAM")
    play >> team.resumes("hs-1", a=True) << admitted()
    play >> sdk.finishes("hs-1") << settled(1)
