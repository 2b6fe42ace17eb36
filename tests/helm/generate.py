"""What of the chart is made from the code: its table of topics and rights, and the schema of `config`.

    python -m tests.helm.generate

In the table `{agent}`, `{team}` and `{prefix}` stand where the templates put the names of a release.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from typer.testing import CliRunner

from holdshort.cli import acls
from holdshort.settings import Config, config_schema
from holdshort.stream.topics import table

CHART: Final = Path(__file__).parents[2] / "helm" / "holdshort"
TABLE: Final = CHART / "files" / "table.yaml"
VALUES_SCHEMA: Final = CHART / "values.schema.json"
RENEW: Final = "renew it: python -m tests.helm.generate"
_AGENT, _TEAM, _PREFIX = "some-agent", "some-team", "some-prefix."
_PLACES: Final = {_AGENT: "{agent}", _TEAM: "{team}", _PREFIX: "{prefix}"}
_HEAD: Final = (
    "# Every topic and every principal once, made from the code by `python -m tests.helm.generate`.\n"
)


def printed_users(agents: Sequence[str], teams: Sequence[str], prefix: str) -> list[dict[str, Any]]:
    """What `holdshort acls print --format strimzi` prints, with users called like the principals."""
    config: dict[str, dict[str, Any]] = {
        "agents": {name: {} for name in agents},
        "teams": {name: {} for name in teams},
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(config, file)
        environment = {"HOLDSHORT_CONFIG": file.name, "HOLDSHORT_PREFIX": prefix}
        arguments = ["print", "--format", "strimzi", "--user", "{}"]
        done = CliRunner().invoke(acls.app, arguments, env=environment, catch_exceptions=False)
    return list(yaml.safe_load_all(done.stdout))


def table_file() -> str:
    """The text of files/table.yaml."""
    rows = {
        "agents": sorted(Config().agents),
        "topics": [
            {"name": _PREFIX + topic.name, "partitions": topic.partitions, "config": topic.config()}
            for topic in table([_AGENT], [_TEAM])
        ],
        "principals": [_principal(user) for user in printed_users([_AGENT], [_TEAM], _PREFIX)],
    }
    text = json.dumps(rows)
    for name, place in _PLACES.items():
        text = text.replace(name, place)
    return _HEAD + yaml.safe_dump(json.loads(text), sort_keys=False, width=110)


def _principal(user: dict[str, Any]) -> dict[str, Any]:
    quotas = {"quotas": user["spec"]["quotas"]} if "quotas" in user["spec"] else {}
    return {"name": user["metadata"]["name"], **quotas, "acls": user["spec"]["authorization"]["acls"]}


def values_schema_file() -> str:
    """The text of values.schema.json: as it stands, with the schema of the configuration file renewed."""
    values = json.loads(VALUES_SCHEMA.read_text())
    config = config_schema()
    parts = config.pop("$defs")
    by_hand = {name: part for name, part in values["$defs"].items() if name[0].islower() and name != "config"}
    values["$defs"] = by_hand | {"config": config} | parts
    return json.dumps(values, indent=2) + "\n"


def files() -> Iterator[tuple[Path, str]]:
    """Everything that is made, as path and text."""
    yield TABLE, table_file()
    yield VALUES_SCHEMA, values_schema_file()


if __name__ == "__main__":
    for path, text in files():
        path.write_text(text)
