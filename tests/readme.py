"""The generated parts of README: `python -m tests.readme` renews them, and a test holds README to them.

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


def parts() -> dict[str, str]:
    """Every generated part, by the name of its marker."""
    return {"codes": "\n".join(_codes()), "decision codes": "\n".join(_decision_codes())}


def _codes() -> Iterator[str]:
    yield "| code | what it says | sending again helps |"
    yield "|---|---|---|"
    for code in Code:
        yield f"| `{code}` | {code.sentence} | {code.retry} |"


def _decision_codes() -> Iterator[str]:
    yield "| code | what it says |"
    yield "|---|---|"
    for code in DecisionCode:
        yield f"| `{code}` | {code.sentence} |"


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


def renewed(text: str, further: dict[str, str] | None = None) -> str:
    """README with its generated parts as they must be."""
    for name, part in (parts() | (further or {})).items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        _, marker, after = rest.partition(end)
        assert marker, f"README has no part {name}"
        text = f"{before}{begin}{part}\n{end}{after}"
    return text


if __name__ == "__main__":
    recorded = {"demo": recording()} if "--record" in sys.argv else {}
    README.write_text(renewed(README.read_text(), recorded))
    sys.stdout.write(f"{README.name} renewed\n")
