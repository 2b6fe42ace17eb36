"""Topics and users of a release are those of the table in the code, whatever its agents and teams are."""

from pathlib import Path
from typing import Any

import pytest
from tests.helm.chart import Object, default_values, of_kind, render, rendered, values, with_helm
from tests.helm.generate import RENEW, TABLE, VALUES_SCHEMA, files, printed_users

from holdshort.settings import Config, KafkaSettings, Settings
from holdshort.stream.topics import table

STRIMZI = ("strimzi", "everything")


@pytest.mark.parametrize("path", [TABLE, VALUES_SCHEMA], ids=lambda path: path.name)
def test_what_is_made_from_the_code_is_as_the_code_has_it_now(path: Path) -> None:
    assert path.read_text() == dict(files())[path], RENEW


def test_the_defaults_are_those_of_the_program() -> None:
    topics, kafka = default_values()["topics"], default_values()["kafka"]
    mine = {
        "prefix": topics["prefix"],
        "partitions": topics["partitions"],
        "lanes": topics["lanes"],
        "replication": topics["replication"],
        "min_isr": topics["minIsr"],
        "log_level": default_values()["logLevel"],
    }

    assert mine == {name: Settings.model_fields[name].default for name in mine}
    for name, value in (("securityProtocol", "security_protocol"), ("saslMechanism", "sasl_mechanism")):
        assert kafka[name] == KafkaSettings.model_fields[value].default


# -- in a release -------------------------------------------------------------------------------------------


def expected_topics(given: Object) -> dict[str, Any]:
    """What the program would make of the values (stream/admin.py), by name."""
    topics = given["topics"]
    config = Config.model_validate(given["config"])
    return {
        topics["prefix"] + one.name: {
            "partitions": topics["lanes"] if one.partitions == "lanes" else topics["partitions"],
            "replicas": topics["replication"],
            "config": one.config() | {"min.insync.replicas": str(topics["minIsr"])},
        }
        for one in table(list(config.agents), list(config.teams))
    }


def specs(kind: str, among: list[Object]) -> dict[str, Any]:
    return {one["metadata"]["name"]: one["spec"] for one in of_kind(kind, among)}


def rights(spec: Any) -> Any:
    """A user's rights without their order, and its quotas."""
    acls = [
        (tuple(sorted(one["resource"].items())), tuple(sorted(one["operations"])))
        for one in spec["authorization"]["acls"]
    ]
    assert len(acls) == len(set(acls))
    return sorted(acls), spec.get("quotas")


def expected_users(given: Object) -> dict[str, Any]:
    """What `holdshort acls print` prints for the values, by name."""
    config = Config.model_validate(given["config"])
    prefix = given["topics"]["prefix"]
    users = printed_users(list(config.agents), list(config.teams), prefix)
    return {prefix.replace(".", "-") + one["metadata"]["name"]: rights(one["spec"]) for one in users}


@pytest.mark.parametrize("case", STRIMZI)
class TestStrimzi:
    """KafkaTopics and KafkaUsers."""

    pytestmark = with_helm

    def test_topics_are_those_of_the_table(self, case: str) -> None:
        assert specs("KafkaTopic", list(rendered(case))) == expected_topics(values(case))

    def test_users_are_those_that_are_printed_but_for_who_makes_topics(self, case: str) -> None:
        expected = expected_users(values(case))
        del expected[values(case)["topics"]["prefix"].replace(".", "-") + "admin"]

        found = specs("KafkaUser", list(rendered(case)))
        assert {name: rights(spec) for name, spec in found.items()} == expected

    def test_the_operators_find_them_and_helm_does_not_delete_topics(self, case: str) -> None:
        found = rendered(case)
        for one in of_kind("KafkaTopic", found) + of_kind("KafkaUser", found):
            assert one["metadata"]["labels"]["strimzi.io/cluster"] == values(case)["strimzi"]["cluster"]
        for one in of_kind("KafkaTopic", found):
            assert one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"

    def test_users_say_who_they_are_in_the_way_that_was_chosen(self, case: str) -> None:
        chosen = values(case)["strimzi"]["users"]["authentication"]

        found = specs("KafkaUser", list(rendered(case)))
        assert {spec["authentication"]["type"] for spec in found.values()} == {chosen}


class TestNobodyNamed:
    """Values without agents and teams."""

    pytestmark = with_helm

    def test_without_agents_there_are_the_topics_of_the_default_one(self) -> None:
        found = render("--set", "topics.madeBy=strimzi,strimzi.cluster=c")

        assert specs("KafkaTopic", found) == expected_topics(default_values())
        assert "holdshort.runs.default" in specs("KafkaTopic", found)

    def test_who_makes_topics_by_the_job_has_a_user_too(self) -> None:
        given = default_values()
        given["topics"]["madeBy"] = "job"
        secured = "kafka.securityProtocol=SASL_SSL,strimzi.cluster=c,strimzi.users.enabled=true"
        own = "topics.credentials.existingSecret=admin,topics.credentials.username=admin"
        found = render("--set", f"{secured},{own}")

        users = specs("KafkaUser", found)
        assert {name: rights(spec) for name, spec in users.items()} == expected_users(given)
        assert of_kind("KafkaTopic", found) == []
