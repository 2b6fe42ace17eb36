"""Whatever the chart renders is what Kubernetes, Strimzi and the Prometheus Operator take, strictly."""

import copy
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.helm.chart import (
    CASES,
    CI_FILES,
    Object,
    default_values,
    every_case,
    files_of,
    named,
    objects,
    of_kind,
    pod_template,
    render,
    rendered,
    run,
    template,
    values,
    with_helm,
    workloads,
)
from tests.helm.generate import CHART
from tests.helm.shapes import KUBERNETES, mistakes

pytestmark = with_helm

LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
every_kubernetes = pytest.mark.parametrize("kubernetes", KUBERNETES)


def wrong(among: list[Object], kubernetes: str = KUBERNETES[-1]) -> dict[str, list[str]]:
    """The mistakes of every object that has any."""
    found = {f"{one['kind']} {one['metadata']['name']}": mistakes(one, kubernetes) for one in among}
    return {whose: some for whose, some in found.items() if some}


# -- all of it ----------------------------------------------------------------------------------------------


@every_case
def test_helm_lints_it_strictly_without_a_warning(case: str) -> None:
    done = run("lint", "--strict", str(CHART), *files_of(case))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout + done.stderr


@every_case
@every_kubernetes
def test_every_object_has_exactly_the_shape_that_kubernetes_knows(case: str, kubernetes: str) -> None:
    assert wrong(list(rendered(case)), kubernetes) == {}


@every_case
def test_objects_have_names_and_labels_that_kubernetes_takes_and_no_namespace(case: str) -> None:
    known = set()
    for one in rendered(case):
        name, labels = one["metadata"]["name"], one["metadata"]["labels"]
        assert NAME.fullmatch(name), name
        assert len(name) <= (253 if one["kind"].startswith("Kafka") else 63), name
        assert all(LABEL.fullmatch(value) for value in labels.values()), labels
        assert "namespace" not in one["metadata"]
        assert (one["kind"], name) not in known
        known.add((one["kind"], name))


def test_the_oldest_kubernetes_that_is_tested_is_the_oldest_that_is_allowed() -> None:
    allowed = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"]
    assert allowed == f">={KUBERNETES[0]}-0"

    assert render("--kube-version", KUBERNETES[0]) == list(rendered("defaults"))
    refused = template("--kube-version", "1.30.9")
    assert "incompatible with Kubernetes v1.30.9" in refused.stderr


@pytest.mark.parametrize("release", ["a", "holdshort", "x" * 53])
def test_a_release_may_be_called_anything_that_helm_takes(release: str) -> None:
    done = run("template", release, str(CHART), *files_of("scram"))
    found = objects(done.stdout)

    assert wrong(found) == {}
    for workload in workloads(found).values():
        # A StatefulSet puts a hash behind its name into a label of its pods, a Job a suffix: 63 is the limit.
        assert len(workload["metadata"]["name"]) <= 63 - len("-") - 10
        assert all(LABEL.fullmatch(value) for value in pod_template(workload)["metadata"]["labels"].values())


def test_labels_for_everything_give_way_to_those_of_one_object() -> None:
    own = "monitoring.podMonitor.labels.release=own"
    found = render("--set", f"commonLabels.release=all,monitoring.podMonitor.enabled=true,{own}")

    assert {one["metadata"]["labels"]["release"] for one in found if one["kind"] != "PodMonitor"} == {"all"}
    assert of_kind("PodMonitor", found)[0]["metadata"]["labels"]["release"] == "own"


# -- all of the values --------------------------------------------------------------------------------------

# Values whose default is what turns on the most, or which mean nothing beside others of the same file.
AS_THEY_ARE = {"podDisruptionBudget.enabled", "networkPolicy.enabled", "kafka.saslMechanism"}


def leaves(value: Any, place: str = "") -> dict[str, Any]:
    """Every value that is no mapping, or an empty one, by its place with dots."""
    if not isinstance(value, dict) or not value:
        return {place: value}
    return {
        inner: leaf
        for key, one in value.items()
        for inner, leaf in leaves(one, f"{place}.{key}" if place else key).items()
    }


def at(place: str, tree: Any) -> Any:
    for key in place.split("."):
        tree = tree[key]
    return tree


def test_everything_is_every_value_other_than_its_default() -> None:
    everything = values("everything")
    same = {place for place, value in leaves(default_values()).items() if at(place, everything) == value}

    assert same == AS_THEY_ARE


@pytest.mark.parametrize("case", sorted(CI_FILES))
def test_a_file_of_values_changes_what_is_rendered(case: str) -> None:
    assert rendered(case) != rendered("defaults")


