"""Settings: mistakes are told where they are made, with what to write instead, and never with a secret."""

from pathlib import Path

import pytest

from holdshort.contract.rules import MIB
from holdshort.settings import Config, MendSettingsError, load_config, load_settings


def written(directory: Path, text: str) -> Path:
    file = directory / "holdshort.yaml"
    file.write_text(text)
    return file


def test_without_a_file_there_is_an_agent_and_nobody_to_route_to() -> None:
    rules = load_config(None).rules(12)
    assert set(rules.agents) == {"default"}
    assert rules.default_agent == "default"
    assert rules.routes.match("anything", tool=None, bound=False, metadata=None).team is None


def test_units_stand_in_values(tmp_path: Path) -> None:
    text = "run_lease: 90s\nlimits: {input: 2MiB, memory: 2h}\n"
    rules = load_config(written(tmp_path, text)).rules(1)
    assert (rules.run_lease_ms, rules.limits.input, rules.limits.memory_ms) == (90_000, 2 * MIB, 7_200_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agnets: {}", "agnets: Extra inputs"),
        ("run_lease: 90", "run_lease: a duration is a number and a unit"),
        ("agents: {Billing: {}}", "agents.Billing"),
        ("routes: [{reason: 'a:*', team: nobody}]", "team 'nobody' is routed to but not listed"),
        ("teams: {client: {}}", "reserved"),
        ("teams: {a: {}}\nroutes: [{reason: 'core:x', team: a}]", "the namespace core is reserved"),
        ("teams: {a: {}}\nroutes: [{reason: 'x*', team: a}]", "ends with a separator"),
        ("teams: {a: {}}\nroutes: [{team: a}]", "matches either by reason, or by tool"),
        ("default_agent: ghost", "'ghost' is not listed under agents"),
        ("- a\n- b", "must be a mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_a_mistake_in_the_file_is_told_where_it_is(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(MendSettingsError) as mistake:
        load_config(file)
    assert said in str(mistake.value)
    assert str(file) in str(mistake.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(MendSettingsError, match="No such file"):
        load_config(tmp_path / "absent.yaml")


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(MendSettingsError, match="HOLDSHORT_PARTITONS: there is no such setting"):
        load_settings({"HOLDSHORT_PARTITONS": "4"})


def test_a_wrong_value_names_its_variable_and_not_the_value() -> None:
    with pytest.raises(MendSettingsError) as mistake:
        load_settings({"HOLDSHORT_PARTITIONS": "s3cret"})
    assert "HOLDSHORT_PARTITIONS" in str(mistake.value)
    assert "s3cret" not in str(mistake.value)


def test_more_lanes_than_partitions_are_refused() -> None:
    with pytest.raises(MendSettingsError, match="more lanes than partitions"):
        load_settings({"HOLDSHORT_PARTITIONS": "2", "HOLDSHORT_LANES": "4"})


def test_a_password_comes_from_its_file_and_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    kafka, _, _ = load_settings({"KAFKA_SASL_PASSWORD": "other", "KAFKA_SASL_PASSWORD_FILE": str(file)})
    assert kafka.password() == "s3cret"
    assert "other" not in str(kafka.model_dump(mode="json"))


@pytest.mark.parametrize("name", ["a", "team-1", "x" * 40])
def test_a_name_that_can_be_a_topic_is_taken(name: str) -> None:
    assert name in Config.model_validate({"agents": {name: {}}}).agents


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "x" * 41])
def test_a_name_that_cannot_be_a_topic_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MendSettingsError):
        load_config(written(tmp_path, f"teams: {{'{name}': {{}}}}"))
