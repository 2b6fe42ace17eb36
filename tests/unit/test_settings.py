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
        ("agnets: {}", "agnets: there is no such setting"),
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


def test_a_key_is_one_persons(tmp_path: Path) -> None:
    def team(second: str) -> str:
        keys = f"ann-1: {{key: {'A' * 43}, decider: ann}}, next: {{key: {'A' * 43}=, decider: {second}}}"
        return f"teams: {{a: {{keys: {{{keys}}}}}}}"

    load_config(written(tmp_path, team("ann")))
    with pytest.raises(MendSettingsError, match="next is the key of ann, too"):
        load_config(written(tmp_path, team("eve")))


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "x" * 41])
def test_a_name_that_cannot_be_a_topic_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MendSettingsError):
        load_config(written(tmp_path, f"teams: {{'{name}': {{}}}}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limits: {input: 0}", "limits.input: must be between 1KiB and 2MiB"),
        ("limits: {input: 10GB}", "limits.input: must be between 1KiB and 2MiB"),
        ("limits: {payload: much}", "limits.payload: a size is a number and a unit"),
        ("start_lease: 0s", "start_lease: must be at least 1s"),
        ("run_lease: 99999999999d", "run_lease: a duration is at most 366d"),
        ("agents: {}", "agents: must name one agent at least"),
        ("agents: {a: {}}\nteams: {}\nagents: {b: {}}", "line 3: agents stands there twice"),
        ("teams: {a: {max_open: 1, max_open: 2}}", "line 1: max_open stands there twice"),
        (
            "teams: {a: {}, b: {}}\nroutes: [{reason: 'x:*', team: a}, {reason: 'x:*', team: b}]",
            "routes[1] matches the same as routes[0]",
        ),
        (
            "teams: {a: {}}\nroutes: [{tool: [x, y], team: a}, {tool: [y, x], team: a, priority: 1}]",
            "routes[1] matches the same as routes[0]",
        ),
        ("teams: {A: {}}", "teams.A: a name is lower-case letters"),
        ("teams: {a: {}}\nroutes: [{reason: x, team: 5}]", "routes[0].team: must be text"),
        ("teams: {a: {}}\nroutes: [{reason: x, team: a, tema: a}]", "routes[0].tema: there is no such"),
        (
            "teams: {a: {}}\nroutes: [{reason: x, team: a, quorum: {need: 99}}]",
            "routes[0].quorum.need: must be",
        ),
        ("cold_resume: maybe", "cold_resume: must be 'refuse' or 'forward'"),
        ("agents: {a: [}", "line 1: not YAML: "),
    ],
)
def test_what_cannot_work_is_refused_in_our_words(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(MendSettingsError) as mistake:
        load_config(written(tmp_path, text))
    assert said in str(mistake.value)
    for words_of_a_library in ("[key]", "Input should", "Extra inputs", "String should", "Value error", "<"):
        assert words_of_a_library not in str(mistake.value)


def test_the_same_route_twice_and_a_name_again_elsewhere_are_no_mistakes(tmp_path: Path) -> None:
    route = "{reason: 'x:*', team: a}"
    text = f"agents: {{a: {{}}}}\nteams: {{a: {{}}}}\nroutes: [{route}, {route}, {{reason: x, team: a}}]"
    assert len(load_config(written(tmp_path, text)).routes) == 3


def test_a_file_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    file = tmp_path / "holdshort.yaml"
    file.write_bytes("teams: {a: {}} # Größe".encode("latin-1"))
    with pytest.raises(MendSettingsError, match=f"^{file}: not UTF-8 at byte 19"):
        load_config(file)


@pytest.mark.parametrize("servers", ["", " ", "a:9092,", ",a:9092"])
def test_no_servers_are_a_mistake(servers: str) -> None:
    with pytest.raises(MendSettingsError, match=r"^KAFKA_BOOTSTRAP_SERVERS: is empty, or a name in it is"):
        load_settings({"KAFKA_BOOTSTRAP_SERVERS": servers})


def test_no_message_is_about_a_variable_without_a_name() -> None:
    with pytest.raises(MendSettingsError) as mistake:
        load_settings({"HOLDSHORT_PARTITIONS": "2", "HOLDSHORT_LANES": "4"})
    assert str(mistake.value) == (
        "there cannot be more lanes than partitions (HOLDSHORT_LANES, HOLDSHORT_PARTITIONS)"
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("KAFKA_BOOTSTRAP_SERVER", "KAFKA_BOOTSTRAP_SERVERS"),
        ("KAFKA_SASL_MECHANISMS", "KAFKA_SASL_MECHANISM"),
        ("KAFKA_SSL_CAFILE", "KAFKA_SSL_CA_FILE"),
        ("HOLD_SHORT_CONFIG", "HOLDSHORT_CONFIG"),
    ],
)
def test_a_variable_that_looks_like_ours_is_told_once(
    name: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    load_settings({name: "x", "KAFKA_HOME": "/opt/kafka"})
    load_settings({name: "x"})
    assert capsys.readouterr().err == f"holdshort: {name} is not read; do you mean {near}?\n"


def test_variables_of_others_are_none_of_our_business(capsys: pytest.CaptureFixture[str]) -> None:
    foreign = (
        "KAFKA_HOME",
        "KAFKA_HEAP_OPTS",
        "KAFKA_SSL_KEYSTORE_PASSWORD",
        "KAFKA_BROKER_ID",
        "KAFKA_OPTS",
    )
    load_settings(dict.fromkeys(foreign, "x"))
    load_settings({"KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_MECHANISMS": "PLAIN"})
    assert capsys.readouterr().err == ""


def test_an_unknown_variable_is_told_with_the_one_that_is_meant() -> None:
    with pytest.raises(
        MendSettingsError, match=r"HOLDSHORT_PARTITONS: .*; do you mean HOLDSHORT_PARTITIONS\?"
    ):
        load_settings({"HOLDSHORT_PARTITONS": "4"})
