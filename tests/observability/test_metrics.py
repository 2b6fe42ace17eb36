"""What the metrics say after records that have a known story, and that their labels stay bounded."""

import random
import string
from datetime import UTC, datetime

import pytest
from tests.clients import Json, a_resume, an_input, an_interrupt, finished, paused, started
from tests.observability.catalogue import PAGE, page
from tests.observability.measured import APPS, Measured, measured
from tests.virtual import EPOCH_MS, in_virtual_time, pass_time

from holdshort.stream.errors import Retry
from holdshort.telemetry.catalogue import CATALOGUE, DECISION_SECONDS, Spec
from holdshort.telemetry.metrics import Known, pending_interrupts

CONFIG = """
agents: {default: {}, replaying: {resume: replay}, old: {}}
teams: {payments: {}, dba: {}}
routes:
  - {reason: "pay:*", team: payments}
  - {reason: "db:*", team: dba, name: database}
  - {reason: input_required, team: client, answer_by: anyone}
"""
OF_TWO = """
teams: {payments: {}}
trust_principal: [inputs, decisions.payments]
routes: [{reason: "pay:*", team: payments, quorum: 2}]
"""
ALONE = "agents: {default: {}}"
SCALE = 1000
SCHEMA = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
HOSTILE = {"type": "string", "pattern": "(?=a)b"}
OF_A_MOMENT = (
    "holdshort_interrupts_oldest_timestamp_seconds",  # absent while nothing is open
    "holdshort_last_poll_timestamp_seconds",  # absent until a lane runs
    "holdshort_input_lag_records",  # absent until topics are read
)


async def ask(s: Measured, thread: str, *interrupts: Json, agent: str = "default") -> None:
    """A run that pauses with these questions."""
    await s.send("inputs", an_input(thread, "r1"), headers={"holdshort-agent": agent})
    await s.send(f"agent-events.{agent}", started(thread, "r1"))
    await s.send(f"agent-events.{agent}", paused(thread, "r1", *interrupts))


async def run_what_was_resumed(s: Measured, thread: str) -> None:
    """The agent ends the newest run that it was given for the thread."""
    run = s.said("runs.default", thread)[-1].value["runId"]
    await s.send("agent-events.default", started(thread, run))
    await s.send("agent-events.default", finished(thread, run))


# -- the catalogue ------------------------------------------------------------------------------------------


def test_the_page_is_that_of_the_catalogue() -> None:
    assert PAGE.read_text() == page(), "python -m tests.observability.catalogue renews it"


def test_names_are_as_prometheus_wants_them() -> None:
    names = [spec.name for spec in CATALOGUE]
    assert len(set(names)) == len(names)
    for spec in CATALOGUE:
        assert spec.name.startswith("holdshort_")
        assert not spec.name.endswith(("_total", "_milliseconds", "_ms"))
        assert spec.name.endswith(("_seconds", "_records")) or spec.type != "histogram"
        assert set(spec.labels) <= {
            *("service", "route", "team", "code", "verdict", "outcome", "result", "state", "deed"),
            *("topic", "version", "digest"),
        }


@measured(CONFIG)
async def test_each_service_tells_exactly_what_the_catalogue_says(s: Measured) -> None:
    await ask(s, "t", an_interrupt("i", reason="pay:x"))
    await s.decide("payments", "t", {"i": True})

    for app in APPS:
        told: dict[str, set[tuple[str, ...]]] = {}
        for name, pairs in s.scraped(app):
            told.setdefault(name, set()).add(tuple(label for label, _ in pairs if label != "le"))
        assert told == {
            series: {tuple(sorted(spec.labels))}
            for spec in CATALOGUE
            if app in spec.services and not absent(spec, s)
            for series in spec.series
        }


def absent(spec: Spec, s: Measured) -> bool:
    """Nothing is open any more, so nothing is the oldest."""
    return spec.name == OF_A_MOMENT[0] and s.value("holdshort_interrupts_pending") == 0


@measured(CONFIG)
async def test_decision_times_are_told_apart_from_a_second_to_a_week(s: Measured) -> None:
    bounds = {dict(pairs)["le"] for name, pairs in s.scraped("router") if name == DECISION_SECONDS.series[0]}
    assert {float(bound) for bound in bounds} >= {1, 60, 3600, 24 * 3600, 7 * 24 * 3600}


