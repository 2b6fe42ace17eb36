"""schemas/asyncapi.yaml: AsyncAPI's own parser reads it, and it says what the table of topics says."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from faststream.kafka import KafkaBroker
from faststream.specification import AsyncAPI
from jsonschema import Draft202012Validator
from tests.audit.chained import CONFIG, story
from tests.contract.peers import made
from tests.systems import System, system
from tests.virtual import in_virtual_time

from holdshort.contract import messages
from holdshort.contract.routes import RESERVED_TEAMS
from holdshort.sdk.approver import Approver
from holdshort.settings import KafkaSettings
from holdshort.stream.topics import Topic, table

NODE: Final = Path(__file__).parent / "node"
SCHEMAS: Final = Path(__file__).parents[2] / "schemas"
FILE: Final = SCHEMAS / "asyncapi.yaml"
DOCUMENT: Final[dict[str, Any]] = yaml.safe_load(FILE.read_text())
CHANNELS: Final[dict[str, Any]] = DOCUMENT["channels"]
HARMLESS: Final = {"asyncapi-latest-version"}  # 3.0 is the version that FastStream writes, too


def topics() -> list[Topic]:
    """The table, with the names of agent and team as the document writes them."""
    rows = table(["{agent}"], ["{team}"])
    return [row for row in rows if not row.name.endswith(RESERVED_TEAMS)]


def channel(name: str) -> dict[str, Any]:
    """The channel of a topic, named without the prefix."""
    [found] = [one for one in CHANNELS.values() if one["address"] == "{prefix}" + name]
    assert isinstance(found, dict)
    return found


def resolved(one: dict[str, Any]) -> dict[str, Any]:
    """What a reference within the document points at."""
    if "$ref" not in one:
        return one
    found: Any = DOCUMENT
    for part in one["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    assert isinstance(found, dict)
    return found


# -- the parser ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packages() -> Path:
    """AsyncAPI's parser; without package registries these tests are left out, but never in CI."""
    try:
        return made.node_packages(NODE)
    except made.CannotBeMadeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the parser cannot be had here: {str(error).splitlines()[0]}")


def parsed(packages: Path, file: Path) -> dict[str, Any]:
    done = subprocess.run(
        [made.node(), packages / "check.mjs", file], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_official_parser_finds_nothing(packages: Path) -> None:
    found = parsed(packages, FILE)

    assert [one for one in found["found"] if one["code"] not in HARMLESS] == []
    assert len(found["channels"]) == len(CHANNELS)
    assert {name for name, _ in found["operations"]} == DOCUMENT["operations"].keys()
    assert all(has_payload for _, has_payload in found["messages"])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("./audit.v1.schema.json", "./audit.v7.schema.json"),
        ("action: send", "action: publish"),
        ("$ref: '#/channels/events'", "$ref: '#/channels/evening'"),
    ],
)
def test_it_would_find_what_is_wrong(packages: Path, tmp_path: Path, right: str, wrong: str) -> None:
    for schema in SCHEMAS.glob("*.json"):
        shutil.copy(schema, tmp_path)
    text = FILE.read_text()
    assert right in text
    (tmp_path / "asyncapi.yaml").write_text(text.replace(right, wrong))

    found = parsed(packages, tmp_path / "asyncapi.yaml")["found"]
    assert [one for one in found if one["severity"] == 0] != []


# -- the table ----------------------------------------------------------------------------------------------


def test_every_topic_is_a_channel_and_nothing_else_is() -> None:
    assert {one["address"] for one in CHANNELS.values()} == {"{prefix}" + one.name for one in topics()}


@pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.name)
def test_a_channel_says_what_the_table_says(topic: Topic) -> None:
    found, config = channel(topic.name), topic.config()

    kafka = found["bindings"]["kafka"]["topicConfiguration"]
    assert kafka["cleanup.policy"] == [config["cleanup.policy"]]
    for name in ("retention.ms", "max.message.bytes"):
        assert str(kafka.get(name)) == config.get(name, "None")
    assert found["x-key"] == topic.key
    assert found["x-partitions"] == topic.partitions
    assert found["x-timestamps"] == ("append time" if topic.append_time else "create time")
    assert set(re.findall(r"{(\w+)}", found["address"])) == found["parameters"].keys()


