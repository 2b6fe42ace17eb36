"""Whatever agents, clients and teams do, in whatever order, and wherever both services crash:

- every interrupt that opened ends in exactly one of answered, cancelled and superseded;
- of a pause each attempt is sent at most once, and no run has two batches;
- a decision counts at most once, and only if its receipt says so;
- who is asked does not depend on the order of decisions.
"""

from collections import Counter, defaultdict
from itertools import permutations
from typing import Any

import msgspec
import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.schemas.both import Both, question, rules

from holdshort.contract.pending import decode_pending
from holdshort.contract.routes import Policy, Route, RouteTable
from holdshort.contract.rules import Rules, TeamRules

HOUR_MS = 3600_000
PLAIN = Policy(ttl_ms=20 * HOUR_MS)
DENIALS = Policy(ttl_ms=20 * HOUR_MS, on_denial="cancel_rest", retry=1)
QUORUM = Policy(ttl_ms=20 * HOUR_MS, quorum=2, deadline_ms=4 * HOUR_MS, on_deadline="answer")
URGED = Policy(ttl_ms=9 * HOUR_MS, remind_ms=HOUR_MS, escalate_ms=2 * HOUR_MS, escalate_to="security")
ROUTES = (
    Route(name="p", team="payments", reason="payments:*", policy=PLAIN),
    Route(name="d", team="payments", reason="denial:*", policy=DENIALS),
    Route(name="q", team="payments", reason="quorum:*", policy=QUORUM),
    Route(name="u", team="payments", reason="urged:*", policy=URGED),
    Route(name="s", team="security", reason="security:*", policy=PLAIN),
    Route(name="c", team="security", reason="chat:*", answer_by="anyone", policy=PLAIN),
)
TRUSTED = frozenset({"inputs", "decisions.payments", "decisions.security"})
REASONS = ("payments:x", "denial:x", "quorum:x", "urged:x", "security:x", "chat:x", "langgraph:x")
PAYLOADS = ({"approved": True}, {"approved": False}, 1)
SCHEMA = {"type": "object"}
IDS = some.sets(some.sampled_from(["i0", "i1", "i2"]), min_size=1)
HOURS = some.sampled_from((0, 3))


def the_rules(**changes: Any) -> Rules:
    return rules(
        routes=RouteTable(ROUTES, "security"),
        trust_principal=TRUSTED,
        teams={"payments": TeamRules(max_open=3)},
        max_attempts=3,
        **changes,
    )


