"""A real Prometheus scrapes a running stack under load: boards show it, alerts fire on faults alone."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from tests.clients import an_interrupt, paused, started
from tests.installations import Installation, installed
from tests.observability.boards import ALL
from tests.observability.grafana import expressions
from tests.observability.load import CONFIG, TOPICS, Load
from tests.observability.prometheus import Prometheus, scraping

from holdshort import __version__
from holdshort.contract.codes import Code
from holdshort.contract.verdicts import Kind
from holdshort.router.codes import DecisionCode
from holdshort.router.decider import HELD
from holdshort.router.turn import DEEDS
from holdshort.telemetry.catalogue import CATALOGUE
from holdshort.telemetry.metrics import LANE_STATES, OUTCOMES

pytestmark = [
    pytest.mark.broker,
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

THREADS = 12  # of each kind
OWNERS = {("pay:*", "payments"), ("database", "dba"), ("input_required", "client"), ("unrouted",) * 2}
FAULTS = ("HoldshortDeadLetters", "HoldshortTooManyPauses", "HoldshortLaneHalted")


@dataclass
class Story:
    """What Prometheus said at each turn of the story."""

    counts: dict[str, float] = field(default_factory=dict)
    quiet: set[str] = field(default_factory=set)
    firing: dict[str, set[str]] = field(default_factory=dict)
    panels: dict[str, list[float]] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)
    series: list[dict[str, str]] = field(default_factory=list)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def story(
    bootstrap_servers: str,
    prometheus_program: Callable[[str], str],  # noqa: ARG001 - skips where there is none
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Story]:
    directory = tmp_path_factory.mktemp("observed")
    async with installed(bootstrap_servers, directory, CONFIG, topics=TOPICS) as running:
        ports = [process.port for process in running.stack.processes]
        async with scraping(ports, directory) as prometheus:
            yield await told(running, prometheus)


async def told(running: Installation, prometheus: Prometheus) -> Story:
    story, load = Story(), Load(running.wire, random.Random(3))
    await prometheus.until("count(holdshort_build_info)", lambda found: found == 2)
    load.begin(*("teams", "client", "expired", "late") * THREADS)
    await load.until_answered()
    story.counts = {expr: await prometheus.settled(expr, float(wanted)) for expr, wanted in KNOWN.items()}

    killed, router = running.stack.processes
    running.stack.kill(killed)
    await running.stack.until_ready()
    load.begin(*("teams", "client", "expired") * 2)
    await load.until_answered()
    await prometheus.until("sum(changes(process_start_time_seconds[5m]))", lambda found: found >= 1)
    await prometheus.until("sum(holdshort_input_lag_records)", lambda found: found == 0)
    story.quiet = await prometheus.firing()

    running.wire.send("agent-events.default", b"not json", key="wrong")
    story.firing[FAULTS[0]] = await prometheus.until_firing(FAULTS[0])
    for name in ALL:
        for panel, expr in expressions(name).items():
            story.panels[f"{name}: {panel}"] = await prometheus.values(plain(expr))

    pause_without_end(running)
    story.firing[FAULTS[1]] = await prometheus.until_firing(FAULTS[1])

    running.wire.send("gathering", b'{"v": 99}', key="poisoned")
    await asyncio.to_thread(running.wire.flush)
    running.stack.kill(router)
    story.firing[FAULTS[2]] = await prometheus.until_firing(FAULTS[2])
    groups = (await prometheus.ask("rules"))["groups"]
    story.rules = [rule for group in groups for rule in group["rules"]]
    story.series = await prometheus.ask("series", **{"match[]": '{__name__=~"holdshort_.+"}'})
    return story


def plain(expr: str) -> str:
    """A panel's query as Grafana would ask it for everything."""
    return expr.replace("$__rate_interval", "2m").replace("$team", ".*").replace("$service", ".*")


def pause_without_end(running: Installation) -> None:
    """More pauses of one agent than are allowed in any partition."""
    for number in range(40 * running.partitions):
        thread, run = f"endless-{number}", f"r{number}"
        running.wire.send("agent-events.other", started(thread, run))
        running.wire.send("agent-events.other", paused(thread, run, an_interrupt("i", reason="pay:x")))
    running.wire.flush()


