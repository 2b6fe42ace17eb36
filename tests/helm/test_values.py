"""Values that cannot work are refused before anything is installed, in a sentence that says which and why."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.helm.chart import (
    NAMESPACE,
    RELEASE,
    default_values,
    environment,
    files_of,
    render,
    run,
    template,
    with_helm,
    workloads,
)
from tests.helm.generate import CHART, VALUES_SCHEMA

pytestmark = with_helm


def refusal(*arguments: str) -> str:
    done = template(*arguments)
    assert done.returncode != 0
    assert done.stdout == ""
    return done.stderr


# -- one value ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("gatekeper.replicas=3", "at '': additional properties 'gatekeper' not allowed"),
        ("gatekeeper.replica=3", "at '/gatekeeper': additional properties 'replica' not allowed"),
        ("gatekeeper.replicas=two", "at '/gatekeeper/replicas': got string, want integer"),
        ("router.replicas=-1", "at '/router/replicas': minimum: got -1, want 0"),
        ("router.replicas=null", "at '/router': missing property 'replicas'"),
        (
            "kafka.securityProtocol=TLS",
            "at '/kafka/securityProtocol': value must be one of 'PLAINTEXT', 'SSL',",
        ),
        ("kafka.bootstrapServers=kafka", "at '/kafka/bootstrapServers': 'kafka' does not match pattern"),
        ("kafka.password=hunter2", "at '/kafka': additional properties 'password' not allowed"),
        (
            "kafka.credentials.password=x",
            "at '/kafka/credentials': additional properties 'password' not allowed",
        ),
        ("topics.prefix=Holdshort.", "at '/topics/prefix': 'Holdshort.' does not match pattern"),
        ("topics.partitions=1025", "at '/topics/partitions': maximum: got 1,025, want 1,024"),
        ("topics.madeBy=me", "at '/topics/madeBy': value must be one of 'job', 'strimzi', 'nobody'"),
        ("image.tag=latest", "at '/image/tag': 'not' failed"),
        ("image.digest=sha256:12", "at '/image/digest': 'sha256:12' does not match pattern"),
        ("runAsUser=0", "at '/runAsUser': minimum: got 0, want 1"),
        ("logLevel=info", "at '/logLevel': value must be one of 'DEBUG', 'INFO', 'WARNING', 'ERROR'"),
        ("podDisruptionBudget.maxUnavailable=0", "at '/podDisruptionBudget/maxUnavailable': minimum:"),
        ("strimzi.users.authentication=plain", "at '/strimzi/users/authentication': value must be one of"),
        (
            "commonLabels.app\\.kubernetes\\.io/name=x",
            "at '/commonLabels/app.kubernetes.io~1name': false schema",
        ),
        ("config.agents.Billing.resume=replay", "at '/config/agents': additional properties 'Billing' not"),
        ("config.agents.a.resume=again", "at '/config/agents/a/resume'"),
        ("config.team.payments=null,config.tems.x=1", "at '/config': additional properties"),
        ("config.run_lease=15", "at '/config/run_lease': got number, want string"),
    ],
)
def test_a_value_that_is_none_or_cannot_be_is_refused(value: str, said: str) -> None:
    assert said in refusal("--set", value)


# -- values that do not fit each other ----------------------------------------------------------------------

SASL = "kafka.securityProtocol=SASL_SSL"
WITH_SECRET = f"{SASL},kafka.credentials.existingSecret=s"
STRIMZI = "strimzi.users.enabled=true,strimzi.cluster=events,topics.madeBy=strimzi"
CERTIFICATES = f"{STRIMZI},kafka.securityProtocol=SSL,strimzi.users.authentication=tls"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("topics.lanes=13", "topics.lanes (13) cannot be more than topics.partitions (12)"),
        (
            "config.audit.hash_ids=true",
            "audit.existingSecret must name the Secret with the key that config.audit.hash_ids needs",
        ),
        ("topics.minIsr=4", "topics.minIsr (4) cannot be more than topics.replication (3)"),
        (
            SASL,
            "kafka.credentials.existingSecret (or gatekeeper.credentials.existingSecret) must be given",
        ),
        (
            WITH_SECRET,
            "kafka.credentials.username (or gatekeeper.credentials.username) must be given for SCRAM-SHA-512",
        ),
        (
            f"{WITH_SECRET},gatekeeper.credentials.username=g,router.credentials.username=r",
            "kafka.credentials.username (or topics.credentials.username) must be given for SCRAM-SHA-512",
        ),
        ("topics.madeBy=strimzi", "strimzi.cluster must name the Kafka resource"),
        ("strimzi.users.enabled=true", "strimzi.cluster must name the Kafka resource"),
        (STRIMZI, "strimzi.users.authentication scram-sha-512 needs kafka.securityProtocol SASL_SSL"),
        (
            f"{CERTIFICATES},{SASL}",
            "strimzi.users.authentication tls needs kafka.securityProtocol SSL, not SASL_SSL",
        ),
        (
            f"{STRIMZI},{SASL},topics.madeBy=job",
            "topics.credentials.existingSecret must be given: the Job runs before",
        ),
        (
            f"{CERTIFICATES},topics.prefix={'x' * 54}.",
            "is longer than a certificate's name may be (64 characters): shorten topics.prefix",
        ),
    ],
)
def test_values_that_do_not_fit_each_other_are_refused_in_a_sentence(given: str, said: str) -> None:
    assert said in refusal("--set", given)


def test_tokens_need_no_name_of_a_user() -> None:
    given = f"{WITH_SECRET},kafka.saslMechanism=OAUTHBEARER"

    assert template("--set", given).returncode == 0


def test_a_chart_around_this_one_may_switch_it_and_share_values() -> None:
    assert template("--set", "global.anything=1,enabled=true").returncode == 0


# -- what is written about them -----------------------------------------------------------------------------


def test_the_schema_knows_every_default_and_nothing_more_and_is_closed_everywhere() -> None:
    schema = json.loads(VALUES_SCHEMA.read_text())
    different = []

    def compare(value: Any, shape: dict[str, Any], place: str) -> None:
        shape = schema["$defs"][shape["$ref"].rpartition("/")[2]] if "$ref" in shape else shape
        if "properties" not in shape or place in MAY_BE_EMPTY:
            return
        known = (
            shape["properties"].keys() - {"global", "enabled"} if not place else shape["properties"].keys()
        )
        if (
            value.keys() != known
            or set(shape["required"]) != known - MAY_BE_NULL
            or shape["additionalProperties"]
        ):
            different.append(place)
        for key, inner in value.items():
            compare(inner, shape["properties"][key], f"{place}.{key}")

    compare(default_values(), schema, "")
    assert different == []


MAY_BE_NULL = {"runAsUser"}
# Whose members are all optional.
MAY_BE_EMPTY = {".config"} | {
    f".{whose}.{what}"
    for whose in ("gatekeeper", "router", "topics")
    for what in ("credentials", "resources")
}


def test_every_value_is_explained() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    unexplained = [
        line
        for above, line in pairwise(lines)
        if re.match(r" *[a-z]\w*:", line) and not above.strip() and not line.endswith(":")
    ]

    assert unexplained == []


def test_the_readme_begins_with_values_that_can_be_installed(tmp_path: Path) -> None:
    (example,) = re.findall(r"(?s)```yaml\n(.*?)```", (CHART / "README.md").read_text())
    (tmp_path / "values.yaml").write_text(example)

    found = workloads(render("--values", str(tmp_path / "values.yaml")))
    assert {environment(one)["KAFKA_SASL_USERNAME"] for one in found.values()} == {
        "holdshort-gatekeeper",
        "holdshort-router",
        "holdshort-admin",
    }


def test_the_notes_say_what_to_look_at_and_what_is_dangerous() -> None:
    def notes(*arguments: str) -> str:
        done = run("install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--dry-run=client", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("NOTES:")[2]

    plain, secured = notes(), notes(*files_of("scram"))
    assert "rollout status statefulset/night-holdshort-gatekeeper" in plain
    assert "plain text" in plain
    assert "plain text" not in secured
    assert "6 routers share 4 lanes" in notes("--set", "router.replicas=6")
    assert "holdshort topics apply" in notes("--set", "topics.madeBy=nobody")