class Router(RuleBasedStateMachine):
    """Gate and router on one partition; between any two records both may be gone and come back."""

    both: Both

    @initialize(crashing=some.booleans())
    def begin(self, crashing: bool) -> None:
        self.both = Crashing(the_rules()) if crashing else Both(the_rules())
        self.runs = 0

    # -- what happens --------------------------------------------------------------------------------------

    @rule(
        reasons=some.lists(some.sampled_from(REASONS), min_size=1, max_size=3),
        hours=some.sampled_from((0, 3)),
    )
    def a_run_pauses(self, reasons: list[str], hours: int) -> None:
        """A new run, or the one that has the answer, asks; perhaps with an expiry."""
        run = self._in_flight()
        if run is None:
            self.runs += 1
            run = f"r{self.runs}"
            self.both.asks(run)
            if self._in_flight() != run:
                return
        self.both.starts(run)
        more = {"expiresAt": _moment(self.both.now + hours * HOUR_MS)} if hours else {}
        ids = enumerate(reasons)
        asked = [question(f"i{n}", reason=one, responseSchema=SCHEMA, **more) for n, one in ids]
        self.both.interrupts(run, *asked)

    @rule(outcome=some.sampled_from(["RUN_FINISHED", "RUN_ERROR"]))
    def the_run_ends(self, outcome: str) -> None:
        if (run := self._in_flight()) is not None:
            self.both.starts(run)
            self.both.event(outcome, run, runId=run)

    @rule(
        team=some.sampled_from(["payments", "security"]),
        ids=IDS,
        payload=some.sampled_from(PAYLOADS),
        who=some.sampled_from(["ann", "bob", "cid", None]),
        name=some.sampled_from(["", "", "", "d1", "d2"]),
        action=some.sampled_from(["decide", "decide", "decide", "confirm", "claim", "release"]),
        off=some.sampled_from([0, 0, 0, 0, 1]),
    )
    def a_team_decides(
        self, team: str, ids: set[str], payload: Any, who: str | None, name: str, action: str, off: int
    ) -> None:
        state = self.both.threads.get(b"t")
        if state is None:
            return
        entries = [{"interruptId": one, "status": "resolved", "payload": payload} for one in sorted(ids)]
        self.both.decides(
            team,
            by=who,
            v=1,
            decisionId=name or f"d-{self.both.now}",
            generation=state.generation + off,
            action=action,
            resume=entries,
            decidedBy=who,
        )

    @rule(
        payload=some.sampled_from(PAYLOADS), ids=some.sets(some.sampled_from(["i0", "i1", "i2"]), min_size=1)
    )
    def a_client_answers(self, payload: Any, ids: set[str]) -> None:
        self.runs += 1
        entries = [{"interruptId": one, "status": "resolved", "payload": payload} for one in sorted(ids)]
        self.both.asks(f"r{self.runs}", resume=entries)

    @rule()
    def an_operator_gives_up(self) -> None:
        state = self.both.threads.get(b"t")
        if state is not None and state.pause is not None:
            self.both.abandons()

    @rule(hours=some.sampled_from([0.3, 1.1, 3, 6]))
    def time_passes(self, hours: float) -> None:
        self.both.passes(hours * 3600)

    @rule()
    def both_crash(self) -> None:
        self.both.crashes()

    def _in_flight(self) -> str | None:
        state = self.both.threads.get(b"t")
        return state.run.run_id if state is not None and state.run is not None else None

    # -- what must be true ---------------------------------------------------------------------------------

    @invariant()
    def an_attempt_is_sent_once(self) -> None:
        if hasattr(self, "both"):
            sent = [orjson.loads(one.value or b"")["runId"] for one in self.both.logs["resumes"]]
            ours = [one for one in sent if one.startswith("hs-") and one != "hs-end"]
            assert len(ours) == len(set(ours))
            admitted = Counter(
                orjson.loads(one.value or b"")["runId"] for one in self.both.logs["runs.default"]
            )
            assert all(count == 1 for count in admitted.values())

    @invariant()
    def a_decision_counts_once_and_is_accounted_for(self) -> None:
        if hasattr(self, "both"):
            for generation, run in batches(self.both):
                _check_batch(self.both, generation, run)

    @invariant()
    def teams_are_shown_what_waits_for_them_and_nothing_else(self) -> None:
        if not hasattr(self, "both"):
            return
        state, gathering = self.both.threads.get(b"t"), self.both.gatherings.get(b"t")
        shown = approvals(self.both)
        if state is None or state.pause is None or state.pause.status != "open" or gathering is None:
            assert not shown
            return
        waiting = (
            set()
            if gathering.settled
            else {(one.team, one.interrupt_id) for one in gathering.asked if one.answer is None}
        )
        assert shown == waiting

    def teardown(self) -> None:
        """Left alone, everything ends: by its deadline, by its `ttl`, or given up."""
        if not hasattr(self, "both"):
            return
        for _ in range(40):
            self.both.passes(6 * 3600)
        state = self.both.threads.get(b"t")
        assert state is None or state.pause is None
        assert not approvals(self.both)
        _check_ends(self.both)


class Crashing(Both):
    """Both services are gone after every single record, and are back with what they had committed."""

    def _read(self, record: Any) -> Any:
        self.crashes()
        return super()._read(record)


