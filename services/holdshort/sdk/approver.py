"""A team's service: a FastStream router that is asked a team's questions and answers some of them.

    from holdshort.sdk.approver import Approval, Approver, Decision, approve

    app = Approver("payments")

    @app.on(tool="transfer_money")
    async def small_amounts(approval: Approval) -> Decision | None:
        return approve(by="limits") if approval.args["amount"] < 100 else None

    app.run()

None means "not now": a person decides elsewhere. Delivery is at least once; an answer that is sent again has
the same decisionId and counts once. A question that somebody else has claimed is asked again when it is free.
"""

import asyncio
import inspect
import re
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import orjson

from holdshort.contract.routes import RouteTable
from holdshort.sdk.approvals import (
    Approval,
    Decision,
    Receipt,
    UnreadableArgumentsError,
    answer,
    approve,
    cancel,
    claim,
    confirm,
    decision_record,
    deny,
    release,
)
from holdshort.sdk.desk import Desk, Patience
from holdshort.sdk.program import main, wiring
from holdshort.sdk.signing import Signer
from holdshort.settings import NAME, KafkaSettings, RouteConfig
from holdshort.stream.records import Record
from holdshort.telemetry.logs import Event, logger

if TYPE_CHECKING:
    from faststream.kafka import KafkaRouter

    from holdshort.sdk.team import TeamWire

__all__ = (
    "Approval",
    "Approver",
    "Decision",
    "Patience",
    "Receipt",
    "UnreadableArgumentsError",
    "answer",
    "approve",
    "cancel",
    "claim",
    "confirm",
    "deny",
    "release",
)

Handler = Callable[[Approval], Decision | Awaitable[Decision | None] | None]
ReceiptHandler = Callable[[Receipt], Awaitable[None] | None]
H = TypeVar("H", bound=Handler)
R = TypeVar("R", bound=ReceiptHandler)

_EVERYTHING: Final = "everything"
CLOCKS_DIFFER_S: Final = 5.0  # a lease ends by the broker's clock