# -- interrupts ---------------------------------------------------------------------------------------------


@measured(CONFIG)
async def test_what_waits_is_told_by_team_and_since_when(s: Measured) -> None:
    await ask(s, "t1", an_interrupt("i", reason="pay:x"), an_interrupt("j", reason="db:y"))
    opened = s.thread("t1").pause
    await pass_time(600)
    await ask(s, "t2", an_interrupt("i", reason="pay:x"))

    assert opened is not None
    assert s.value("holdshort_interrupts_pending", team="payments") == 2
    assert s.value("holdshort_interrupts_pending", team="dba") == 1
    oldest = s.value("holdshort_interrupts_oldest_timestamp_seconds", team="payments")
    assert 0 <= opened.opened_at / SCALE - oldest < 10
    assert s.value("holdshort_interrupts_opened_total", route="pay:*", team="payments") == 2
    assert s.value("holdshort_interrupts_opened_total", route="database", team="dba") == 1
    await s.restart("gatekeeper")
    assert s.value("holdshort_interrupts_pending", team="payments") == 2  # from the state, not counted


def test_the_oldest_question_of_a_team_is_the_oldest_of_all_lanes() -> None:
    known = Known(["dba"], [])
    lanes = [("dba", 2, 500), ("dba", 1, 300), ("dba", 1, 400), ("dba", 0, 0)]

    pending, oldest = pending_interrupts(known, lanes)

    assert [sample.value for sample in pending.samples] == [4]
    assert [sample.value for sample in oldest.samples] == [300]


@measured(CONFIG)
async def test_the_engine_tells_what_its_lanes_hold_and_how_far_they_are(s: Measured) -> None:
    await ask(s, "t1", an_interrupt("i", reason="pay:x"))
    await ask(s, "t2", an_interrupt("i", reason="pay:x"))
    held = {one.key: len(one.record.value or b"") for one in s.said("pending")}

    assert s.value("holdshort_state_entries", service="gatekeeper") == 2
    assert s.value("holdshort_state_bytes", service="gatekeeper") == sum(held.values())
    assert s.value("holdshort_input_lag_records", topic="inputs") == 0
    assert s.value("holdshort_lanes", state="running") == len(APPS)
    assert s.value("holdshort_restore_remaining_records") == 0
    behind = s.clock.now() / SCALE - s.value("holdshort_last_poll_timestamp_seconds", service="router")
    assert 0 <= behind <= 1
    s.broker.append("inputs", b"t3", b"{}", ())
    assert s.value("holdshort_input_lag_records", topic="inputs") == 1


@measured(CONFIG)
async def test_a_settled_question_was_decided_within_the_time_it_took(s: Measured) -> None:
    await ask(s, "t", an_interrupt("i", reason="pay:x"), an_interrupt("j", reason="db:y"))
    await pass_time(100)
    await s.decide("payments", "t", {"i": True})
    await pass_time(1000)
    await s.decide("dba", "t", {"j": True})
    await run_what_was_resumed(s, "t")

    assert s.value("holdshort_interrupts_closed_total", outcome="settled", team="payments") == 1
    assert s.value("holdshort_interrupts_closed_total", outcome="settled", route="database") == 1
    assert s.value("holdshort_interrupts_closed_total") == 2
    assert s.value("holdshort_interrupts_pending") == 0
    assert s.value("holdshort_interrupt_decision_seconds_sum", team="payments") == pytest.approx(100, abs=5)
    assert s.value("holdshort_interrupt_decision_seconds_sum", team="dba") == pytest.approx(1100, abs=9)
    assert s.value("holdshort_interrupt_decision_seconds_count") == 2
    assert s.value("holdshort_batch_wait_seconds_sum") == pytest.approx(1100, abs=9)
    assert s.value("holdshort_batches_forwarded_total") == 1
    assert s.value("holdshort_decisions_judged_total", team="dba", verdict="accepted") == 1


@measured(CONFIG)
async def test_a_clients_own_answer_has_its_time_too(s: Measured) -> None:
    await ask(s, "t", an_interrupt("i", reason="input_required"))
    await pass_time(50)
    await s.send("inputs", a_resume("t", "r2", {"i": "yes"}))

    assert s.value("holdshort_interrupt_decision_seconds_sum", team="client") == pytest.approx(50, abs=5)
    assert s.value("holdshort_interrupt_decision_seconds_count") == 1


