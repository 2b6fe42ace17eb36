"""`holdshort routes` and the warnings of `config check`, as an operator sees them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from holdshort.cli import app
from holdshort.settings import MendSettingsError

CONFIG = """
agents: {default: {}, graph: {cancel: unsafe}}
teams: {payments: {max_open: 5}, dba: {}, legal: {}}
default_team: payments
routes:
  - {reason: "payments:*", team: payments, deadline: 2h, escalate_after: 90m, escalate_to: dba}
  - {reason: "payments:eu:*", team: dba, on_deadline: answer}
  - {tool: [transfer_money, refund], team: payments}
  - {tool: refund, metadata: {env: prod}, team: dba, name: refunds-in-production}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "holdshort.yaml"
    file.write_text(CONFIG)
    monkeypatch.setenv("HOLDSHORT_CONFIG", str(file))
    return file


def holdshort(*command: str) -> Result:
    return CliRunner().invoke(app, command)


def explained(*arguments: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(holdshort("routes", "explain", *arguments, "--json").stdout)
    return said


@pytest.mark.usefixtures("file")
def test_explain_says_who_wins_and_why_the_others_do_not() -> None:
    said = holdshort("routes", "explain", "payments:eu:refund", "--tool", "refund").stdout.splitlines()

    assert said[:5] == [
        "goes to dba (routes[1], route payments:eu:*): the first that matches, by namespace",
        "answer_by: team",
        "  routes[1] namespace: reason payments:eu:* -> dba: wins",
        (
            "  routes[0] namespace: reason payments:* -> payments: does not: "
            "payments:eu:* is the longer namespace"
        ),
        (
            "  routes[2] tool and metadata: tool refund/transfer_money -> payments: does not: "
            "namespace goes before tool and metadata"
        ),
    ]
    assert "on_deadline: answer: a denial" in said


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["x", "--tool", "transfer_mony"],
            "no route names the tool transfer_mony; did you mean transfer_money?",
        ),
        (["tool_call", "--tool", "Refund"], "no route names the tool Refund; did you mean refund?"),
        (
            ["tool_call", "--tool", "drop"],
            "no route names the tool drop; the routes name the tools refund, transfer_money",
        ),
        (["payment:refund"], "no route names the reason payment:refund; did you mean payments:*?"),
        (["Payments:refund"], "no route names the reason Payments:refund; did you mean payments:*?"),
        (["payments.refund"], "no route names the reason payments.refund; did you mean payments:*?"),
        (["payments"], "no route names the reason payments; did you mean payments:*?"),
        (["payment:eu:x"], "no route names the reason payment:eu:x; did you mean payments:eu:*?"),
        (
            ["legal:x"],
            "no route names the reason legal:x; the routes name the reasons payments:*, payments:eu:*",
        ),
    ],
)
def test_explain_says_what_was_probably_meant(arguments: list[str], said: str) -> None:
    assert said in explained(*arguments)["hints"]
    assert f"hint: {said}" in holdshort("routes", "explain", *arguments).stdout.splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        ["payments:x"],
        ["payments:x", "--tool", "transfer_mony"],  # the reason goes before the tool
        ["tool_call", "--tool", "refund"],
        ["x", "--tool", "refund"],
        ["confirmation"],
        ["core:payments"],
    ],
)
@pytest.mark.usefixtures("file")
def test_explain_does_not_guess_where_a_route_is_found_or_none_can_be(arguments: list[str]) -> None:
    assert explained(*arguments)["hints"] == []


@pytest.mark.usefixtures("file")
def test_explain_asks_for_the_tool_where_it_decides() -> None:
    assert explained("tool_call")["hints"] == ["say which tool it asks about: --tool NAME"]


@pytest.mark.usefixtures("file")
def test_explain_says_how_the_team_is_asked() -> None:
    said = explained("payments:refund")

    assert (said["team"], said["place"], said["maxOpen"], said["cancelsByItself"]) == ("payments", 0, 5, True)
    assert said["policy"]["deadline"] == "2h, or the earliest expiry of the pause less a margin"
    assert said["policy"]["escalateAfter"] == "1h 30m, to dba"
    assert said["policy"]["quorum"] == "1"


@pytest.mark.usefixtures("file")
def test_metadata_are_json_values_or_text() -> None:
    assert [
        one["place"] for one in explained("x", "--tool", "refund", "--metadata", "env=prod")["routes"]
    ] == [2, 3]
    assert [one["place"] for one in explained("x", "--tool", "refund", "--metadata", "env=1")["routes"]] == [
        2
    ]


@pytest.mark.usefixtures("file")
def test_an_agent_that_may_take_a_cancel_for_a_yes_is_told() -> None:
    warning = "nothing is cancelled by itself: this agent may take a cancel for a yes"
    assert warning in holdshort("routes", "explain", "x", "--agent", "graph").stdout
    assert warning not in holdshort("routes", "explain", "x", "--agent", "default").stdout
    assert not explained("langgraph:x")["cancelsByItself"]


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--agent", "nobody"], "--agent nobody: there is no such agent; there are default, graph"),
        (["--metadata", "env"], "--metadata env: must be NAME=VALUE"),
    ],
)
def test_what_cannot_be_explained_is_said_in_a_sentence(arguments: list[str], said: str) -> None:
    done = holdshort("routes", "explain", "x", *arguments)

    assert isinstance(done.exception, MendSettingsError)
    assert str(done.exception) == said


@pytest.mark.usefixtures("file")
def test_list_prints_the_routes_as_they_are_asked_and_what_is_left() -> None:
    places = [json.loads(line)["place"] for line in holdshort("routes", "list", "--json").stdout.splitlines()]
    lines = holdshort("routes", "list").stdout.splitlines()

    assert places == [1, 0, 2, 3]
    assert lines[-1].split() == ["else", "payments", "team"]


def test_a_reason_that_would_move_the_cursor_is_shown_as_its_code(file: Path) -> None:
    file.write_text(CONFIG.replace("payments:eu:*", "payments:\\e[2J:*"))
    assert "\x1b" not in holdshort("routes", "explain", "payments:\x1b[2J:x").stdout


def test_config_check_warns_and_is_strict_if_asked(file: Path) -> None:
    done, strict = holdshort("config", "check"), holdshort("config", "check", "--strict")

    assert (done.exit_code, strict.exit_code) == (0, 1)
    assert done.stderr.splitlines() == [
        (
            f"{file}: warning: routes[3] (refunds-in-production): is never used: "
            "routes[2] stands before it and matches all that it does"
        ),
        f"{file}: warning: teams.legal: is never asked: no route names it, and it is not the default_team",
    ]
    assert done.stdout.startswith(f"{file}: fine: 2 agents, 3 teams, 4 routes")
    assert "fine" not in strict.stdout


def test_config_check_is_strict_about_warnings_alone(file: Path) -> None:
    file.write_text("teams: {a: {}}\ndefault_team: a\n")
    assert holdshort("config", "check", "--strict").exit_code == 0


def test_config_check_asks_for_the_key_that_the_services_will_ask_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("teams: {a: {}}\ndefault_team: a\naudit: {hash_ids: true}\n")
    without = holdshort("config", "check")
    monkeypatch.setenv("HOLDSHORT_AUDIT_KEY", "0123456789abcdef")

    assert without.exit_code != 0
    assert "HOLDSHORT_AUDIT_KEY_FILE" in str(without.exception)
    assert holdshort("config", "check").exit_code == 0
