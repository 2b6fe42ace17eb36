"""docker-compose.yml: understood by the real docker-compose, and of one mind with settings and commands."""

import subprocess
import sys

import pytest
from tests.packaging.composition import (
    COMPOSE_FILE,
    MOUNTED,
    PROFILES,
    ROOT,
    composition,
    docker_compose,
    kafka_properties,
    of_ours,
    services,
)
from typer.testing import CliRunner

from holdshort.cli import app
from holdshort.settings import KafkaSettings, Settings, load_config
from holdshort.stream.embedded.jars import KAFKA_VERSION
from holdshort.stream.embedded.properties import Cluster, server_properties

SERVED = ("gatekeeper", "router")
every_service = pytest.mark.parametrize("name", sorted(services()))
every_one_of_ours = pytest.mark.parametrize("name", sorted(of_ours()))


# -- understood ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_docker_compose_understands_it_without_a_warning(profile: str) -> None:
    assert composition(profile)["name"] == "holdshort"


def test_docker_compose_would_say_if_it_did_not() -> None:
    assert docker_compose("--profile", "demo", "config", "nobody").returncode != 0


def test_it_fits_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, str(COMPOSE_FILE)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_the_demo_adds_an_agent_and_its_teams_and_nothing_else() -> None:
    alone, demo = (set(composition(profile)["services"]) for profile in ("alone", "demo"))

    assert alone == {"kafka", "topics", "gatekeeper", "router"}
    assert demo - alone == {"demo-agent", "demo-team-payments", "demo-team-dba"}


def test_observability_adds_prometheus_and_grafana_and_nothing_else() -> None:
    alone, observed = (set(composition(profile)["services"]) for profile in ("alone", "observability"))

    assert observed - alone == {"prometheus", "grafana"}


# -- images -------------------------------------------------------------------------------------------------


@every_service
def test_an_image_has_a_tag_that_stays(name: str) -> None:
    image, _, tag = services()[name]["image"].rpartition(":")

    assert image
    assert tag not in ("", "latest")


def test_kafka_is_the_official_image_of_the_version_that_is_tested() -> None:
    assert services()["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"


@every_one_of_ours
def test_a_service_of_ours_is_built_from_our_dockerfile(name: str) -> None:
    built = services()[name]["build"]

    assert (ROOT / built["dockerfile"]).is_file()
    assert built["context"] == str(ROOT)
    assert built.get("args", {}) == ({"EXTRAS": "demo"} if name.startswith("demo-") else {})


# -- settings -----------------------------------------------------------------------------------------------


@every_one_of_ours
def test_every_variable_is_a_setting(name: str) -> None:
    known = {f"KAFKA_{field}".upper() for field in KafkaSettings.model_fields}
    known |= {f"HOLDSHORT_{field}".upper() for field in Settings.model_fields}

    assert set(services()[name]["environment"]) <= known


@every_one_of_ours
def test_the_program_takes_the_settings_as_they_stand(name: str) -> None:
    environment = dict(services()[name]["environment"])
    assert environment["HOLDSHORT_CONFIG"] == MOUNTED
    environment["HOLDSHORT_CONFIG"] = composition("demo")["configs"]["holdshort"]["file"]

    shown = CliRunner().invoke(app, ["config", "show"], env=environment)

    assert shown.exit_code == 0, shown.output
    assert '"replication": 1' in shown.output
    assert '"min_isr": 1' in shown.output


@every_one_of_ours
def test_the_configuration_is_mounted_where_it_is_looked_for(name: str) -> None:
    (mounted,) = services()[name]["configs"]

    assert mounted["source"] == "holdshort"
    assert mounted["target"] == services()[name]["environment"]["HOLDSHORT_CONFIG"]


# -- commands -----------------------------------------------------------------------------------------------


@every_one_of_ours
def test_the_command_exists(name: str) -> None:
    command = services()[name]["command"]
    told = CliRunner().invoke(app, [*command, "--help"])

    assert told.exit_code == 0, told.output


def test_a_team_of_the_demo_is_a_team_of_the_configuration() -> None:
    commands = [one["command"] for one in of_ours().values()]
    teams = [command[1] for command in commands if command[0] == "demo-team"]
    config = load_config(ROOT / composition("demo")["configs"]["holdshort"]["file"])

    assert sorted(teams) == sorted(config.teams)


# -- order and health ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVED)
def test_a_service_is_healthy_when_the_program_says_so(name: str) -> None:
    assert services()[name]["healthcheck"]["test"] == ["CMD", "holdshort", "healthcheck"]


def test_each_waits_for_what_it_needs() -> None:
    waits = {
        name: {other: how["condition"] for other, how in one.get("depends_on", {}).items()}
        for name, one in services().items()
    }

    assert waits["topics"] == {"kafka": "service_healthy"}
    for name in SERVED:
        assert waits[name] == {"topics": "service_completed_successfully"}
    for name in ("demo-agent", "demo-team-payments", "demo-team-dba"):
        assert waits[name] == dict.fromkeys(SERVED, "service_healthy")


# -- safety -------------------------------------------------------------------------------------------------


@every_service
def test_ports_are_published_to_this_machine_only(name: str) -> None:
    published = services()[name].get("ports", [])

    assert [port["host_ip"] for port in published] == ["127.0.0.1"] * len(published)


@every_one_of_ours
def test_a_service_of_ours_may_change_nothing_but_tmp(name: str) -> None:
    service = services()[name]

    assert service["read_only"]
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


# -- the broker ---------------------------------------------------------------------------------------------


def test_the_broker_is_told_nothing_that_the_tested_one_is_not_told() -> None:
    known = server_properties(Cluster.on_ports((21001, 21002)), 1, "/records", {})

    assert kafka_properties().keys() <= known.keys()


def test_one_broker_keeps_one_copy_of_everything_and_makes_nothing_by_accident() -> None:
    told = kafka_properties()

    copies = {name: value for name, value in told.items() if name.endswith((".factor", ".isr", ".replicas"))}
    assert len(copies) == 7
    assert set(copies.values()) == {"1"}
    assert told["auto.create.topics.enable"] == told["unclean.leader.election.enable"] == "false"


def test_every_listener_of_the_broker_has_a_protocol_and_one_is_where_we_look() -> None:
    told = kafka_properties()
    named = {one.partition("://")[0] for one in told["listeners"].split(",")}
    advertised = dict(one.split("://") for one in told["advertised.listeners"].split(","))

    assert named == {one.partition(":")[0] for one in told["listener.security.protocol.map"].split(",")}
    assert named - advertised.keys() == {told["controller.listener.names"]}
    looked_for = {one["environment"]["KAFKA_BOOTSTRAP_SERVERS"] for one in of_ours().values()}
    assert looked_for == {advertised[told["inter.broker.listener.name"]]}


def test_the_brokers_records_outlive_its_container() -> None:
    (volume,) = services()["kafka"]["volumes"]

    assert volume["type"] == "volume"
    assert volume["target"] == kafka_properties()["log.dirs"]