@measured(OF_TWO)
async def test_a_question_of_two_people_is_decided_by_the_second(s: Measured) -> None:
    await ask(s, "t", an_interrupt("i", reason="pay:x"))
    pause = s.thread("t").pause
    assert pause is not None
    for seconds, who in ((10, "ann"), (90, "bob")):
        await pass_time(seconds)
        vote = {"v": 1, "decisionId": who, "threadId": "t", "generation": pause.generation}
        entries = [{"interruptId": "i", "status": "resolved", "payload": True}]
        headers = {"holdshort-principal": who}
        await s.send("decisions.payments", vote | {"resume": entries}, headers=headers)

    assert s.value("holdshort_decisions_judged_total", team="payments", verdict="accepted") == 2
    assert s.value("holdshort_interrupt_decision_seconds_count", team="payments") == 1
    assert s.value("holdshort_interrupt_decision_seconds_sum", team="payments") == pytest.approx(100, abs=5)


@measured(ALONE)
async def test_what_is_cancelled_after_its_expiry_has_expired(s: Measured) -> None:
    soon = datetime.fromtimestamp(EPOCH_MS / SCALE + 60, UTC).isoformat()
    await ask(s, "t1", an_interrupt("i", expiresAt=soon), an_interrupt("j"))
    await ask(s, "t2", an_interrupt("i", expiresAt=soon))
    await s.send("inputs", a_resume("t2", "r2", {"i": True}))
    await run_what_was_resumed(s, "t2")
    await pass_time(100)
    await s.send("inputs", a_resume("t1", "r2", {"i": True, "j": True}))
    assert s.value("holdshort_records_judged_total", code="INTERRUPT_EXPIRED", verdict="refused") == 1
    cancelled = {"interruptId": "i", "status": "cancelled"}
    answered = {"interruptId": "j", "status": "resolved", "payload": True}
    await s.send("inputs", an_input("t1", "r3", resume=[cancelled, answered]))
    await run_what_was_resumed(s, "t1")

    assert s.value("holdshort_interrupts_closed_total", outcome="expired", route="", team="client") == 1
    assert s.value("holdshort_interrupts_closed_total", outcome="settled") == 2


@measured(CONFIG)
async def test_what_the_router_does_at_a_deadline_is_told_by_team(s: Measured) -> None:
    soon = datetime.fromtimestamp(EPOCH_MS / SCALE + 60, UTC).isoformat()
    await ask(s, "t", an_interrupt("i", reason="pay:x", expiresAt=soon))
    assert s.value("holdshort_router_deeds_total") == 0
    await pass_time(100)

    assert s.value("holdshort_router_deeds_total", deed="cancelled", team="payments") == 1
    assert s.value("holdshort_router_deeds_total", deed="forwarded", team="") == 1
    assert s.value("holdshort_interrupt_decision_seconds_count") == 0  # nobody decided


@measured(CONFIG)
async def test_pauses_that_are_superseded_or_abandoned_are_closed_so(s: Measured) -> None:
    await ask(s, "t1", an_interrupt("i", reason="pay:x"))
    await s.send("agent-events.default", paused("t1", "r1", an_interrupt("other", reason="pay:x")))
    await ask(s, "t2", an_interrupt("i", reason="db:y"))
    pause = s.thread("t2").pause
    assert pause is not None
    headers = {"holdshort-action": "abandon", "holdshort-generation": str(pause.generation)}
    await s.send("resumes", an_input("t2", "r9"), headers=headers)

    assert s.value("holdshort_interrupts_closed_total", outcome="superseded", team="payments") == 1
    assert s.value("holdshort_interrupts_closed_total", outcome="abandoned", team="dba") == 1
    assert s.value("holdshort_interrupts_closed_total") == 2
    assert s.value("holdshort_interrupts_pending", team="payments") == 1


@measured(CONFIG)
async def test_a_question_of_nobody_is_seen(s: Measured) -> None:
    await ask(s, "t", an_interrupt("i", reason="something:else"))

    assert s.value("holdshort_interrupts_pending", team="unrouted") == 1


