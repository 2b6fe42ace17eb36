"""services/metrics.md, which `python -m tests.observability.catalogue` renews and a test holds true."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdshort.telemetry.catalogue import BOTH, CATALOGUE

PAGE: Final = Path(__file__).parents[2] / "services" / "metrics.md"


def page() -> str:
    """The page as it must be."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "Every process serves these on its management port under `/metrics`, beside Python's `process_*`."
    yield "Label values come from closed sets (configuration, codes, states, topics), never from a record."
    yield "A route or team that the configuration does not know any more counts as `(removed)`."
    yield "Made from `telemetry/catalogue.py` by `python -m tests.observability.catalogue`."
    for title, services in (
        ("Gatekeeper and router", BOTH),
        ("Gatekeeper", ("gatekeeper",)),
        ("Router", ("router",)),
    ):
        yield ""
        yield f"## {title}"
        yield ""
        yield "| metric | type | labels | what it says |"
        yield "|---|---|---|---|"
        for spec in CATALOGUE:
            if spec.services == services:
                name = f"{spec.name}_total" if spec.type == "counter" else spec.name
                labels = ", ".join(f"`{label}`" for label in spec.labels)
                yield f"| `{name}` | {spec.type} | {labels} | {spec.help} |"
    yield ""
    yield "The boards *Approvals* and *Engine* and the alert rules lie in `helm/holdshort/files`."
    yield "What to do about an alert stands in [runbooks.md](runbooks.md)."


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name} written\n")