KNOWN = {
    "sum(holdshort_interrupts_opened_total)": 7 * THREADS,
    'sum(holdshort_interrupts_opened_total{team="payments", route="pay:*"})': 3 * THREADS,
    'sum(holdshort_interrupts_closed_total{outcome="settled"})': 4 * THREADS,
    'sum(holdshort_interrupts_closed_total{outcome="expired", team="payments"})': THREADS,
    'sum(holdshort_interrupts_pending{team="payments"})': THREADS,
    'sum(holdshort_interrupts_pending{team="dba"})': THREADS,
    "sum(holdshort_interrupt_decision_seconds_count)": 4 * THREADS,
    'sum(holdshort_router_deeds_total{deed="cancelled", team="payments"})': THREADS,
    "sum(holdshort_batches_forwarded_total)": 2 * THREADS,
    "sum(holdshort_batch_wait_seconds_count)": 2 * THREADS,
    'sum(holdshort_batches{state="gathering"})': THREADS,
    'sum(holdshort_records_judged_total{code="PENDING_INTERRUPTS"})': 4 * THREADS,
    'sum(holdshort_decisions_judged_total{team="dba", verdict="accepted"})': 2 * THREADS,
    'sum(holdshort_schema_admissions_total{result="admitted"})': 5 * THREADS,
    'sum(holdshort_lanes{state="running"})': 4,
}
"""What the load brings about, to the number."""


async def test_prometheus_has_what_was_done_to_the_number(story: Story) -> None:
    assert story.counts == KNOWN


async def test_no_alert_fires_while_all_is_well_a_killed_process_included(story: Story) -> None:
    assert story.quiet == set()


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=FAULTS)
async def test_a_fault_fires_its_alert_and_no_other(story: Story, number: int) -> None:
    assert story.firing[FAULTS[number]] == set(FAULTS[: number + 1])


async def test_prometheus_could_evaluate_every_rule(story: Story) -> None:
    assert len(story.rules) > len(FAULTS)
    assert {rule["health"] for rule in story.rules} == {"ok"}


async def test_no_panel_is_empty(story: Story) -> None:
    assert len(story.panels) > 30
    assert [panel for panel, values in story.panels.items() if not values] == []


@pytest.mark.parametrize(
    "panel",
    [
        "approvals: Waiting A",
        "approvals: Oldest question A",
        "approvals: Time to a decision, by team A",
        "approvals: Nobody answered in time, by team A",
        "approvals: Nobody answered in time, by team B",
        "approvals: Conflicts, by team A",
        "approvals: Refused inputs, by code A",
        "approvals: Response schemas A",
        "engine: Lanes at work A",
        "engine: Judged, by verdict A",
        "engine: Refused A",
        "engine: Dead letters, by code A",
        "engine: Time of a transaction B",
        "engine: Restore A",
        "engine: State A",
        "engine: Memory A",
        "engine: Event loop late A",
        "engine: Restarts A",
    ],
)
async def test_a_panel_shows_what_was_done(story: Story, panel: str) -> None:
    assert max(story.panels[panel]) > 0


async def test_every_metric_is_scraped_under_its_name(story: Story) -> None:
    scraped = {series["__name__"].removesuffix("_created") for series in story.series}

    assert scraped - {spec.name for spec in CATALOGUE} == {
        name for spec in CATALOGUE for name in spec.series if name != spec.name
    }


async def test_label_values_are_those_of_closed_sets(story: Story) -> None:
    values: dict[str, set[str]] = defaultdict(set)
    for series in story.series:
        for label, value in series.items():
            values[label].add(value)

    codes = {"", *Code, *DecisionCode, *HELD}
    assert values["code"] <= codes
    assert values["verdict"] <= {*Kind, "accepted", "duplicate", "refused", "unreadable"}
    assert values["deed"] == set(DEEDS)
    assert values["outcome"] == set(OUTCOMES)
    assert values["state"] <= {*LANE_STATES, "gathering", "forwarded", "held"}
    assert values["version"] == {__version__}
    assert len(values["digest"]) == 1, "of the one configuration in force"
    owners = {(one["route"], one["team"]) for one in story.series if "route" in one}
    assert owners == OWNERS
    assert values["team"] == {"payments", "dba", "client", "unrouted"}
    assert all(topic.split(".")[0] in INPUTS for topic in values["topic"])
    assert values.keys() == {
        *(
            "__name__",
            "job",
            "instance",
            "service",
            "code",
            "verdict",
            "outcome",
            "state",
            "version",
            "digest",
            "route",
        ),
        *("team", "topic", "le", "result", "deed"),
    }


INPUTS = {"inputs", "resumes", "agent-events", "decisions", "pending"}
