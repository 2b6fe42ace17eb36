"""A name that begins with a hyphen is a name; a typing mistake in an option is still told."""

import pytest
import typer
from typer.testing import CliRunner, Result

from holdshort.cli import audit, threads
from holdshort.cli.naming import Helpful, Named

app = typer.Typer()
asking = typer.Typer(cls=Helpful)
ID = "--Rb3fpnePCH-kAMLaO-Zp"


@app.command(cls=Named)
def show(name: str, by: str = "nobody", as_json: bool = typer.Option(False, "--json")) -> None:
    typer.echo(f"{name} {by} {as_json}")


@asking.callback()
def ask(context: typer.Context, team: str | None = None) -> None:
    if team is None:
        context.fail("Missing option '--team'.")


@asking.command()
def deny(name: str, comment: str = "") -> None:
    """Deny one question."""
    typer.echo(f"{name} {comment}")


def said(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["abc"], "abc nobody False"),
        (["-4fpnePCH-kAMLaO-ZpOxx", "--json"], "-4fpnePCH-kAMLaO-ZpOxx nobody True"),
        (["--by", "-kim", "-4fp"], "-4fp -kim False"),
        ([ID], f"{ID} nobody False"),
        (["--json", "--", "--a-thread"], "--a-thread nobody True"),
    ],
)
def test_names_may_begin_with_a_hyphen(words: list[str], expected: str) -> None:
    done = said(*words)

    assert (done.exit_code, done.stdout.strip()) == (0, expected), done.output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["abc", "--jsn"], "No such option: --jsn"),
        (["--jsn", "abc"], "No such option: --jsn"),
        (["--jsn"], "No such option: --jsn"),
        (["abc", "def"], "one name is enough, def is too much"),
        ([], "Missing argument"),
    ],
)
def test_what_is_wrong_is_told(words: list[str], why: str) -> None:
    done = said(*words)

    assert done.exit_code == 2
    assert why in done.output


@pytest.mark.parametrize(
    ("group", "command"),
    [(threads.app, "show"), (threads.app, "release"), (threads.app, "forget"), (audit.app, "trail")],
)
def test_threads_may_begin_with_a_hyphen(
    group: typer.Typer, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets as far as to the settings, of which one is wrong."""
    monkeypatch.setenv("HOLDSHORT_PARTITIONS", "none")

    done = CliRunner().invoke(group, [command, "-4fpnePCH"])

    mistyped = CliRunner().invoke(group, [command, "--yse"])

    assert type(done.exception).__name__ == "MendSettingsError", done.output
    assert mistyped.exit_code == 2
    assert "No such option: --yse" in mistyped.output


def test_help_asks_for_nothing_and_may_be_a_value() -> None:
    helped = CliRunner().invoke(asking, ["deny", "--help"])
    nobody = CliRunner().invoke(asking, ["deny", "a"])
    value = CliRunner().invoke(asking, ["--team", "dba", "deny", "a", "--comment", "--help"])

    assert (helped.exit_code, nobody.exit_code, value.exit_code) == (0, 2, 0)
    assert "Deny one question." in helped.output
    assert "Missing option '--team'" in nobody.output
    assert value.stdout == "a --help\n"