def test_every_principal_does_what_it_may_and_no_more() -> None:
    said = {
        (one["x-principal"], one["action"], resolved(one["channel"])["address"])
        for one in DOCUMENT["operations"].values()
    }
    rights = {
        (who.removesuffix("-{agent}").removesuffix("-{team}"), action, "{prefix}" + topic.name)
        for topic in topics()
        for action, names in (("send", topic.writers), ("receive", topic.readers))
        for who in names
    }
    assert said == rights
    assert len(said) == len(DOCUMENT["operations"])


def test_every_header_of_ours_is_described() -> None:
    ours = {
        value
        for name, value in vars(messages).items()
        if name.isupper() and isinstance(value, str) and value.startswith("holdshort-")
    }
    assert ours - {messages.DEAD_LETTER} <= DOCUMENT["components"]["schemas"].keys()


# -- what is written ----------------------------------------------------------------------------------------


def test_everything_that_gate_and_router_write_is_as_it_says() -> None:
    """Headers are described ones, values fit, tombstones stand only where the document has them."""

    async def main() -> set[str]:
        async with system(CONFIG) as installation:
            await story(installation)
            await installation.send("inputs", b"not JSON", key="t")
            return set(_told(installation))

    kinds = in_virtual_time(main())
    assert kinds >= {"run", "event", "pending", "gathering", "audit", "approval", "receipt", "deadLetter"}
    assert "tombstone" in kinds


def _told(installation: System) -> Iterator[str]:
    ours = {
        resolved(one["channel"])["address"]
        for one in DOCUMENT["operations"].values()
        if (one["action"], one["x-principal"]) in (("send", "gatekeeper"), ("send", "router"))
    }
    for name, found in _concrete(installation):
        if found["address"] not in ours:
            continue
        of_value = [one for one in found["messages"] if one != "tombstone"]
        for record in installation.broker.committed(name):
            kind = "tombstone" if record.value is None and "tombstone" in found["messages"] else of_value[0]
            message = resolved(found["messages"][kind])
            headers = {header: text.decode() for header, text in record.headers}
            if kind == "deadLetter":
                assert _problems(message["headers"], headers) == []
            else:
                described = resolved(message.get("headers", {})).get("properties", {})
                assert headers.keys() <= described.keys(), name
                for header, text in headers.items():
                    assert _problems(resolved(described[header]), text) == [], (name, header)
                assert _problems(message["payload"], json.loads(record.value or b"null")) == [], name
            yield kind


def _concrete(installation: System) -> Iterator[tuple[str, dict[str, Any]]]:
    """The topics of an installation and their channels."""
    for name in installation.broker.topics:
        for found in CHANNELS.values():
            pattern = re.sub(r"\\{(agent|team)\\}", "[a-z0-9-]+", re.escape(found["address"]))
            if re.fullmatch(pattern.replace(r"\{prefix\}", ""), name):
                yield name, found


def _problems(schema: dict[str, Any], value: Any) -> list[str]:
    if (file := schema.get("$ref", "")).startswith("./"):
        schema = json.loads((SCHEMAS / file).read_text())
    return [error.message[:200] for error in Draft202012Validator(schema).iter_errors(value)]


# -- FastStream's own document ------------------------------------------------------------------------------


def test_what_faststream_says_of_a_team_is_a_part_of_it() -> None:
    team = Approver("payments", kafka=KafkaSettings(bootstrap_servers="localhost:9092"), prefix="acme.")
    team.on_receipt(print)
    broker = KafkaBroker("localhost:9092")
    broker.include_router(team.router)
    theirs: dict[str, Any] = json.loads(AsyncAPI(broker, schema_version="3.0.0").to_specification().to_json())

    assert theirs["asyncapi"] == DOCUMENT["asyncapi"]
    assert theirs["defaultContentType"] == DOCUMENT["defaultContentType"]
    assert len(theirs["operations"]) == 3
    ours = {
        (resolved(one["channel"])["address"], one["action"])
        for one in DOCUMENT["operations"].values()
        if one["x-principal"] == "team"
    }
    said = set()
    for one in theirs["operations"].values():
        found = theirs["channels"][one["channel"]["$ref"].removeprefix("#/channels/")]
        assert found["bindings"]["kafka"]["topic"] == found["address"]
        address = found["address"].replace("acme.", "{prefix}").replace("payments", "{team}")
        said.add((address, one["action"]))
    assert said == ours
