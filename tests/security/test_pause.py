"""Everybody with rights of their own and no others: a pause, a decision and the resume go through.

The services say who they are by SCRAM, the agent by a bearer token, the team by a certificate.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome
from tests.clients import an_input
from tests.security.people import read, send
from tests.security.secured import Served, Site
from tests.security.test_names import bearing, certificate

from holdshort.sdk.agent import AgentWorker
from holdshort.sdk.approver import Approval, Approver, Decision, Receipt, approve

pytestmark = [pytest.mark.broker, pytest.mark.system]


def an_agent(site: Site, **more: str) -> AgentWorker:
    worker = AgentWorker(
        "default", kafka=site.kafka("agent-default", **more), prefix=site.prefix, session_timeout=6.0
    )

    @worker.on_run
    async def pay(run: RunAgentInput) -> AsyncIterator[Any]:
        asked = [Interrupt(id="pay", reason="payments:transfer", message="Pay ACME 950?")]
        outcome = None if run.resume else RunFinishedInterruptOutcome(interrupts=asked)
        paid = run.resume[0].payload if run.resume else None
        yield RunFinishedEvent(thread_id=run.thread_id, run_id=run.run_id, outcome=outcome, result=paid)

    return worker


@asynccontextmanager
async def serving(*services: AgentWorker | Approver) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.serve()) for one in services]
    try:
        yield
    finally:
        for one in services:
            one.stop()
        await asyncio.gather(*tasks)


async def test_a_pause_is_decided_and_resumed_by_those_whose_business_it_is(
    site: Site, tmp_path: Path
) -> None:
    by_token = bearing(tmp_path / "token", site.user("agent-default"), 3600)
    by_certificate = certificate(site, tmp_path, "team-payments")
    heard: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
    team = Approver(
        "payments", kafka=site.kafka("team-payments", **by_certificate), prefix=site.prefix, service="limits"
    )

    @team.on("payments:*")
    async def yes(_: Approval) -> Decision:
        return approve(by="limits")

    @team.on_receipt
    def keep(receipt: Receipt) -> None:
        if receipt.thread_id == "t1" and not heard.done():
            heard.set_result(receipt)

    with (
        Served(site.environment("gatekeeper"), "gatekeeper") as gatekeeper,
        Served(site.environment("router"), "router") as router,
    ):
        gatekeeper.until_ready()
        router.until_ready()
        async with serving(an_agent(site, **by_token), team):
            send(site, "client", "inputs", an_input("t1", "r1"))
            asked, finished = await asyncio.to_thread(
                read, site, "client", "events", 2, type="RUN_FINISHED", threadId="t1"
            )
            [approval] = await asyncio.to_thread(
                read, site, "team-payments", "approvals.payments", 1, threadId="t1"
            )
            told = await asyncio.wait_for(heard, 20)
        gatekeeper.stop()
        router.stop()

    assert asked["outcome"]["interrupts"][0]["id"] == "pay"
    assert finished["result"] == {"approved": True}
    assert approval["team"] == "payments"
    assert told.verdict == "accepted"
    assert {one["verdict"] for one in read(site, "auditor", "audit", 3, threadId="t1")} >= {
        "admitted",
        "opened",
    }
    assert read(site, "tool", "pending", 1, threadId="t1")
    assert "lane_retries" not in gatekeeper.output + router.output


async def test_an_operator_writes_resumes_and_reads_what_could_not_be_used(site: Site) -> None:
    with Served(site.environment("gatekeeper"), "gatekeeper") as gatekeeper:
        gatekeeper.until_ready()
        send(site, "operator", "resumes", {"threadId": "t2", "resume": "nonsense"})
        [letter] = await asyncio.to_thread(read, site, "operator", "dead-letters", 1, threadId="t2")

    assert letter["resume"] == "nonsense"
