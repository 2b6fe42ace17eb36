"""A name that begins with a hyphen is a name; a typing mistake in an option is still told."""

import pytest
import typer
from typer.testing import CliRunner, Result

from holdshort.cli.naming import Named

app = typer.Typer()
ID = "--Rb3fpnePCH-kAMLaO-Zp"


@app.command(cls=Named)
def show(name: str, by: str = "nobody", as_json: bool = typer.Option(False, "--json")) -> None:
    typer.echo(f"{name} {by} {as_json}")


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
