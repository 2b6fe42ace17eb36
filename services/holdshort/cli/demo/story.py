"""The story of the demo: each step is done, shown in plain words, and checked."""

import json
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from importlib.resources import as_file, files
from typing import Any, Final

import typer
from rich.console import Console

from holdshort.cli.demo.watch import NotAsSaidError, Sight, Watch
from holdshort.cli.stack import Stack
from holdshort.contract.pending import decode_pending
from holdshort.sdk.approvals import Approval, Decision, answer, approve, decision_record, deny
from holdshort.sdk.wire import broker_of
from holdshort.stream.connection import connection_of
from holdshort.stream.kafka import AioKafka

TOPICS: Final = (
    "inputs",
    "runs.default",
    "events",
    "pending",
    "resumes",
    "audit",
    "approvals.payments",
    "approvals.dba",
    "receipts.payments",
    "receipts.dba",
)
PREFIX: Final = "holdshort-demo."  # on a Kafka that is there already, nobody else's topics
EDITED: Final = {"amount": 95, "to": "ACME"}


async def tell(*, as_json: bool) -> int:
    """Run the demo; returns the exit status."""
    console = Console(stderr=as_json, highlight=False)
    async with AsyncExitStack() as open_things:
        config = open_things.enter_context(as_file(files("holdshort.cli.demo") / "holdshort.yaml"))
        began = time.monotonic()
        if not as_json:
            console.print("Starting an Apache Kafka, its topics, a gatekeeper, a router and an agent ...")
        environment = {"HOLDSHORT_CONFIG": str(config), "HOLDSHORT_PREFIX": PREFIX}
        stack = Stack(environment=environment, console=console, extras=("demo-agent",))
        await open_things.enter_async_context(stack)
        story = await Story.begin(stack, open_things, _teller(console, as_json=as_json), began)
        return await story.tell(console, as_json=as_json)


Teller = Callable[[int, float, str, str, dict[str, Any]], None]


def _teller(console: Console, *, as_json: bool) -> Teller:
    def tell_json(number: int, seconds: float, name: str, said: str, facts: dict[str, Any]) -> None:
        step = {"step": number, "name": name, "seconds": round(seconds, 2), "said": said, **facts}
        typer.echo(json.dumps(step))

    def tell_people(number: int, seconds: float, _: str, said: str, facts: dict[str, Any]) -> None:
        console.print(f"[dim]{seconds:6.2f} s[/dim]  [bold]{number:2}[/bold]  {said}", soft_wrap=True)
        for name, value in facts.items():
            shown = value if isinstance(value, str) else json.dumps(value)
            console.print(f"[dim]              {name}: {shown}[/dim]", soft_wrap=True)

    return tell_json if as_json else tell_people