@measured(CONFIG)
async def test_response_schemas_are_admitted_or_refused(s: Measured) -> None:
    good = an_interrupt("i", reason="pay:x", responseSchema=SCHEMA)
    bad = an_interrupt("j", reason="pay:x", responseSchema=HOSTILE)
    await ask(s, "t", good, bad, an_interrupt("k", reason="pay:x"))

    assert s.value("holdshort_schema_admissions_total", result="admitted") == 1
    assert s.value("holdshort_schema_admissions_total", result="refused") == 1


@measured(CONFIG)
async def test_a_run_that_pauses_without_being_gated_is_counted(s: Measured) -> None:
    await s.send("inputs", an_input("t", "r1"), headers={"holdshort-agent": "old"})
    await s.send("agent-events.old", started("t", "r1"))
    legacy = {"type": "CUSTOM", "name": "on_interrupt", "value": "sure?"}
    await s.send("agent-events.old", legacy, key="t")
    assert s.value("holdshort_runs_not_gated_total") == 0
    await s.send("agent-events.old", {"type": "RUN_FINISHED", "threadId": "t", "runId": "r1"})
    await s.send("inputs", an_input("t", "r2"))

    assert s.value("holdshort_runs_not_gated_total") == 1


# -- records and batches ------------------------------------------------------------------------------------


@measured(CONFIG)
async def test_dead_letters_are_counted_by_service_and_code(s: Measured) -> None:
    await s.send("agent-events.default", b"not json", key="t")
    await s.send("decisions.payments", b"not json", key="t")

    assert s.value("holdshort_dead_letters_total", service="gatekeeper", code="MALFORMED_EVENT") == 1
    assert s.value("holdshort_dead_letters_total", service="router", code="MALFORMED_DECISION") == 1
    assert s.value("holdshort_dead_letters_total") == len(s.broker.committed("dead-letters")) == 2


@measured(CONFIG)
async def test_a_batch_that_waits_for_context_is_seen_and_still_after_a_restart(s: Measured) -> None:
    asked = an_interrupt("i", reason="pay:x")
    await s.send("agent-events.replaying", started("t", "r1"))  # begun outside: no input that holds it all
    await s.send("agent-events.replaying", paused("t", "r1", asked))
    assert s.value("holdshort_batches", state="gathering") == 1
    await s.decide("payments", "t", {"i": True})

    for _ in range(2):
        assert s.value("holdshort_batches", state="gathering") == 0
        assert s.value("holdshort_batches", state="held", code="INCOMPLETE_CONTEXT") == 1
        await s.restart("router")


@measured(CONFIG)
async def test_the_same_decision_twice_and_conflicting_ones_are_told_apart(s: Measured) -> None:
    await ask(s, "t", an_interrupt("i", reason="pay:x"), an_interrupt("j", reason="db:y"))
    await s.decide("payments", "t", {"i": True}, decisionId="d")
    await s.decide("payments", "t", {"i": True}, decisionId="d")
    await s.decide("payments", "t", {"i": False})

    def judged(**labels: str) -> float:
        return s.value("holdshort_decisions_judged_total", team="payments", **labels)

    assert judged(verdict="accepted") == judged(verdict="duplicate") == 1
    assert judged(code="ALREADY_DECIDED") == judged(verdict="refused") == 1


@measured(CONFIG)
async def test_how_transactions_end_is_told(s: Measured) -> None:
    def ended(result: str) -> float:
        return s.value("holdshort_transactions_total", service="gatekeeper", result=result)

    await s.send("inputs", an_input("t1", "r1"))
    assert (ended("committed"), ended("failed"), ended("fenced")) == (1, 0, 0)
    assert s.value("holdshort_transaction_seconds_count", service="gatekeeper") == 1
    assert s.value("holdshort_batch_records_sum", service="gatekeeper") == 1

    s.kafkas["gatekeeper"].next_failure = Retry("the answer was lost")
    await s.send("inputs", an_input("t2", "r1"))
    assert (ended("failed"), s.value("holdshort_lane_retries_total", service="gatekeeper")) == (1, 1)
    assert s.value("holdshort_restore_seconds_count", service="gatekeeper") == 2

    s.broker.init_producer(
        s._processes["gatekeeper"][0].settings.transactional_id(0)
    )  # another takes the lane
    await s.send("inputs", an_input("t3", "r1"))
    assert (ended("failed"), ended("fenced")) == (1, 1)
    await pass_time(30)
    assert s.value("holdshort_lanes", service="gatekeeper", state="running") == 1


