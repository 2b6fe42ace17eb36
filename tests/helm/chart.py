"""The chart as the real Helm renders it, and how to find one's way in what it renders."""

import os
import subprocess
import tempfile
from collections.abc import Hashable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.helm.binary import helm
from tests.helm.generate import CHART

Object = dict[str, Any]

RELEASE: Final = "night"
NAMESPACE: Final = "agents"
SERVICES: Final = ("gatekeeper", "router")
CI_FILES: Final = {path.name.removesuffix("-values.yaml"): path for path in CHART.glob("ci/*-values.yaml")}
CASES: Final = ("defaults", *sorted(CI_FILES))
# What stands before HELM's own places: neither plugins nor settings of whoever runs the tests.
_AWAY: Final = {
    f"HELM_{kind}_HOME": f"{tempfile.gettempdir()}/holdshort-no-helm" for kind in ("CONFIG", "DATA")
}

every_case = pytest.mark.parametrize("case", CASES)
every_service = pytest.mark.parametrize("service", SERVICES)
# Helm may have to be built first (tests.helm.conftest), which is not the test's own time.
with_helm = [pytest.mark.usefixtures("program"), pytest.mark.timeout(60, func_only=True)]


class _Loader(yaml.SafeLoader):
    """YAML in which no key stands twice: Kubernetes refuses what PyYAML lets pass."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise yaml.YAMLError(f"{', '.join(sorted(twice))} twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Helm itself."""
    command = [str(helm()), *arguments]
    return subprocess.run(command, env=os.environ | _AWAY, capture_output=True, text=True, check=False)


def template(*arguments: str, chart: Path = CHART) -> "subprocess.CompletedProcess[str]":
    """`helm template` of a release."""
    return run("template", RELEASE, str(chart), "--namespace", NAMESPACE, *arguments)


def objects(text: str) -> list[Object]:
    """The objects in a stream of YAML documents; each must have a kind and a name."""
    # Loader is a SafeLoader; bandit cannot know.
    found = [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]
    assert all(one["kind"] and one["metadata"]["name"] for one in found)
    return found


def render(*arguments: str, chart: Path = CHART) -> list[Object]:
    """The objects of a release, as they must come: without an error and without a warning."""
    done = template(*arguments, chart=chart)
    assert (done.returncode, done.stderr) == (0, "")
    return objects(done.stdout)


def files_of(case: str) -> tuple[str, ...]:
    """The arguments that name a case's values."""
    return () if case == "defaults" else ("--values", str(CI_FILES[case]))


@cache
def rendered(case: str) -> tuple[Object, ...]:
    """The objects of one of CASES. They are shared: only to be read."""
    return tuple(render(*files_of(case)))


def default_values() -> Object:
    found: Object = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


@cache
def values(case: str) -> Object:
    """The defaults with the values of a case in them, as Helm puts them together."""
    return _merged(default_values(), yaml.safe_load(CI_FILES[case].read_text()) if case in CI_FILES else {})


def _merged(base: Object, above: Object) -> Object:
    both = {key for key in base.keys() & above.keys() if isinstance(base[key], dict)}
    return (
        base | above | {key: _merged(base[key], above[key]) for key in both if isinstance(above[key], dict)}
    )


# -- in what is rendered ------------------------------------------------------------------------------------


def of_kind(kind: str, among: Iterable[Object]) -> list[Object]:
    return [one for one in among if one["kind"] == kind]


def named(kind: str, name: str, among: Iterable[Object]) -> Object:
    (found,) = (one for one in of_kind(kind, among) if one["metadata"]["name"] == name)
    return found


def component(one: Object) -> str:
    """What an object is for: gatekeeper, router, topics, ..."""
    found: str = one["metadata"]["labels"]["app.kubernetes.io/component"]
    return found


def workloads(among: Iterable[Object]) -> dict[str, Object]:
    """Whatever has pods, by component."""
    return {component(one): one for one in among if one["kind"] in ("StatefulSet", "Job")}


def pod_template(workload: Object) -> Object:
    found: Object = workload["spec"]["template"]
    return found


def pod(workload: Object) -> Object:
    found: Object = pod_template(workload)["spec"]
    return found


def container(workload: Object) -> Object:
    """The one container of a workload's pods."""
    (found,) = pod(workload)["containers"]
    assert "initContainers" not in pod(workload)
    return dict(found)


def environment(workload: Object) -> dict[str, str]:
    """The variables that have a value in the manifest."""
    return {one["name"]: one["value"] for one in container(workload)["env"] if "value" in one}


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a label selector, as far as we use it, picks something with these labels."""
    equal = selector.get("matchLabels", {})
    within = selector.get("matchExpressions", [])
    assert {one["operator"] for one in within} <= {"In"}
    return equal.items() <= labels.items() and all(labels.get(one["key"]) in one["values"] for one in within)
