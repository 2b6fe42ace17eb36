"""The boards: committed as they are made, each panel explained, no metric in them that nobody tells."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.observability.boards import ALL, Panel
from tests.observability.grafana import BOARDS, expressions, made
from tests.observability.prometheus import RULES

from holdshort.telemetry.catalogue import CATALOGUE

every_board = pytest.mark.parametrize("name", ALL)
SERIES = {series: spec for spec in CATALOGUE for series in spec.series}
OF_PYTHON = {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds"}


def series_in(expr: str) -> set[str]:
    """The names of series that an expression reads."""
    return set(re.findall(r"\b(?:holdshort|process)_[a-z_]+\b", expr))


def rules() -> list[dict[str, str]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[Panel]:
    return [panel for board in ALL.values() for row in board.rows for panel in row.panels]


@every_board
def test_the_committed_board_is_the_one_that_is_made(name: str) -> None:
    committed = (BOARDS / f"{name}.json").read_text()

    assert committed == made(name), "python -m tests.observability.grafana writes it"


def test_there_is_no_board_that_is_not_made() -> None:
    assert {file.stem for file in BOARDS.iterdir()} == set(ALL)


@every_board
def test_a_board_has_places_and_names_of_its_own_for_all(name: str) -> None:
    board = json.loads((BOARDS / f"{name}.json").read_text())
    ids = [panel["id"] for panel in board["panels"]]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]

    assert len(set(ids)) == len(ids)
    assert len(set(places)) == len(places)
    assert board["uid"] == f"holdshort-{name}"
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", ALL[name].label]


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel.title)
def test_a_panel_says_what_it_is_for_and_counters_are_rated(panel: Panel) -> None:
    assert panel.title
    assert panel.description.endswith(".")
    assert panel.unit
    for query in panel.queries:
        assert panel.number or query.legend or len(panel.queries) == 1
        for counter in re.findall(r"holdshort_\w+?_total", query.expr):
            assert re.search(rf"(rate|increase)\({counter}\b", query.expr), query.expr


@pytest.mark.parametrize(
    "expr",
    [*(expr for name in ALL for expr in expressions(name).values()), *(rule["expr"] for rule in rules())],
)
def test_every_series_that_is_asked_for_is_told_with_the_labels_that_are_asked_for(expr: str) -> None:
    names = series_in(expr)
    assert names
    assert names <= SERIES.keys() | OF_PYTHON
    told = {label for name in names & SERIES.keys() for label in SERIES[name].labels}
    asked = set(re.findall(r"(\w+)\s*=~?\s*\"", expr))
    for grouped in re.findall(r"(?:by|group_left)\s*\(([^)]*)\)", expr):
        asked |= {label.strip() for label in grouped.split(",")}
    assert asked - {"le"} <= told


def test_every_metric_is_shown_or_alerted_on() -> None:
    asked = [
        *(expr for name in ALL for expr in expressions(name).values()),
        *(rule["expr"] for rule in rules()),
    ]
    shown = {SERIES[name].name for expr in asked for name in series_in(expr) & SERIES.keys()}

    assert {spec.name for spec in CATALOGUE} - shown == {"holdshort_batches_forwarded"}


def test_every_query_is_promql(prometheus_program: Callable[[str], str], tmp_path: Path) -> None:
    queries = [expr for name in ALL for expr in expressions(name).values()]
    recorded = [
        {"record": f"query:{number}", "expr": expr.replace("$__rate_interval", "1m")}
        for number, expr in enumerate(queries)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": recorded}]}))

    checked = [prometheus_program("promtool"), "check", "rules", str(file)]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(queries)} rules found" in done.stdout