# -- labels -------------------------------------------------------------------------------------------------


def anything(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_lowercase + ':.- é"\\\n', k=chance.randint(1, 30)))


async def talk_at_random(s: Measured, chance: random.Random) -> None:
    """One thread, its reasons, tools, users, ids and routes as wild as they come."""
    thread = f"{anything(chance)}{chance.random()}"
    reasons = [
        anything(chance),
        f"pay:{anything(chance)}",
        "input_required",
        f"db:{anything(chance)}",
        "tool_call",
    ]
    ids = [f"{anything(chance)}{number}" for number in range(chance.randint(1, 4))]
    interrupts = [
        an_interrupt(id_, reason=chance.choice(reasons), toolCallId=anything(chance)) for id_ in ids
    ]
    await s.send(
        "inputs",
        an_input(thread, anything(chance)),
        headers={"holdshort-agent": chance.choice(["default", anything(chance)]),
                 "holdshort-principal": anything(chance)},
    )  # fmt: skip
    await s.send("agent-events.default", started(thread, "r1"))
    await s.send("agent-events.default", paused(thread, "r1", *interrupts))
    for team in ("payments", "dba", "client", "unrouted"):
        answers: dict[str, Json] = {id_: anything(chance) for id_ in (*ids, anything(chance))}
        await s.send_decision(
            team,
            thread,
            [{"interruptId": id_, "status": "resolved", "payload": one} for id_, one in answers.items()],
            bare=chance.random() < 0.5,
        )
    await s.send("inputs", {"threadId": thread, "runId": anything(chance), "resume": anything(chance)})
    await s.send("agent-events.default", {"type": anything(chance), "runId": anything(chance)}, key=thread)


@measured(CONFIG)
async def test_no_series_appears_that_was_not_there_at_start_whatever_is_said(s: Measured) -> None:
    chance = random.Random(7)
    for _ in range(40):
        await talk_at_random(s, chance)

    for app in APPS:
        before, after = s.at_start[app], s.scraped(app)
        new = {series for series in after.keys() - before.keys() if series[0] not in OF_A_MOMENT}
        assert new == set()
    assert s.value("holdshort_records_judged_total", verdict="refused") > 0
    assert s.value("holdshort_interrupts_opened_total") > 40


def test_a_newer_configuration_is_counted_beside_the_one_before_it() -> None:
    async def main() -> None:
        s = Measured(CONFIG)
        for app in APPS:
            await s.start(app)
        await ask(s, "before", an_interrupt("i", reason="db:y"))
        s.config = Measured(CONFIG.replace("name: database", "name: tables")).config
        for app in APPS:
            s.apps[app].adopt(s.config)
            s._processes[app][0].renew()
            at_start = {name for name in s.scraped(app) if ("route", "tables") in name[1]}
            assert at_start, "the first of each would not be seen to increase"
        await ask(s, "after", an_interrupt("i", reason="db:y"))
        await s.decide("dba", "before", {"i": True})
        await s.decide("dba", "after", {"i": True})
        for route in ("database", "tables"):
            assert s.value("holdshort_interrupts_opened_total", route=route, team="dba") == 1
            assert s.value("holdshort_interrupt_decision_seconds_count", route=route, team="dba") == 1
        for app in APPS:
            await s.stop(app)

    in_virtual_time(main())


def test_what_the_configuration_no_longer_knows_is_counted_as_removed() -> None:
    async def main() -> None:
        s = Measured(CONFIG)
        await s.start("gatekeeper")
        await ask(s, "t", an_interrupt("i", reason="db:y"))
        await s.stop("gatekeeper")
        s.config = Measured(CONFIG.replace("dba", "others")).config
        await s.start("gatekeeper")
        assert s.value("holdshort_interrupts_pending", team="(removed)") == 1
        await s.send("agent-events.default", paused("t", "r1", an_interrupt("other", reason="pay:x")))
        assert s.value("holdshort_interrupts_closed_total", team="(removed)", outcome="superseded") == 1
        assert not [series for series in s.scraped("gatekeeper") if "dba" in dict(series[1]).values()]
        await s.stop("gatekeeper")

    in_virtual_time(main())
