"""The table of topics is the design's (topics.md)."""

from holdshort.stream.topics import Topic, table

TABLE = {topic.name: topic for topic in table(["default", "billing"], ["payments"])}


def test_every_agent_and_team_has_topics_of_its_own() -> None:
    names = set(TABLE)
    assert {"agent-events.billing", "runs.billing", "agent-events.default", "runs.default"} <= names
    for team in ("payments", "client", "unrouted"):
        assert {f"approvals.{team}", f"decisions.{team}", f"receipts.{team}"} <= names


def test_state_is_compacted_and_talk_is_deleted() -> None:
    compacted = {name for name, topic in TABLE.items() if topic.compact}
    teams = {f"approvals.{team}" for team in ("payments", "client", "unrouted")}
    assert compacted == {"pending", "gathering", "gatekeeper.positions", "router.positions"} | teams


def test_what_is_judged_by_time_carries_the_brokers_time() -> None:
    judged = {name for name, topic in TABLE.items() if topic.append_time}
    assert judged == {
        "inputs",
        "resumes",
        "pending",
        "agent-events.default",
        "agent-events.billing",
        "decisions.payments",
        "decisions.client",
        "decisions.unrouted",
    }


def test_only_the_router_and_operators_write_resumes() -> None:
    assert TABLE["resumes"].writers == ("router", "operator")
    assert TABLE["inputs"].writers == ("client",)


def test_a_dead_letter_fits_whatever_fitted_where_it_came_from() -> None:
    largest = max(int(topic.config()["max.message.bytes"]) for topic in others("dead-letters"))
    assert int(TABLE["dead-letters"].config()["max.message.bytes"]) > largest


def others(name: str) -> list[Topic]:
    return [topic for topic in TABLE.values() if topic.name != name]
