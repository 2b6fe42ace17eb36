"""With exactly the printed rights every principal can do what the table of topics says, and nothing else.

What is expected is read from the table, not from the code that derives rights; what is found was tried on a
real Kafka, each principal with each operation on each topic, group and transactional id.
"""

from collections.abc import Awaitable, Callable

import pytest
from tests.security.attempts import (
    OPERATIONS,
    attempted,
    cluster_refusals,
    usable_groups,
    usable_transactional_ids,
    visible_rights,
)
from tests.security.secured import PRINCIPALS, Secured, Site, holdshort

from holdshort.settings import load_config
from holdshort.stream.topics import Topic, table

pytestmark = [pytest.mark.broker]

SERVICES = ("gatekeeper", "router")
Found = dict[str, set[str]]


@pytest.fixture(scope="module")
def site(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One of its own: what is tried leaves records that mean nothing."""
    made = Site(secured, tmp_path_factory.mktemp("rights"))
    made.set_up()
    return made


@pytest.fixture(scope="module")
def topics(site: Site) -> list[Topic]:
    config = load_config(site.directory / "holdshort.yaml")
    return table(list(config.agents), list(config.teams))


@pytest.fixture(scope="module")
def found(site: Site, topics: list[Topic]) -> Callable[[str], Awaitable[Found]]:
    """What a principal gets away with, tried once."""
    known: dict[str, Found] = {}

    async def of(principal: str) -> Found:
        if principal not in known:
            known[principal] = await attempted(site, principal, [topic.name for topic in topics])
        return known[principal]

    return of


def meant(principal: str, topic: Topic) -> set[str]:
    """What the table says, in Kafka's operations; who may read or write may also describe."""
    if principal == "admin":
        return {"Create", "Describe", "DescribeConfigs", "AlterConfigs"}
    may = {"Read"} if principal in topic.readers else set()
    may |= {"Write"} if principal in topic.writers else set()
    may |= {"Describe"} if may else set()
    return may | ({"DescribeConfigs"} if may and principal in SERVICES else set())


@pytest.mark.parametrize("principal", PRINCIPALS)
async def test_of_all_operations_on_all_topics_only_those_of_the_table_go_through(
    principal: str, topics: list[Topic], found: Callable[[str], Awaitable[Found]]
) -> None:
    assert await found(principal) == {topic.name: meant(principal, topic) for topic in topics}


@pytest.mark.parametrize(
    ("principal", "operation", "forbidden"),
    [
        ("team-payments", "Write", ["decisions.dba", "decisions.client", "resumes", "inputs", "pending"]),
        ("team-payments", "Read", ["approvals.dba", "receipts.dba", "decisions.payments", "pending"]),
        ("agent-default", "Write", ["pending", "events", "runs.default", "inputs", "resumes"]),
        ("agent-default", "Write", ["agent-events.other"]),
        ("agent-default", "Read", ["runs.other", "events", "inputs"]),
        ("client", "Read", ["decisions.payments", "decisions.client", "approvals.client", "pending"]),
        ("client", "Write", ["resumes", "agent-events.default", "events", "decisions.client"]),
        ("router", "Write", ["pending", "inputs", "events", "runs.default", "gatekeeper.positions"]),
        ("gatekeeper", "Write", ["resumes", "gathering", "inputs", "agent-events.default"]),
        ("gatekeeper", "Read", ["decisions.payments", "approvals.payments", "gathering"]),
        ("operator", "Write", ["inputs", "dead-letters", "pending", "decisions.payments"]),
        ("admin", "Read", ["inputs", "events", "pending", "audit"]),
        ("admin", "Write", ["inputs", "resumes", "pending", "audit"]),
    ],
)
async def test_what_would_undo_the_gate_is_refused(
    principal: str, operation: str, forbidden: list[str], found: Callable[[str], Awaitable[Found]]
) -> None:
    done = await found(principal)

    assert [topic for topic in forbidden if operation in done[topic]] == []


@pytest.mark.parametrize("principal", ["auditor", "tool"])
async def test_who_only_looks_writes_nowhere(
    principal: str, found: Callable[[str], Awaitable[Found]]
) -> None:
    done = await found(principal)

    assert {operation for operations in done.values() for operation in operations} == {"Read", "Describe"}


async def test_an_auditor_reads_what_the_chains_of_the_audit_end_in(
    found: Callable[[str], Awaitable[Found]],
) -> None:
    done = await found("auditor")

    readable = {topic for topic, operations in done.items() if "Read" in operations}
    assert readable == {"audit", "gatekeeper.positions", "router.positions"}


async def test_nobody_may_delete_or_enlarge_a_topic(found: Callable[[str], Awaitable[Found]]) -> None:
    assert {"Alter", "Delete"} < set(OPERATIONS)
    for principal in PRINCIPALS:
        assert not [topic for topic, done in (await found(principal)).items() if done & {"Alter", "Delete"}]


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_a_group_is_its_owners_alone(principal: str, site: Site) -> None:
    groups = {f"{site.prefix}{name}{end}" for name in PRINCIPALS for end in ("", ".receipts", "-2")}
    own = {f"{site.prefix}{principal}"} if principal != "admin" else set()
    if principal != "admin" and principal not in SERVICES and not principal.startswith("agent-"):
        own.add(f"{site.prefix}{principal}.receipts")

    assert usable_groups(site, principal, groups) == own


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_transactional_ids_are_those_of_the_services_alone(principal: str, site: Site) -> None:
    ids = {f"{site.prefix}{name}-0" for name in (*SERVICES, principal)}

    assert usable_transactional_ids(site, principal, ids) == (
        {f"{site.prefix}{principal}-0"} if principal in SERVICES else set()
    )


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_nobody_may_see_or_change_rights_or_passwords(principal: str, site: Site) -> None:
    assert visible_rights(site, principal) == []
    assert cluster_refusals(site, principal) == {"CLUSTER_AUTHORIZATION_FAILED"}


def test_the_administrator_mends_a_topic_and_others_may_not_even_look(site: Site) -> None:
    plan = holdshort(site.environment("admin"), "topics", "plan")
    stranger = holdshort(site.environment("team-payments"), "topics", "plan")

    assert (plan.returncode, plan.stdout) == (0, "The topics are as they must be.\n")
    assert stranger.returncode == 2
    assert "Topic authorization failed" in stranger.stderr
    assert "Traceback" not in stranger.stderr
