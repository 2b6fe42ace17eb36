"""Row *reserved* of contract 3: by `inputs`, a pause that is a team's."""

from tests.expected import admitted, opened, refused
from tests.playbook import Playbook, agent, cancelled, client, question, team

from holdshort.contract.routes import Route, RouteTable

ROUTES = RouteTable([Route(name="money", team="payments", reason="pay:now")])
MONEY = question("m", reason="pay:now")


def open_money() -> Playbook:
    play = Playbook(routes=ROUTES)
    play >> agent.interrupts("r1", MONEY, "a") << opened("m", "a")
    return play


def test_a_client_cannot_answer_it() -> None:
    play = open_money()
    play >> client.resumes("r2", m=True, a=True) << refused("RESERVED_FOR_TEAM", about=["m", "a"])
    assert [problem["message"] for problem in play.error()["problems"]] == [
        "it is for team payments",
        "it is for team unrouted",
    ]


def test_a_client_cannot_cancel_it_either() -> None:
    play = open_money()
    play >> client.resumes("r2", m=cancelled, a=cancelled) << refused("RESERVED_FOR_TEAM")


def test_the_router_can() -> None:
    play = open_money()
    play >> team.resumes("hs-1", m=True, a=True) << admitted()


def test_a_pause_that_is_nobodys_is_anyones() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", MONEY) << opened("m")
    play >> client.resumes("r2", m=True) << admitted()


def test_a_route_may_say_that_anyone_answers() -> None:
    routes = RouteTable([Route(name="money", team="payments", reason="pay:now", answer_by="anyone")])
    play = Playbook(routes=routes)
    play >> agent.interrupts("r1", MONEY) << opened("m")
    play >> client.resumes("r2", m=True) << admitted()
