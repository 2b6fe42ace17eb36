"""The composition's profile `observability`: Prometheus finds every process, Grafana has the boards."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from tests.observability.boards import ALL
from tests.observability.grafana import BOARDS
from tests.observability.prometheus import RULES
from tests.packaging.composition import composition


def configs() -> dict[str, Any]:
    found: dict[str, Any] = composition("observability")["configs"]
    return found


def mounted(service: str) -> dict[str, str]:
    """Where each configuration lies in the container, by its name."""
    listed = composition("observability")["services"][service]["configs"]
    return {one["source"]: one["target"] for one in listed}


def written(name: str) -> Any:
    """A configuration that stands in the composition itself."""
    return yaml.safe_load(configs()[name]["content"])


def test_prometheus_scrapes_every_container_of_both_services() -> None:
    (job,) = written("prometheus")["scrape_configs"]
    (found,) = job["dns_sd_configs"]

    assert found["names"] == ["gatekeeper", "router"]
    published = composition("observability")["services"]["gatekeeper"]["ports"]
    assert {port["target"] for port in published} == {found["port"]}


def test_prometheus_evaluates_our_rules(prometheus_program: Callable[[str], str], tmp_path: Path) -> None:
    assert Path(configs()["rules"]["file"]) == RULES
    assert written("prometheus")["rule_files"] == [mounted("prometheus")["rules"]]
    file = tmp_path / "prometheus.yml"
    file.write_text(configs()["prometheus"]["content"].replace(mounted("prometheus")["rules"], str(RULES)))

    checked = [prometheus_program("promtool"), "check", "config", str(file)]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    command = composition("observability")["services"]["prometheus"]["command"]
    assert f"--config.file={mounted('prometheus')['prometheus']}" in command


def test_grafana_loads_every_board_and_asks_that_prometheus() -> None:
    where = mounted("grafana")
    (provider,) = written("boards")["providers"]
    (source,) = written("datasources")["datasources"]

    for name in ALL:
        assert Path(configs()[name]["file"]) == BOARDS / f"{name}.json"
        assert where[name] == f"{provider['options']['path']}/{name}.json"
    home = composition("observability")["services"]["grafana"]["environment"]
    assert home["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] in where.values()
    assert source["url"] == "http://prometheus:9090"
    assert source["isDefault"]
    for name in ("datasources", "boards"):
        assert where[name].startswith(f"/etc/grafana/provisioning/{name.replace('boards', 'dashboards')}/")
