"""Grafana's JSON of the boards; `python -m tests.observability.grafana` writes it."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.common import ReduceDataOptions, StackingConfig, VizLegendOptions
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import BigValueGraphMode, LegendPlacement, StackingMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableOption,
)
from tests.observability.boards import ALL, Board, Panel

FILES: Final = Path(__file__).parents[2] / "helm" / "holdshort" / "files"
BOARDS: Final = FILES / "dashboards"
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")


def made(name: str) -> str:
    """The board as the JSON that Grafana loads."""
    board = ALL[name]
    built = (
        dashboard.Dashboard(board.title)
        .uid(f"holdshort-{name}")
        .description(board.description)
        .tags(["holdshort"])
        .readonly()
        .refresh("30s")
        .time("now-6h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_choice(board))
    )
    number = 0
    for row in board.rows:
        built.with_row(dashboard.Row(row.title).id(number := number + 1))
        for panel in row.panels:
            built.with_panel(_panel(panel, number := number + 1))
    encoded = json.loads(JSONEncoder().encode(built.build()))
    return json.dumps(encoded, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _choice(board: Board) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(board.label)
        .label(board.label.capitalize())
        .datasource(SOURCE)
        .query(f"label_values({board.metric}, {board.label})")
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(text="All", value="$__all", selected=True))
    )


def _panel(panel: Panel, number: int) -> Any:
    made = _number(panel) if panel.number else _lines(panel)
    made = (
        made.id(number).title(panel.title).description(panel.description).datasource(SOURCE).unit(panel.unit)
    )
    for letter, query in zip("ABCD", panel.queries, strict=False):
        target = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter)
        made = made.with_target(target.instant() if panel.number else target.range())
    return made


def _number(panel: Panel) -> stat.Panel:
    steps = [Threshold(color="green", value=None)]
    if panel.red is not None:
        steps.append(Threshold(color="red", value=panel.red))
    colours = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
    latest = ReduceDataOptions().calcs(["lastNotNull"])
    made = stat.Panel().thresholds(colours).graph_mode(BigValueGraphMode.NONE).reduce_options(latest)
    return made.height(4).span(6)


def _lines(panel: Panel) -> timeseries.Panel:
    legend = VizLegendOptions().show_legend(True).placement(LegendPlacement.BOTTOM)
    made = timeseries.Panel().min(0).height(8).span(8).fill_opacity(10).legend(legend)
    if panel.stacked:
        made = made.stacking(StackingConfig().mode(StackingMode.NORMAL))
    return made


def expressions(name: str) -> dict[str, str]:
    """Every query of a committed board, by panel and letter."""
    board = json.loads((BOARDS / f"{name}.json").read_text())
    panels = [inner for one in board["panels"] for inner in (one, *one.get("panels", ()))]
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels
        for target in panel.get("targets", ())
    }


if __name__ == "__main__":
    BOARDS.mkdir(parents=True, exist_ok=True)
    for one in ALL:
        (BOARDS / f"{one}.json").write_text(made(one))
    sys.stdout.write(f"{', '.join(ALL)} written\n")
