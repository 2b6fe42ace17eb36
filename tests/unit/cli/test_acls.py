"""`holdshort acls print` as its users drive it; Kafka's own verdict on it is in tests/security."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.security.secured import bindings, commands

from holdshort.stream.access import principals

CONFIG = "agents: {default: {}, billing: {}}\nteams: {payments: {}}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "holdshort.yaml"
    file.write_text(CONFIG)
    return file


def printed(config: Path, *arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "holdshort.cli", "acls", "print", *arguments],
        env={**os.environ, "HOLDSHORT_CONFIG": str(config), "HOLDSHORT_PREFIX": "shop."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def word(member: Any) -> str:
    """Of an enumeration of confluent-kafka, which its annotations take for other things, too."""
    return str(member.name)


Told = set[tuple[str, str, str, bool, str]]


def meant() -> Told:
    """User, kind and name of a resource, whether it begins so, operation (in Kafka's spelling)."""
    return {
        (f"shop-{one.name}", right.resource, right.name, right.prefixed, operation)
        for one in principals(["default", "billing"], ["payments"], "shop.")
        for right in one.rights
        for operation in right.operations
    }


def test_as_commands_they_are_everybodys_rights_and_no_others(config: Path) -> None:
    told = {
        (
            one.principal.removeprefix("User:"),
            word(one.restype).lower().replace("_", "-"),
            one.name,
            word(one.resource_pattern_type) == "PREFIXED",
            word(one.operation).title().replace("_", ""),
        )
        for one in bindings(printed(config))
    }

    assert told == meant()


def test_as_manifests_they_are_the_same(config: Path) -> None:
    users = list(yaml.safe_load_all(printed(config, "--format", "strimzi", "--cluster", "main")))
    told: Told = set()
    for user in users:
        assert (user["apiVersion"], user["kind"]) == ("kafka.strimzi.io/v1", "KafkaUser")
        assert user["metadata"]["labels"] == {"strimzi.io/cluster": "main"}
        for acl in user["spec"]["authorization"]["acls"]:
            resource = acl["resource"]
            kind = "transactional-id" if resource["type"] == "transactionalId" else resource["type"]
            prefixed = {"prefix": True, "literal": False}[resource["patternType"]]
            told |= {
                (user["metadata"]["name"], kind, resource["name"], prefixed, operation)
                for operation in acl["operations"]
            }

    assert told == meant()


def test_quotas_stand_beside_the_rights_in_every_form(config: Path) -> None:
    objects: list[Any] = [json.loads(line) for line in printed(config, "--format", "json").splitlines()]
    users = list(yaml.safe_load_all(printed(config, "--format", "strimzi")))
    told = {
        arguments[-1]: arguments[arguments.index("--add-config") + 1]
        for arguments in commands(printed(config), "kafka-configs.sh")
    }

    assert told == {
        one["user"]: "producer_byte_rate={produce},consumer_byte_rate={consume}".format(**one["quota"])
        for one in objects
        if one["quota"]
    }
    assert {user["metadata"]["name"]: user["spec"].get("quotas") for user in users} == {
        one["user"]: one["quota"]
        and {"producerByteRate": one["quota"]["produce"], "consumerByteRate": one["quota"]["consume"]}
        for one in objects
    }
    assert "shop-team-payments" in told
    assert "shop-gatekeeper" not in told


def test_one_principal_can_be_asked_for_and_called_as_kafka_calls_it(config: Path) -> None:
    script = printed(config, "--principal", "agent-billing", "--user", "CN={},O=shop")

    assert {one.principal for one in bindings(script)} == {"User:CN=agent-billing,O=shop"}


def test_a_principal_that_is_not_there_is_told_with_those_that_are(config: Path) -> None:
    said = printed(config, "--principal", "team-dba", status=2)

    assert said.startswith("holdshort: there is no principal team-dba; there are gatekeeper, router, ")


def test_a_name_for_users_without_a_place_for_the_principal_is_refused(config: Path) -> None:
    assert "{} must stand in it once" in printed(config, "--user", "everybody", status=2)
