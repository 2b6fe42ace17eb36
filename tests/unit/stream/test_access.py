"""Rights come from the table of topics, and nobody has more (tests/security: so it is on a real Kafka)."""

from collections import defaultdict

from holdshort.stream.access import ADMIN, SERVICES, Operation, Resource, Right, principals
from holdshort.stream.topics import table

AGENTS, TEAMS = ["default", "billing"], ["payments", "pay"]
KNOWN = {one.name: one for one in principals(AGENTS, TEAMS, "x.")}
TABLE = table(AGENTS, TEAMS)


def rights(principal: str, resource: Resource) -> list[Right]:
    return [right for right in KNOWN[principal].rights if right.resource is resource]


def test_everybody_in_the_table_has_rights_and_so_has_who_makes_topics() -> None:
    assert set(KNOWN) == {name for topic in TABLE for name in topic.users} | {ADMIN}
    assert {"agent-billing", "team-payments", "team-client", "client", "operator", "auditor"} < set(KNOWN)


def test_topics_are_named_one_by_one_and_read_and_written_by_whom_the_table_says() -> None:
    may: defaultdict[tuple[str, Operation], set[str]] = defaultdict(set)
    for name in KNOWN:
        for right in rights(name, Resource.TOPIC):
            assert not right.prefixed
            for operation in right.operations:
                may[right.name, operation].add(name)

    for topic in TABLE:
        assert may[f"x.{topic.name}", Operation.READ] == set(topic.readers)
        assert may[f"x.{topic.name}", Operation.WRITE] == set(topic.writers)
        assert may[f"x.{topic.name}", Operation.CREATE] == {ADMIN}
        assert may[f"x.{topic.name}", Operation.DESCRIBE_CONFIGS] == set(topic.users) & set(SERVICES)
    assert {name for name, _ in may} == {f"x.{topic.name}" for topic in TABLE}


def test_only_the_services_have_transactional_ids_and_only_their_own() -> None:
    for name in KNOWN:
        own = [Right(Resource.TRANSACTIONAL_ID, f"x.{name}-", (Operation.WRITE,), prefixed=True)]
        assert rights(name, Resource.TRANSACTIONAL_ID) == (own if name in SERVICES else [])


def test_nobodys_group_is_another_ones_too() -> None:
    groups = {f"x.{name}{end}" for name in KNOWN for end in ("", ".receipts", ".limits.receipts")}
    for name in KNOWN:
        may = {
            group
            for group in groups
            for right in rights(name, Resource.GROUP)
            if group == right.name or (right.prefixed and group.startswith(right.name))
        }
        assert all(group == f"x.{name}" or group.startswith(f"x.{name}.") for group in may)
        assert (f"x.{name}" in may) == (name != ADMIN)


def test_everybody_but_the_services_and_the_administrator_has_a_quota() -> None:
    assert {name for name, one in KNOWN.items() if one.quota is None} == {*SERVICES, ADMIN}
