"""What Kubernetes and the custom resources' definitions say of an object; an unknown member is a mistake.

Kubernetes' own schemas come with kubernetes-validate, those of custom resources from crds/.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import kubernetes_validate
import yaml

CRDS: Final = Path(__file__).with_name("crds")
# The oldest that Chart.yaml allows, and the newest that there are schemas of.
KUBERNETES: Final = ("1.31.0", kubernetes_validate.latest_version())


def mistakes(one: dict[str, Any], kubernetes: str) -> list[str]:
    """What is wrong with an object, each with its place; a kind that nobody describes is wrong too."""
    if custom := custom_resources().get((one["apiVersion"], one["kind"])):
        return [f"{_place(error.instance_path)}: {error.message}" for error in custom.iter_errors(one)]
    try:
        kubernetes_validate.validate(one, kubernetes, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{error.json_path}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError as error:
        return [error.message]
    return []


def _place(path: list[str | int]) -> str:
    return ".".join(("$", *map(str, path)))


@cache
def custom_resources() -> dict[tuple[str, str], Any]:
    """A validator for each served version of each definition, by apiVersion and kind."""
    return {
        (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]): _validator(
            version["schema"]["openAPIV3Schema"]
        )
        for definition in (yaml.safe_load(path.read_text()) for path in CRDS.glob("*.yaml"))
        for version in definition["spec"]["versions"]
        if version["served"]
    }


def _validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.Draft202012Validator(_closed(schema), validate_formats=False)


def _closed(schema: Any) -> Any:
    """The same schema without room for unknown members, as an API server prunes them."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", bool(schema.get("x-kubernetes-preserve-unknown-fields")))
    return closed
