"""A container of the chart as the program finds it: its variables, and its files below a folder."""

from pathlib import Path
from typing import Any, Final

from tests.helm.chart import Object, container, environment, named, pod

SECRET: Final = "what-a-secret-holds"


def materialized(workload: Object, among: list[Object], root: Path) -> dict[str, str]:
    """Write what is mounted below `root`; returns the variables, which name the files there.

    A Secret's keys hold SECRET; whatever else is mounted is taken from the objects of the release.
    """
    volumes = {one["name"]: one for one in pod(workload)["volumes"]}
    mounts = {one["mountPath"]: volumes[one["name"]] for one in container(workload)["volumeMounts"]}
    assert len(mounts) == len(volumes)
    for path, volume in mounts.items():
        folder = root / path.removeprefix("/")
        folder.mkdir(parents=True)
        for name, text in _files(volume, among).items():
            (folder / name).write_text(text)
    inside = tuple(f"{path}/" for path in mounts)
    return {
        name: f"{root}{value}" if value.startswith(inside) else value
        for name, value in environment(workload).items()
    }


def _files(volume: dict[str, Any], among: list[Object]) -> dict[str, str]:
    if "configMap" in volume:
        data: dict[str, str] = named("ConfigMap", volume["configMap"]["name"], among)["data"]
        return data
    if "secret" in volume:
        return {item["path"]: SECRET for item in volume["secret"]["items"]}
    assert volume.keys() == {"name", "emptyDir"}
    return {}
