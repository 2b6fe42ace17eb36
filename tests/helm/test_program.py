"""What a pod is given is what the program takes: its command, its settings, its files."""

import json
from pathlib import Path

import pytest
from tests.helm.chart import (
    CASES,
    Object,
    container,
    environment,
    every_case,
    every_service,
    files_of,
    named,
    pod_template,
    render,
    rendered,
    values,
    with_helm,
    workloads,
)
from tests.helm.mounted import SECRET, materialized
from typer.testing import CliRunner

from holdshort.cli import app
from holdshort.settings import Config, KafkaSettings, Settings

pytestmark = with_helm

# Secrets are files, of which there are settings of their own.
NEVER_VARIABLES = {"KAFKA_SASL_PASSWORD", "KAFKA_SSL_KEY_PASSWORD", "HOLDSHORT_AUDIT_KEY"}


def settings() -> set[str]:
    known = {f"KAFKA_{field}".upper() for field in KafkaSettings.model_fields}
    return known | {f"HOLDSHORT_{field}".upper() for field in Settings.model_fields}


def shown(workload: Object, among: list[Object], root: Path) -> dict[str, Object]:
    """What `holdshort config show` prints with the variables and files of a pod."""
    told = CliRunner().invoke(app, ["config", "show"], env=materialized(workload, among, root))
    assert told.exit_code == 0, told.output
    found: dict[str, Object] = json.loads(told.stdout)
    return found


@every_case
def test_the_command_exists(case: str) -> None:
    for component, workload in workloads(rendered(case)).items():
        arguments = container(workload)["args"]
        assert arguments == (["topics", "apply"] if component == "topics" else [component])
        assert "command" not in container(workload)  # the image's entry point is the program
        assert CliRunner().invoke(app, [*arguments, "--help"]).exit_code == 0


def test_every_setting_can_be_given_and_nothing_else_is() -> None:
    given = {
        one["name"]
        for case in CASES
        for workload in workloads(rendered(case)).values()
        for one in container(workload)["env"]
    }

    assert given == settings() - NEVER_VARIABLES


@every_case
def test_the_program_takes_variables_and_files_of_every_pod_as_they_stand(case: str, tmp_path: Path) -> None:
    given = values(case)
    for component, workload in workloads(rendered(case)).items():
        found = shown(workload, list(rendered(case)), tmp_path / component)

        assert found["config"] == Config.model_validate(given["config"]).model_dump(mode="json")
        assert found["kafka"]["bootstrap_servers"] == given["kafka"]["bootstrapServers"]
        assert found["kafka"]["security_protocol"] == given["kafka"]["securityProtocol"]
        topics = {"prefix", "partitions", "lanes", "replication"}
        assert {name: found["holdshort"][name] for name in topics} == {
            name: given["topics"][name] for name in topics
        }
        assert found["holdshort"]["min_isr"] == given["topics"]["minIsr"]
        assert found["holdshort"]["log_level"] == given["logLevel"]


@pytest.mark.parametrize(
    ("case", "files"),
    [
        ("defaults", set()),
        ("one-broker", set()),
        ("scram", {"sasl_password_file", "ssl_ca_file"}),
        ("strimzi", {"sasl_password_file", "ssl_ca_file"}),
        ("token", {"sasl_oauth_token_file"}),
        ("certificates", {"ssl_ca_file", "ssl_cert_file", "ssl_key_file"}),
        ("everything", {"ssl_ca_file", "ssl_cert_file", "ssl_key_file", "ssl_key_password_file"}),
    ],
)
def test_a_secret_is_a_file_that_is_mounted_where_its_setting_says(
    case: str, files: set[str], tmp_path: Path
) -> None:
    for component, workload in workloads(rendered(case)).items():
        kafka = shown(workload, list(rendered(case)), tmp_path / component)["kafka"]

        named_files = {name: value for name, value in kafka.items() if name.endswith("_file") and value}
        assert named_files.keys() == files
        for path in named_files.values():
            assert Path(path).read_text() == SECRET


def test_the_key_for_names_in_the_audit_is_a_file_of_those_who_write_it(tmp_path: Path) -> None:
    found = {
        (case, component): shown(workload, list(rendered(case)), tmp_path / case / component)["holdshort"]
        for case in ("defaults", "everything")
        for component, workload in workloads(rendered(case)).items()
    }

    files = {whose: one["audit_key_file"] for whose, one in found.items() if one["audit_key_file"]}
    assert files.keys() == {("everything", "gatekeeper"), ("everything", "router")}
    assert {Path(path).read_text() for path in files.values()} == {SECRET}


@every_case
def test_no_secret_is_in_a_variable(case: str) -> None:
    for workload in workloads(rendered(case)).values():
        assert "envFrom" not in container(workload)
        for one in container(workload)["env"]:
            assert one["name"] not in NEVER_VARIABLES
            # The only thing that comes from elsewhere is the name of the pod.
            source = {"fieldRef": {"fieldPath": "metadata.name"}}
            assert one.get("valueFrom", source) == source


def test_a_mounted_secret_is_for_nobody_else_to_read() -> None:
    for case in CASES:
        for workload in workloads(rendered(case)).values():
            for volume in pod_template(workload)["spec"]["volumes"]:
                if volume["name"] in ("credentials", "audit"):
                    assert volume["secret"]["defaultMode"] == 0o440
                    assert volume["secret"]["items"]


def test_each_component_is_who_its_values_say_it_is() -> None:
    users = {
        component: environment(workload)["KAFKA_SASL_USERNAME"]
        for component, workload in workloads(rendered("scram")).items()
    }

    assert users == {one: f"holdshort-{one}" for one in ("gatekeeper", "router")} | {
        "topics": "holdshort-admin"
    }


def test_with_strimzi_each_service_is_the_user_that_is_made_for_it() -> None:
    found = rendered("strimzi")
    for component, workload in workloads(found).items():
        user = environment(workload)["KAFKA_SASL_USERNAME"]
        assert named("KafkaUser", user, found)
        volumes = {one["name"]: one for one in pod_template(workload)["spec"]["volumes"]}
        assert volumes["credentials"]["secret"]["secretName"] == user == f"holdshort-{component}"


@every_service
def test_a_process_is_called_like_its_pod(service: str) -> None:
    (instance,) = (
        one
        for one in container(workloads(rendered("defaults"))[service])["env"]
        if one["name"] == "HOLDSHORT_INSTANCE"
    )

    assert instance["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


@every_service
def test_pods_are_replaced_when_the_configuration_changes_and_only_then(service: str) -> None:
    def template_of(*arguments: str) -> Object:
        return pod_template(workloads(render(*arguments))[service])

    before = pod_template(workloads(rendered("scram"))[service])
    assert template_of(*files_of("scram"), "--set", "monitoring.podMonitor.enabled=true") == before
    after = template_of(*files_of("scram"), "--set", "config.start_lease=21m")
    assert after != before
    assert after["spec"] == before["spec"]
