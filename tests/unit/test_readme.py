"""README is true: its tables are the registries', and its examples run."""

import re
import subprocess
import sys

from tests.readme import README, parts, renewed

from holdshort.settings import Config, validated

TEXT = README.read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_the_tables_are_those_of_the_registries() -> None:
    for file in parts():
        assert renewed(file) == file.read_text(), "python -m tests.readme renews them"


def test_it_is_short_enough_to_read() -> None:
    assert len(TEXT.splitlines()) < 200


def test_the_example_configuration_is_one() -> None:
    import yaml

    (example,) = blocks("yaml")
    config = validated(Config, yaml.safe_load(example), "README")
    assert set(config.teams) == {"payments", "dba"}


def test_the_example_transcript_is_judged_as_said() -> None:
    (example,) = [block for block in blocks("bash") if "holdshort judge" in block]
    transcript = example.split("<<'EOF'\n")[1].split("EOF")[0]
    done = subprocess.run(
        [sys.executable, "-m", "holdshort.cli", "judge"],
        input=transcript,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.findall(r'"code":"?(\w+)', done.stdout.splitlines()[-1])[0] == "PENDING_INTERRUPTS"


def test_every_file_it_points_to_is_there() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", TEXT):
        assert (README.parent / link).exists(), link
