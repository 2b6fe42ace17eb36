"""The generated parts of the READMEs: `python -m tests.readme` renews them, a test holds them to it.

With `--record`, it runs the demo and records what it says, too.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic_settings import BaseSettings

from holdshort.contract.codes import Code
from holdshort.contract.routes import RESERVED_TEAMS
from holdshort.router.codes import DecisionCode
from holdshort.settings import KafkaSettings, Settings
from holdshort.stream.topics import table

README = Path(__file__).parent.parent / "README.md"
SCHEMAS = README.parent / "schemas" / "README.md"
OPERATING = README.parent / "services" / "operating.md"


def parts() -> dict[Path, dict[str, str]]:
    """Every generated part, by its file and the name of its marker."""
    return {
        README: {"codes": "\n".join(_codes())},
        SCHEMAS: {"decision codes": "\n".join(_decision_codes())},
        OPERATING: {
            "topics": "\n".join(_topics()),
            "kafka settings": "\n".join(_settings(KafkaSettings, "KAFKA_")),
            "settings": "\n".join(_settings(Settings, "HOLDSHORT_")),
        },
    }


def _codes() -> Iterator[str]:
    yield "| code | what it says | sending again helps |"
    yield "|---|---|---|"
    for code in Code:
        yield f"| `{code}` | {_cell(code.sentence)} | {_cell(code.retry)} |"


def _decision_codes() -> Iterator[str]:
    yield "| code | what it says |"
    yield "|---|---|"
    for code in DecisionCode:
        yield f"| `{code}` | {_cell(code.sentence)} |"


def _topics() -> Iterator[str]:
    yield "| topic | key | partitions | kept | written by | read by |"
    yield "|---|---|---|---|---|---|"
    for topic in table(["<agent>"], ["<team>"]):
        if topic.name.rpartition(".")[2] in RESERVED_TEAMS:
            continue
        kept = "the latest of each key" if topic.compact else f"{topic.retention_days} days"
        partitions = "`HOLDSHORT_PARTITIONS`" if topic.partitions == "threads" else "`HOLDSHORT_LANES`"
        writers, readers = ", ".join(topic.writers), ", ".join(topic.readers)
        yield f"| `{topic.name}` | {topic.key} | {partitions} | {kept} | {writers} | {readers} |"


def _settings(model: type[BaseSettings], prefix: str) -> Iterator[str]:
    yield "| variable | default | what it is |"
    yield "|---|---|---|"
    for name, field in model.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        yield f"| `{prefix}{name.upper()}` | {default} | {_cell(field.description or '')} |"


def _cell(text: str) -> str:
    """Text in a Markdown table, where a bar would begin the next cell."""
    return text.replace("|", "\\|")


def recording() -> str:
    """What `./dev demo` shows, once the jars are cached."""
    done = subprocess.run(
        [sys.executable, "-m", "holdshort.cli", "demo"],
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return f"```text\n{done.stdout.strip()}\n```"


def renewed(file: Path, further: dict[str, str] | None = None) -> str:
    """The text of a file with its generated parts as they must be."""
    text = file.read_text()
    for name, part in (parts()[file] | (further or {})).items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        _, marker, after = rest.partition(end)
        assert marker, f"{file.name} has no part {name}"
        text = f"{before}{begin}{part}\n{end}{after}"
    return text


if __name__ == "__main__":
    recorded = {"demo": recording()} if "--record" in sys.argv else {}
    README.write_text(renewed(README, recorded))
    SCHEMAS.write_text(renewed(SCHEMAS))
    OPERATING.write_text(renewed(OPERATING))
    sys.stdout.write("renewed\n")