def _moment(ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def batches(both: Both) -> list[tuple[int, dict[str, Any]]]:
    """The batches that the router has sent, with the pause they are for."""
    found = []
    for one in both.logs["resumes"]:
        value, headers = orjson.loads(one.value or b""), dict(one.headers)
        if "resume" in value and value["runId"].startswith("hs-"):
            found.append((int(headers["holdshort-generation"]), value))
    return found


def _check_batch(both: Both, generation: int, batch: dict[str, Any]) -> None:
    """Every answer is the router's own, or of a decision whose receipt accepted that entry."""
    for entry in batch["resume"]:
        said = entry["metadata"]["holdshort"]
        if "cause" in said:
            continue
        told = [
            receipt
            for receipt in (orjson.loads(one.value or b"") for one in both.logs[f"receipts.{said['team']}"])
            if receipt["decisionId"] == said["decisionId"] and receipt["generation"] == generation
        ]
        accepted = [
            one
            for receipt in told
            if receipt["verdict"] == "accepted"
            for one in receipt["entries"]
            if one["interruptId"] == entry["interruptId"] and one["verdict"] == "accepted"
        ]
        assert len(accepted) == 1, (said, told)


def approvals(both: Both) -> set[tuple[str, str]]:
    """Team and interrupt of every question that stands in the compacted topics."""
    latest: dict[tuple[str, bytes | None], bytes | None] = {}
    for topic, log in both.logs.items():
        if topic.startswith("approvals."):
            for one in log:
                latest[topic, one.key] = one.value
    values = [(topic, orjson.loads(value)) for (topic, _), value in latest.items() if value is not None]
    for topic, value in values:
        assert topic == f"approvals.{value['team']}"
    return {(value["team"], value["interrupt"]["id"]) for _, value in values}


def _check_ends(both: Both) -> None:
    """Each interrupt that opened has ended in exactly one way: settled by one batch, superseded, given up."""
    opened: dict[int, set[str]] = defaultdict(set)
    ends: dict[int, set[str]] = defaultdict(set)
    for one in both.logs["pending"]:
        if one.value is None:
            continue
        state = decode_pending(one.value)
        if state.pause is not None:
            opened[state.pause.generation] |= set(state.pause.ids)
        for gone in state.gone:
            ends[gone.generation].add(gone.how)
            if gone.how == "settled":
                assert gone.answered_by is not None
    assert opened.keys() == ends.keys()
    assert all(len(how) == 1 for how in ends.values()), ends


Router.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestRouter = Router.TestCase


# -- the order of decisions ---------------------------------------------------------------------------------

ANSWERS = (
    ("payments", "i0", True),
    ("security", "i1", True),
    ("payments", "i2", False),
    ("security", "i3", None),
)


def _asked_in(order: tuple[tuple[str, str, Any], ...]) -> tuple[set[tuple[str, str]], list[Any]]:
    both = Both(the_rules())
    both.asks("r1")
    both.starts("r1")
    reasons = ("payments:x", "security:x", "payments:x", "chat:x")
    both.interrupts("r1", *(question(f"i{n}", reason=reason) for n, reason in enumerate(reasons)))
    generation = both.threads[b"t"].generation
    ever = set(approvals(both))
    for team, id_, payload in order:
        entry = {"interruptId": id_, "status": "resolved", "payload": payload}
        both.decides(team, v=1, decisionId=f"of {id_}", generation=generation, resume=[entry])
        ever |= approvals(both)
    ((_, batch),) = batches(both)
    return ever, [{**entry, "metadata": None} for entry in batch["resume"]]


def test_the_order_of_decisions_changes_neither_who_is_asked_nor_what_is_sent() -> None:
    found = [_asked_in(order) for order in permutations(ANSWERS)]

    assert all(one == found[0] for one in found)
    assert found[0][0] == {("payments", "i0"), ("security", "i1"), ("payments", "i2"), ("security", "i3")}


def test_a_gathering_is_the_same_after_it_was_written_and_read() -> None:
    both = Both(the_rules())
    both.asks("r1")
    both.interrupts("r1", question("i0", reason="quorum:x"), question("i1", reason="urged:x"))
    for gathering in list(both.gatherings.values()):
        written = both.router.encode(b"t", gathering)
        assert both.router.decode(written) == gathering
        assert both.router.mark_of(written) == both.router.mark(gathering)
        assert msgspec.json.decode(written)["v"] == 1
