"""The audit in words: every verdict has its sentence, and a tool call's trail is what concerns it."""

import pytest
from tests.audit.chained import CONFIG, asks, brings, story
from tests.clients import an_interrupt, paused, started
from tests.router.scenes import on
from tests.schemas.catalogue import ALL
from tests.systems import System

from holdshort.cli.trails import GATE, ROUTER, Trail, link_said
from holdshort.contract.chains import Chains, Link
from holdshort.contract.hashing import names_of


@pytest.mark.parametrize(("service", "words"), [("gate", GATE), ("router", ROUTER)])
def test_every_verdict_has_its_words(service: str, words: dict[str, str]) -> None:
    known = ALL["audit.v1"].document["$defs"][service]["properties"]["verdict"]["enum"]

    assert set(known) == words.keys()


def trail(system: System, thread: str | None, tool_call: str | None) -> list[Link]:
    kept, chains = Trail(names_of(thread, None), tool_call), Chains({})
    for said in system.said("audit"):
        one = said.record
        link = chains.follow(one.partition, one.offset, one.timestamp, one.key, one.value)
        assert link is not None
        kept.note(link)
    return kept.links()


def told(links: list[Link]) -> list[str]:
    return [f"{link.said.service} {link.said.verdict}" for link in links]


@on(CONFIG)
async def test_every_record_of_a_story_can_be_told(system: System) -> None:
    await story(system)

    links = trail(system, "t", None) + trail(system, "u", None)
    assert len(links) == len(system.said("audit"))
    for link in links:
        said = link_said(link)
        assert "{" not in said
        assert f"written as audit/{link.partition}/{link.offset}" in said


@on(CONFIG)
async def test_the_trail_of_a_call_goes_from_the_question_to_the_run_that_ends_it(system: System) -> None:
    await asks(system)
    await system.decide("payments", "t", {"pay": True}, decidedBy="ann")
    await system.decide("dba", "t", {"drop": False}, decidedBy="bob")
    run = system.said("runs.default", "t")[-1].value["runId"]
    await system.send("agent-events.default", started("t", run))
    await brings(system, run)
    await system.send("agent-events.default", paused("t", run, an_interrupt("other", reason="db:drop")))
    await system.send_decision("dba", "t", [{"interruptId": "other", "status": "cancelled"}])

    links = trail(system, None, "c1")
    assert told(links) == [
        "gatekeeper opened",
        "router accepted",
        "router accepted",
        "router forwarded",
        "gatekeeper admitted",
        "gatekeeper attempted",
        "gatekeeper opened",  # by which the answering run ended; what is said of the next pause is not of c1
    ]
    assert "it ends pause" in link_said(links[-1])
    assert trail(system, "another", "c1") == []
    assert trail(system, None, "c2") == []


@on(CONFIG)
async def test_what_others_chose_cannot_paint_the_terminal(system: System) -> None:
    await asks(system, "t\x1b[2K")

    for link in trail(system, "t\x1b[2K", None):
        assert "\x1b" not in link_said(link)
    await asks(system, "u", "r\x1b[31m1")
    assert any(r"\u{1b}" in link_said(link) for link in trail(system, "u", None))