def test_all_kinds_that_the_chart_has_are_rendered_somewhere() -> None:
    kinds = {
        kind
        for path in CHART.glob("templates/*.yaml")
        for kind in re.findall(r"(?m)^kind: (\w+)$", path.read_text())
    }

    assert {one["kind"] for case in CASES for one in rendered(case)} == kinds


# -- dashboards and rules -----------------------------------------------------------------------------------


@pytest.fixture
def with_boards(tmp_path: Path) -> Path:
    """A copy of the chart with a board and two files of rules among its files, and no others."""
    chart = tmp_path / "holdshort"
    shutil.copytree(CHART, chart)
    for path in chart.glob("files/**/*"):
        if path.is_file() and path.name != "table.yaml":
            path.unlink()
    (chart / "files" / "dashboards").mkdir(exist_ok=True)
    (chart / "files" / "dashboards" / "approvals.json").write_text('{"title": "Waits for {{team}}"}\n')
    rule = {"alert": "Late", "expr": "up == 0", "annotations": {"summary": "{{ $labels.pod }} is late"}}
    for name in ("rules.yaml", "engine_rules.yml"):
        groups = {"groups": [{"name": name.partition(".")[0], "rules": [rule]}]}
        (chart / "files" / name).write_text(yaml.safe_dump(groups))
    return chart


def test_boards_and_rules_among_the_files_appear_as_they_are_written(with_boards: Path) -> None:
    found = render(*files_of("everything"), chart=with_boards)

    assert wrong(found) == {}
    boards = named("ConfigMap", "approvals-dashboards", found)
    assert boards["data"] == {"approvals.json": '{"title": "Waits for {{team}}"}\n'}
    assert boards["metadata"]["labels"]["grafana_dashboard"] == "yes"
    assert boards["metadata"]["annotations"] == {"grafana_folder": "Approvals"}
    rules = {one["metadata"]["name"]: one["spec"]["groups"][0] for one in of_kind("PrometheusRule", found)}
    assert sorted(rules) == ["approvals-engine-rules", "approvals-rules"]
    assert rules["approvals-rules"]["rules"][0]["annotations"]["summary"] == "{{ $labels.pod }} is late"


def test_boards_and_rules_are_there_only_when_they_are_asked_for(with_boards: Path) -> None:
    found = render(chart=with_boards)

    assert found == list(rendered("defaults"))
    assert of_kind("PrometheusRule", found) == of_kind("PodMonitor", found) == []


def test_the_boards_and_rules_of_the_chart_itself_have_the_right_shape() -> None:
    found = render("--set", "monitoring.prometheusRule.enabled=true,monitoring.dashboards.enabled=true")

    assert wrong(found) == {}
    (rules,) = of_kind("PrometheusRule", found)
    assert rules["spec"] == yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    boards = named("ConfigMap", "night-holdshort-dashboards", found)
    assert boards["data"] == {path.name: path.read_text() for path in CHART.glob("files/dashboards/*.json")}


# -- the judges themselves ----------------------------------------------------------------------------------


def broken(kind: str, place: str, value: Any) -> Object:
    """An object of the chart, with something else at a place in it."""
    one = copy.deepcopy(next(one for one in rendered("everything") if one["kind"] == kind))
    *path, last = place.split("/")
    inner: Any = one
    for key in path:
        inner = inner[int(key) if key.isdigit() else key]
    inner[last] = value
    return one


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("StatefulSet", "spec/podManagmentPolicy", "Parallel"),
        ("StatefulSet", "spec/template/spec/containers/0/securityContext/readOnlyRootFileSystem", True),
        ("NetworkPolicy", "spec/ingres", []),
        ("PodMonitor", "spec/podMetricsEndpoint", []),
        ("PodMonitor", "spec/podMetricsEndpoints/0/interval", "30"),
        ("KafkaTopic", "spec/partition", 3),
        ("KafkaTopic", "spec/partitions", "3"),
        ("KafkaUser", "spec/authorization/acls/0/resource/patternType", "prefixed"),
        ("KafkaUser", "spec/authentication/type", "scram"),
        ("KafkaUser", "apiVersion", "kafka.strimzi.io/v1beta2"),
    ],
)
def test_a_mistake_in_an_object_is_found(kind: str, place: str, value: Any) -> None:
    assert mistakes(broken(kind, place, value), KUBERNETES[-1])


def test_a_key_that_stands_twice_is_found() -> None:
    with pytest.raises(yaml.YAMLError, match="name twice"):
        objects("kind: Pod\nmetadata: {name: a, name: b}")