@dataclass(eq=False)
class Approver:
    """Asks registered functions the questions of `team`, and publishes what they answer.

    The cluster is that of `KAFKA_*` and `HOLDSHORT_PREFIX`, unless `kafka` and `prefix` say otherwise.

    service       tells several services of one team apart: each is asked every question
    concurrency   questions considered at once in this process
    grace         seconds that those may go on after SIGTERM
    patience      how often a function that raises is asked again, and when
    signer        signs every answer, as the person whose key it has
    """

    team: str
    _: KW_ONLY
    service: str | None = None
    concurrency: int = 10
    grace: float = 10.0
    patience: Patience = field(default_factory=Patience)
    signer: Signer | None = None
    kafka: KafkaSettings | None = None
    prefix: str | None = None
    _table: RouteTable = field(default_factory=RouteTable, init=False, repr=False)
    _handlers: dict[str, Handler] = field(default_factory=dict, init=False, repr=False)
    _receipt: ReceiptHandler | None = field(default=None, init=False, repr=False)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in (self.team, self.service or "any"):
            if not re.fullmatch(NAME, name):
                raise ValueError(f"a name is like payments-2, not {name!r}")

    # -- handlers ------------------------------------------------------------------------------------------

    def on(self, reason: str | None = None, *, tool: str | None = None) -> Callable[[H], H]:
        """Ask this function: by reason (exact, or `namespace:*`), by tool, or by neither about everything.

        It takes an Approval and returns a Decision, or None to leave the question to others. It may be
        async; if not, it runs in a thread. As in routes, the most specific one is asked, and only that.
        Raises ValueError for what could never match, or is there already.
        """
        name = f"reason {reason}" if reason else f"tool {tool}" if tool else _EVERYTHING
        if name in self._handlers:
            raise ValueError(f"there is a function for {name} already")
        if name != _EVERYTHING:
            checked = RouteConfig(reason=reason, tool=[tool] if tool else [], team=self.team)
            route = msgspec.structs.replace(checked.route(), name=name)
            self._table = RouteTable([*self._table.routes, route])

        def register(function: H) -> H:
            self._handlers[name] = function
            return function

        return register

    def on_receipt(self, function: R) -> R:
        """Tell this function what became of the team's decisions, those of other services too."""
        self._receipt = function
        return function

    async def decide(self, approval: Approval) -> Decision | None:
        """What the functions say to this question; raises what they raise."""
        handler = self._handler(approval)
        if handler is None:
            return None
        decision: Any = await _called(handler, approval)
        if decision is not None and not isinstance(decision, Decision):
            raise TypeError("a function returns what approve(), deny() and the like make, or None")
        return decision

    def _handler(self, approval: Approval) -> Handler | None:
        tool = approval.tool.name if approval.tool else None
        found = self._table.match(approval.reason, tool=tool, bound=False, metadata=None)
        return self._handlers.get(found.route or _EVERYTHING, self._handlers.get(_EVERYTHING))

    # -- serving -------------------------------------------------------------------------------------------

    @property
    def router(self) -> "KafkaRouter":
        """To be included in a FastStream broker of your own: `broker.include_router(app.router)`."""
        return self._wire.router

    @cached_property
    def _wire(self) -> "TeamWire":
        from holdshort.sdk.team import TeamWire  # noqa: PLC0415 - brings FastStream

        _, prefix = wiring(self.kafka, self.prefix)
        group = f"{prefix}team-{self.team}" + (f".{self.service}" if self.service else "")
        return TeamWire(prefix, self.team, group, self._asked, self._told if self._receipt else None)

    @cached_property
    def _desk(self) -> Desk:
        return Desk(
            self._consider,
            self._failed,
            self._commit,
            concurrency=self.concurrency,
            patience=self.patience,
        )

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; a second one ends the process at once. Exits 1 when it must."""
        main(self.serve, self.stop, f"team-{self.team}")

    async def serve(self) -> None:
        """Serve until `stop`. Raises Fatal where the process cannot be of use, MendSettingsError."""
        from holdshort.sdk import wire  # noqa: PLC0415 - brings FastStream

        kafka, _ = wiring(self.kafka, self.prefix)
        broker = wire.broker_of(kafka, f"holdshort-team-{self.team}")
        broker.include_router(self.router)
        log = logger().bind(team=self.team)
        try:
            await wire.start(broker, kafka, self._wire.topics)
            log.info(Event.SERVICE_STARTS)
            await self._stopping.wait()
            self._wire.stop_taking()
            await self._desk.close(self.grace)
        finally:
            await wire.stop(broker)
        log.info(Event.SERVICE_STOPS)

    def stop(self) -> None:
        """Take no more questions, let those being considered finish, then return from `serve`."""
        self._stopping.set()

    async def _asked(self, record: Record) -> None:
        await self._desk.take(record)

    async def _consider(self, record: Record) -> float | None:
        """Ask, and publish the answer; seconds until it is to be asked again, if somebody else holds it."""
        if record.value is None:
            return None  # the team is not needed for this question any more
        approval = Approval.model_validate_json(record.value)
        try:
            decision = await self.decide(approval)
        except UnreadableArgumentsError as error:  # to ask again would not make them readable
            self._failed(record, error, None)
            return None
        now = datetime.now(UTC)
        if decision is None or _holds_already(approval, decision, now):
            return None
        value = self.record(approval, decision, now, f"{record.partition}/{record.offset}")
        if decision.action != "release" and approval.held_by(now) not in (None, value["decidedBy"]):
            return approval.held_for(now) + CLOCKS_DIFFER_S
        await self._wire.publish(approval.thread_id, record.partition, orjson.dumps(value))
        return None

    def record(
        self, approval: Approval, decision: Decision, now: datetime, place: str | None = None
    ) -> dict[str, Any]:
        """The decision.v1 that is published, signed if there is a signer.

        `place` is the approval's in its topic, `partition/offset`: see `decision_record`.
        """
        record = decision_record(approval, decision, now, place)
        answers = decision.action in ("decide", "confirm")
        return self.signer.signed(record, approval) if self.signer is not None and answers else record

    async def _told(self, record: Record) -> None:
        try:
            if self._receipt is not None and record.value is not None:
                await _called(self._receipt, Receipt.model_validate_json(record.value))
        except Exception as error:
            self._failed(record, error, None)

    async def _commit(self, partition: int, position: int) -> None:
        with suppress(Exception):  # then it is another's, or comes again: at least once
            await self._wire.commit(partition, position)

    def _failed(self, record: Record, error: Exception, pause: float | None) -> None:
        """Log where it failed; an exception's text may hold what users said."""
        logger().error(
            Event.APPROVAL_FAILED,
            team=self.team,
            error=type(error).__name__,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            again_in_s=pause,
            traceback="".join(traceback.format_tb(error.__traceback__)),
        )


def _holds_already(approval: Approval, decision: Decision, now: datetime) -> bool:
    """A claim changes the approval, which is asked about again: to claim anew each time would never end."""
    return decision.action == "claim" and decision.by is not None and approval.held_by(now) == decision.by


async def _called(function: Callable[[Any], Any], argument: Any) -> Any:
    """An async function's result; one that is not async may block, so it runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    result = await asyncio.to_thread(function, argument)
    return await result if inspect.isawaitable(result) else result