class Story:
    """One thread from its first input to its last answer."""

    def __init__(self, stack: Stack, watch: Watch, teller: Teller, began: float) -> None:
        self.stack = stack
        self.watch = watch
        self.thread = f"demo-{secrets.token_hex(3)}"
        self.steps = 0
        self.killed = 0
        self._teller = teller
        self._began = began

    @classmethod
    async def begin(cls, stack: Stack, open_things: AsyncExitStack, teller: Teller, began: float) -> "Story":
        kafka_settings, settings, _ = stack.settings()
        kafka = AioKafka(connection_of(kafka_settings, "holdshort-demo"), settings.prefix)
        open_things.push_async_callback(kafka.close)
        broker = broker_of(kafka_settings, "holdshort-demo")
        await open_things.enter_async_context(broker)
        watch = Watch(kafka, broker, settings.prefix, settings.partitions)
        open_things.push_async_callback(watch.close)
        await watch.follow(TOPICS)
        return cls(stack, watch, teller, began)

    async def tell(self, console: Console, *, as_json: bool) -> int:
        """Every step in turn; 1 as soon as something is not as said."""
        steps: tuple[Callable[[], Awaitable[None]], ...] = (
            self.pause,
            self.ask_teams,
            self.refuse_other_input,
            self.refuse_self_approval,
            self.refuse_what_breaks_the_schema,
            self.kill_the_gatekeeper,
            self.decide,
            self.resume,
            self.replay,
        )
        ok = False
        try:
            for step in steps:
                await step()
            ok = True
        except NotAsSaidError as error:
            self.stack.failed = True  # its logs may say why
            console.print(f"[red]Not as said:[/red] {error}", style=None)
        summary = self.summary(ok=ok)
        if as_json:
            typer.echo(json.dumps({"summary": summary}))
        else:
            console.print(_ending(summary), soft_wrap=True)
        sys.stdout.flush()
        return 0 if ok else 1

    def summary(self, *, ok: bool) -> dict[str, Any]:
        receipts = [*self.watch.of("receipts.payments"), *self.watch.of("receipts.dba")]
        return {
            "refused": len(
                self.watch.of("audit", threadId=self.thread, verdict="refused", service="gatekeeper")
            ),
            "decisions": len(receipts),
            "receipts_refused": sum(one.value["verdict"] == "refused" for one in receipts),
            "killed": self.killed,
            "resumes_delivered": len(self.resumed()),
            "seconds": round(time.monotonic() - self._began, 1),
            "ok": ok,
        }

    def said(self, name: str, words: str, **facts: Any) -> None:
        self.steps += 1
        self._teller(self.steps, time.monotonic() - self._began, name, words, facts)

    def check(self, fine: bool, what: str) -> None:
        if not fine:
            raise NotAsSaidError(what)

    # -- what is looked at -----------------------------------------------------------------------------------

    def shown(self, run_id: str, type_: str) -> list[Sight]:
        events = self.watch.of("events", type=type_)
        return [e for e in events if e.key == self.thread and e.headers.get("holdshort-run") == run_id]

    def runs(self) -> list[Sight]:
        return self.watch.of("runs.default", threadId=self.thread)

    def resumed(self) -> list[Sight]:
        return [run for run in self.runs() if "resume" in run.value]

    def approval(self, team: str) -> dict[str, Any]:
        approvals = self.watch.of(f"approvals.{team}", threadId=self.thread)
        return approvals[-1].value if approvals else {}

    def receipt(self, team: str, decision_id: str) -> dict[str, Any]:
        found = self.watch.of(f"receipts.{team}", decisionId=decision_id)
        return found[-1].value if found else {}

    # -- the steps -------------------------------------------------------------------------------------------

    async def pause(self) -> None:
        self.said(
            "start", "Everything is up: Kafka, gatekeeper, router, and a pydantic-ai agent behind its worker."
        )
        await self.send_input("run-1", "Pay ACME 950 and migrate the orders table.")
        await self.watch.until("the run to pause", lambda: bool(self.shown("run-1", "RUN_FINISHED")))
        event = self.shown("run-1", "RUN_FINISHED")[0]
        outcome = event.value["outcome"]
        self.check(outcome["type"] == "interrupt", "the run did not pause")
        await self.check_stored(event)
        asked = [interrupt["message"] for interrupt in outcome["interrupts"]]
        self.said("pause", "The agent calls two dangerous tools at once, and its run pauses.", asks=asked)

    async def check_stored(self, event: Sight) -> None:
        """What clients see of a pause is stored already: `pending` as it is now holds it."""
        stored = await self.watch.latest("pending", self.thread, event.record.partition)
        pause = decode_pending(stored).pause if stored is not None else None
        binding = event.value["outcome"]["interrupts"][0]["metadata"]["holdshort:binding"]
        fine = pause is not None and pause.generation == binding["generation"]
        self.check(fine, "a pause was visible before it was stored")

    async def ask_teams(self) -> None:
        await self.watch.until(
            "both teams to be asked", lambda: bool(self.approval("payments") and self.approval("dba"))
        )
        tools = {team: self.approval(team)["tool"]["name"] for team in ("payments", "dba")}
        self.check(
            tools == {"payments": "transfer_money", "dba": "migrate_database"}, f"wrong questions: {tools}"
        )
        count = [len(self.watch.of(f"approvals.{team}", threadId=self.thread)) for team in tools]
        self.check(count == [1, 1], "a team was asked more than its question")
        self.said("ask", "Each team gets exactly its own question, with tool and arguments.", teams=tools)

    async def refuse_other_input(self) -> None:
        await self.send_input("run-2", "Never mind, just say hello.")
        await self.refused("run-2", "PENDING_INTERRUPTS")
        self.said(
            "refuse",
            "An ordinary input is refused while the answer is outstanding.",
            code="PENDING_INTERRUPTS",
        )

    async def refuse_self_approval(self) -> None:
        entry = {
            "interruptId": "int-call-transfer_money",
            "status": "resolved",
            "payload": {"approved": True},
        }
        await self.send_input("run-3", "I approve.", resume=[entry])
        await self.refused("run-3", "RESERVED_FOR_TEAM")
        self.said(
            "reserve",
            "The client tries to approve the payment itself, and may not.",
            code="RESERVED_FOR_TEAM",
        )

    async def refused(self, run_id: str, code: str) -> None:
        await self.watch.until(f"{code}", lambda: bool(self.shown(run_id, "RUN_ERROR")))
        found = self.shown(run_id, "RUN_ERROR")[0].value["code"]
        self.check(found == code, f"{found} instead of {code}")

    async def refuse_what_breaks_the_schema(self) -> None:
        receipt = await self.decision("payments", answer({"approved": "yes, go"}, by="kim"))
        entry = receipt["entries"][0]
        self.check(entry["code"] == "INVALID_PAYLOAD", f"{entry['code']} instead of INVALID_PAYLOAD")
        problem = entry["problems"][0]
        where = f"{problem['path']} {problem['message']}"
        self.said(
            "schema",
            "Payments' first answer breaks the question's schema; its receipt says where.",
            where=where,
        )

    async def kill_the_gatekeeper(self) -> None:
        gatekeeper = next(one for one in self.stack.processes if one.service == "gatekeeper")
        began = time.monotonic()
        pid = self.stack.kill(gatekeeper)
        self.killed += 1
        await self.stack.until_ready()
        back = f"{time.monotonic() - began:.1f} s"
        self.check(gatekeeper.pid != pid, "the gatekeeper did not die")
        self.said(
            "kill", "The gatekeeper is killed with SIGKILL, and is back with all it knew.", back_after=back
        )

    async def decide(self) -> None:
        paid = await self.decision(
            "payments", approve(edited_args=EDITED, by="kim", comment="the daily limit")
        )
        self.check(paid["verdict"] == "accepted", f"payments' decision: {paid}")
        self.check(not self.watch.of("resumes"), "a batch was sent before every team had decided")
        denied = await self.decision("dba", deny(by="sasha", comment="not before the holidays"))
        self.check(denied["verdict"] == "accepted", f"dba's decision: {denied}")
        self.said(
            "decide", "Payments approves with edited arguments, the database team denies.", edited=EDITED
        )

    async def decision(self, team: str, given: Decision) -> dict[str, Any]:
        """What a person of the team decides, as the SDK writes it; returns the receipt."""
        approval = Approval.model_validate(self.approval(team))
        record = decision_record(approval, given, datetime.now(UTC))
        await self.watch.send(f"decisions.{team}", record, self.thread)
        await self.watch.until("a receipt", lambda: bool(self.receipt(team, record["decisionId"])))
        return self.receipt(team, record["decisionId"])

    async def resume(self) -> None:
        await self.watch.until("the batch to be forwarded", lambda: bool(self.resumed()))
        run_id = self.resumed()[0].value["runId"]
        await self.watch.until("the run to finish", lambda: bool(self.shown(run_id, "RUN_FINISHED")))
        results = {e.value["toolCallId"]: e.value["content"] for e in self.shown(run_id, "TOOL_CALL_RESULT")}
        self.check(results["call-transfer_money"] == "95 sent to ACME", f"the tool ran with {results}")
        self.check("denied" in results["call-migrate_database"], f"the denied tool said {results}")
        said = "".join(e.value["delta"] for e in self.shown(run_id, "TEXT_MESSAGE_CONTENT"))
        self.said(
            "resume", "The router forwards one batch; the agent goes on with what people decided.", agent=said
        )

    async def replay(self) -> None:
        before = len(self.runs())
        batch = self.watch.of("resumes", threadId=self.thread)[0]
        await self.watch.send("resumes", batch.record.value, self.thread, batch.headers)
        await self.watch.until(
            "the same batch to be judged",
            lambda: bool(self.watch.of("audit", threadId=self.thread, verdict="duplicate")),
        )
        self.check(len(self.runs()) == before, "the same batch started another run")
        self.check_exactly_once()
        self.said("replay", "The same batch once more changes nothing: every run was delivered exactly once.")

    def check_exactly_once(self) -> None:
        admissions = [run.headers["holdshort-admission"] for run in self.runs()]
        self.check(len(admissions) == len(set(admissions)) == 2, f"runs delivered: {admissions}")

    async def send_input(self, run_id: str, content: str, **more: Any) -> None:
        value = {
            "threadId": self.thread,
            "runId": run_id,
            "messages": [{"id": f"message-{run_id}", "role": "user", "content": content}],
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {},
            **more,
        }
        await self.watch.send("inputs", value, self.thread)


def _ending(summary: dict[str, Any]) -> str:
    if not summary["ok"]:
        return "[red]Something was not as said.[/red]"
    return (
        f"\n[green]All as said, in {summary['seconds']} s[/green]: {summary['refused']} inputs refused, "
        f"{summary['decisions']} decisions ({summary['receipts_refused']} refused), "
        f"{summary['killed']} process killed, {summary['resumes_delivered']} resume delivered, once."
    )
