"""`holdshort judge`: transcripts through the contract, on the very code that the gatekeeper runs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdshort.contract.rules import Rules


def judge(
    file: Annotated[
        Path | None, typer.Argument(help="A transcript, one JSON record a line; stdin by default.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="name=value of the configuration, such as partitions=12."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A configuration file, for agents and routes.")] = None,
) -> None:
    """Say what the gate would answer to each record: one line of JSON a record and a fired deadline.

    A record is {"topic": "inputs" | "resumes" | "agent-events.<agent>", "at": ..., "value": ...}, and
    optionally key, headers, partition, offset, clock, inputs_end. A line {"at": ...} lets time pass.
    """
    import orjson  # noqa: PLC0415 - only here

    from holdshort.gatekeeper.transcript import Transcript  # noqa: PLC0415 - heavy

    lines = list(_lines(sys.stdin if file is None else file.read_text().splitlines()))
    transcript = Transcript(_rules(lines, config, settings or []))
    for line in lines:
        for answer in transcript.play(line):
            typer.echo(orjson.dumps(answer))


def _lines(text: "Iterable[str]") -> "Iterator[dict[str, Any]]":
    import json  # noqa: PLC0415 - only here

    from holdshort.gatekeeper.transcript import MendTranscriptError  # noqa: PLC0415 - heavy

    for number, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line)
        except ValueError as error:
            raise MendTranscriptError(f"line {number} is not JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise MendTranscriptError(f"line {number} is not an object")
        yield parsed


def _rules(lines: "list[dict[str, Any]]", config: Path | None, settings: list[str]) -> "Rules":
    """The rules of the transcript: of the configuration file, or for whatever agents have topics in it."""
    from holdshort.settings import Config, load_config, validated  # noqa: PLC0415 - heavy

    raw = load_config(config).model_dump(exclude_unset=True) if config else {}
    if config is None:
        raw["agents"] = {agent: {} for agent in _agents(lines)}
    partitions = 1
    for name, value in _pairs(settings):
        if name == "partitions":
            partitions = int(value)
        elif name in ("foreign_run_ids", "legacy_interrupts", "resume"):
            for agent in raw.setdefault("agents", {"default": {}}).values():
                agent[name] = value
        else:
            _put(raw, name.split("."), value)
    return validated(Config, raw, "--set").rules(partitions)


def _agents(lines: "list[dict[str, Any]]") -> "Iterator[str]":
    """A gate reads the events of configured agents only: whoever has a topic in the transcript is one."""
    yield "default"
    for line in lines:
        topic = str(line.get("topic", ""))
        if topic.startswith("agent-events."):
            yield topic.removeprefix("agent-events.")


def _pairs(settings: list[str]) -> "Iterator[tuple[str, Any]]":
    import yaml  # noqa: PLC0415 - only here

    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise MendSettingsError(f"--set {setting}: must be name=value")
        yield name.strip(), yaml.safe_load(value)


def _put(raw: "dict[str, Any]", path: list[str], value: Any) -> None:
    for name in path[:-1]:
        raw = raw.setdefault(name, {})
    raw[path[-1]] = value
