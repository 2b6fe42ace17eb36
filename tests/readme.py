"""The generated parts of the READMEs: `python -m tests.readme` renews them, a test holds them to it.

With `--record`, it runs the demo and records what it says, too.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from holdshort.contract.codes import Code
from holdshort.router.codes import DecisionCode

README = Path(__file__).parent.parent / "README.md"
SCHEMAS = README.parent / "schemas" / "README.md"


def parts() -> dict[Path, dict[str, str]]:
    """Every generated part, by its file and the name of its marker."""
    return {
        README: {"codes": "\n".join(_codes())},
        SCHEMAS: {"decision codes": "\n".join(_decision_codes())},
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
    sys.stdout.write("renewed\n")
