"""Shell completion: it is made for the common shells, and knows commands and options."""

import os
import subprocess
import sys

import pytest


def holdshort(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """As the executable that the shell calls by its name."""
    program = "import sys; sys.argv[0] = 'holdshort'; from holdshort.cli import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    environment = os.environ | settings
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(shell: str) -> None:
    done = holdshort(_HOLDSHORT_COMPLETE=f"source_{shell}")

    assert done.returncode == 0, done.stderr
    assert "_HOLDSHORT_COMPLETE=complete_" + shell in done.stdout


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("holdshort interr", "interrupts"),
        ("holdshort interrupts ", "abandon"),
        ("holdshort dlq replay --dry", "--dry-run"),
    ],
)
def test_bash_is_told_what_could_follow(words: str, completed: str) -> None:
    place = str(len(words.split(" ")) - 1)
    done = holdshort(_HOLDSHORT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)

    assert completed in done.stdout.split(), done.stderr
