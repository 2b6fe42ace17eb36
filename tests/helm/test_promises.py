"""What the chart promises of its pods: ready when restored, without rights, measured, and never all gone."""

import re

import pytest
from tests.helm.chart import (
    CASES,
    SERVICES,
    Object,
    component,
    container,
    every_case,
    every_service,
    named,
    objects,
    of_kind,
    pod,
    pod_template,
    render,
    rendered,
    run,
    selects,
    values,
    with_helm,
    workloads,
)
from tests.helm.generate import CHART
from tests.packaging.image import stages

from holdshort import __version__
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.kafka.cluster import FENCE_DEADLINE_S
from holdshort.stream.kafka.consumers import CLOSE_DEADLINE_S

pytestmark = with_helm


def labels(workload: Object) -> dict[str, str]:
    found: dict[str, str] = pod_template(workload)["metadata"]["labels"]
    return found


def stateful(case: str) -> dict[str, Object]:
    return {one: workload for one, workload in workloads(rendered(case)).items() if one in SERVICES}


# -- health -------------------------------------------------------------------------------------------------


@every_case
def test_a_pod_is_ready_only_when_its_state_is_restored(case: str) -> None:
    assert stateful(case).keys() == set(SERVICES)
    for workload in stateful(case).values():
        assert container(workload)["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "management"}


@every_case
def test_no_pod_is_started_again_for_what_it_still_restores_or_a_lane_that_stands(case: str) -> None:
    """What ends a pod asks whether its loop turns: neither a long restore nor a halted lane stops that."""
    for workload in stateful(case).values():
        its = container(workload)
        for probe in ("startupProbe", "livenessProbe"):
            assert its[probe]["httpGet"] == {"path": "/livez", "port": "management"}


@every_case
def test_a_process_has_the_time_to_answer_that_the_values_say(case: str) -> None:
    for service, workload in stateful(case).items():
        probe = container(workload)["startupProbe"]
        wanted = values(case)[service]["startupSeconds"]
        time = probe["periodSeconds"] * probe["failureThreshold"]
        assert wanted <= time < wanted + probe["periodSeconds"]


@every_case
def test_probes_and_measurements_ask_where_the_program_listens(case: str) -> None:
    for workload in stateful(case).values():
        told = {one["name"]: one.get("value") for one in container(workload)["env"]}
        assert told["HOLDSHORT_MANAGEMENT_HOST"] == "0.0.0.0"
        (port,) = container(workload)["ports"]
        assert port["name"] == "management"
        assert told["HOLDSHORT_MANAGEMENT_PORT"] == str(port["containerPort"])


def test_a_stop_has_more_time_than_it_may_take() -> None:
    # At worst a lane is being fenced, then its batch is committed and its consumers are closed.
    longest = (
        FENCE_DEADLINE_S
        + EngineSettings(app="any", partitions=1, lanes=1).commit_deadline
        + 2 * CLOSE_DEADLINE_S
    )
    for service in SERVICES:
        assert values("defaults")[service]["terminationGracePeriodSeconds"] > longest
    least = int(longest)
    refused = run("template", "x", str(CHART), "--set", f"router.terminationGracePeriodSeconds={least}")
    assert "/router/terminationGracePeriodSeconds" in refused.stderr


@every_case
def test_no_pod_waits_for_another_and_their_names_are_in_the_dns(case: str) -> None:
    found = rendered(case)
    for workload in stateful(case).values():
        assert workload["spec"]["podManagementPolicy"] == "Parallel"
        service = named("Service", workload["spec"]["serviceName"], found)
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"]
        chosen = [one for one in workloads(found).values() if selects_all(service, one)]
        assert chosen == [workload]


def selects_all(service: Object, workload: Object) -> bool:
    return selects({"matchLabels": service["spec"]["selector"]}, labels(workload))


# -- pod security, the restricted profile -------------------------------------------------------------------


@every_case
def test_every_pod_is_what_the_restricted_profile_asks_for(case: str) -> None:
    assert workloads(rendered(case))
    for workload in workloads(rendered(case)).values():
        its = pod(workload)
        assert its["securityContext"]["runAsNonRoot"] is True
        assert its["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & its.keys()
        allowed = {"name", "configMap", "secret", "emptyDir"}
        assert all(volume.keys() <= allowed for volume in its["volumes"])
        # Exactly this: nothing privileged, no capability added, no user of its own.
        assert container(workload)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert all("hostPort" not in port for port in container(workload).get("ports", []))


@every_case
def test_a_pod_may_write_to_tmp_alone(case: str) -> None:
    for workload in workloads(rendered(case)).values():
        mounts = container(workload)["volumeMounts"]
        (writable,) = (one for one in mounts if not one.get("readOnly"))
        assert writable["mountPath"] == "/tmp"
        (tmp,) = (one for one in pod(workload)["volumes"] if one["name"] == writable["name"])
        assert tmp["emptyDir"]["sizeLimit"]


@every_case
def test_a_pod_has_nothing_of_kubernetes_inside(case: str) -> None:
    for workload in workloads(rendered(case)).values():
        assert pod(workload)["automountServiceAccountToken"] is False
        assert pod(workload)["enableServiceLinks"] is False
    for account in of_kind("ServiceAccount", rendered(case)):
        assert account["automountServiceAccountToken"] is False


def test_the_user_is_that_of_the_image_by_number_unless_the_platform_gives_one() -> None:
    (user,) = stages()[-1].all("USER")
    for workload in workloads(rendered("defaults")).values():
        context = pod(workload)["securityContext"]
        assert f"{context['runAsUser']}:{context['runAsGroup']}" == user.text
        assert context["fsGroup"] == context["runAsGroup"]  # or it could not read mounted secrets
    for workload in workloads(rendered("certificates")).values():
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod(workload)["securityContext"].keys()


@every_case
def test_an_image_stays_what_it_is(case: str) -> None:
    for workload in workloads(rendered(case)).values():
        _, _, tag = container(workload)["image"].rpartition(":")
        assert tag not in ("", "latest")


def test_the_image_is_that_of_the_charts_version_or_the_one_with_the_digest() -> None:
    assert container(stateful("defaults")["router"])["image"] == f"holdshort:{__version__}"
    image = values("everything")["image"]
    expected = f"{image['repository']}@{image['digest']}"
    assert container(stateful("everything")["router"])["image"] == expected


@every_case
def test_every_container_says_what_it_needs_and_how_much_memory_it_gets(case: str) -> None:
    for workload in workloads(rendered(case)).values():
        resources = container(workload)["resources"]
        assert resources["requests"].keys() >= {"cpu", "memory"}
        assert "memory" in resources["limits"]


# -- what surrounds the pods --------------------------------------------------------------------------------


def test_one_monitor_measures_every_pod_of_both_services_and_no_other() -> None:
    secured = "monitoring.podMonitor.enabled=true,monitoring.podMonitor.labels.release=stack"
    found = render("--set", secured)
    (monitor,) = of_kind("PodMonitor", found)

    assert monitor["metadata"]["labels"]["release"] == "stack"
    measured = {
        name for name, one in workloads(found).items() if selects(monitor["spec"]["selector"], labels(one))
    }
    assert measured == set(SERVICES)
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("management", "/metrics")


def test_a_monitor_does_not_measure_another_release() -> None:
    (monitor,) = of_kind("PodMonitor", render("--set", "monitoring.podMonitor.enabled=true"))
    others = objects(run("template", "other", str(CHART)).stdout)

    assert not any(selects(monitor["spec"]["selector"], labels(one)) for one in workloads(others).values())


@every_case
def test_each_service_has_a_budget_that_lets_unhealthy_pods_go(case: str) -> None:
    budgets = of_kind("PodDisruptionBudget", rendered(case))
    wanted = values(case)["podDisruptionBudget"]

    assert {component(one) for one in budgets} == (set(SERVICES) if wanted["enabled"] else set())
    for budget in budgets:
        assert budget["spec"]["maxUnavailable"] == wanted["maxUnavailable"]
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        chosen = {
            name
            for name, one in workloads(rendered(case)).items()
            if selects(budget["spec"]["selector"], labels(one))
        }
        assert chosen == {component(budget)}


@every_service
def test_pods_of_a_service_are_spread_over_nodes_and_zones_where_possible(service: str) -> None:
    workload = stateful("defaults")[service]
    spread = pod(workload)["topologySpreadConstraints"]

    keys = {one["topologyKey"] for one in spread}
    assert keys == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    for one in spread:
        assert one["whenUnsatisfiable"] == "ScheduleAnyway"
        chosen = [
            name
            for name, other in workloads(rendered("defaults")).items()
            if selects(one["labelSelector"], labels(other))
        ]
        assert chosen == [service]


# -- the network --------------------------------------------------------------------------------------------


def policies(workload: Object, among: tuple[Object, ...]) -> list[Object]:
    """The NetworkPolicies that hold for a workload's pods; what one allows is allowed."""
    return [
        one
        for one in of_kind("NetworkPolicy", among)
        if selects(one["spec"]["podSelector"], labels(workload))
    ]


def allowed_ports(workload: Object, among: tuple[Object, ...]) -> set[tuple[str, int]]:
    return {
        (port["protocol"], port["port"])
        for one in policies(workload, among)
        for rule in one["spec"]["egress"]
        for port in rule["ports"]
    }


@every_case
def test_pods_reach_name_resolution_and_brokers_and_nothing_else(case: str) -> None:
    given = values(case)
    for workload in workloads(rendered(case)).values():
        if not given["networkPolicy"]["enabled"]:
            assert policies(workload, rendered(case)) == []
            continue
        found = re.findall(r":(\d+)(?:,|$)", given["kafka"]["bootstrapServers"])
        brokers = given["networkPolicy"]["kafkaPorts"] or [int(port) for port in found]
        names = given["networkPolicy"]["dnsPorts"]
        expected = {("TCP", port) for port in brokers} | {
            (protocol, port) for port in names for protocol in ("TCP", "UDP")
        }
        assert allowed_ports(workload, rendered(case)) == expected
        for policy in policies(workload, rendered(case)):
            assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
            to_brokers = policy["spec"]["egress"][-1]
            assert to_brokers.get("to", []) == given["networkPolicy"]["kafkaTo"]


def test_only_the_management_port_is_reached_and_only_by_whom_the_values_name() -> None:
    for case in CASES:
        for workload in stateful(case).values():
            for policy in policies(workload, rendered(case)):
                (rule,) = policy["spec"]["ingress"]
                assert rule["ports"] == [{"protocol": "TCP", "port": "management"}]
                assert rule["from"] == values(case)["networkPolicy"]["metricsFrom"]


def test_with_nobody_to_measure_it_nobody_reaches_a_pod() -> None:
    found = render("--set-json", "networkPolicy.metricsFrom=[]")
    for policy in of_kind("NetworkPolicy", found):
        assert "ingress" not in policy["spec"]


# -- the job that makes topics ------------------------------------------------------------------------------

HOOK = {
    "helm.sh/hook": "pre-install,pre-upgrade",
    "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
}


@every_case
def test_topics_are_made_by_the_one_who_is_said_to_make_them(case: str) -> None:
    made_by = values(case)["topics"]["madeBy"]

    assert bool(of_kind("Job", rendered(case))) == (made_by == "job")
    assert bool(of_kind("KafkaTopic", rendered(case))) == (made_by == "strimzi")


@pytest.mark.parametrize("case", ["defaults", "scram", "token"])
def test_the_job_runs_before_everything_and_needs_nothing_that_comes_later(case: str) -> None:
    found = list(rendered(case))
    hooks = [one for one in found if "helm.sh/hook" in one["metadata"].get("annotations", {})]
    (job,) = of_kind("Job", hooks)

    for hook in hooks:
        notes = dict(hook["metadata"]["annotations"])
        weight = int(notes.pop("helm.sh/hook-weight"))
        assert notes == HOOK
        assert (weight < 0) == (hook is not job)  # what it needs is there before it
    assert component(job) == "topics"
    for volume in pod(job)["volumes"]:
        if "configMap" in volume:
            assert named("ConfigMap", volume["configMap"]["name"], hooks)
    assert "serviceAccountName" not in pod(job)
    assert policies(job, tuple(hooks))


def test_the_job_has_the_services_configuration() -> None:
    found = rendered("scram")
    texts = {one["data"]["holdshort.yaml"] for one in of_kind("ConfigMap", found)}

    assert len(of_kind("ConfigMap", found)) == 2
    assert len(texts) == 1


def test_the_job_gives_up_in_the_end() -> None:
    (job,) = of_kind("Job", rendered("defaults"))

    assert job["spec"]["activeDeadlineSeconds"] == 300
    assert job["spec"]["backoffLimit"] == 5
    assert pod(job)["restartPolicy"] == "Never"
