"""`holdshort judge`: transcripts through the contract, on the very code that the gatekeeper runs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdshort.contract.rules import Rules
    from holdshort.gatekeeper.cases import Answered, Case, Source

STDIN = "-"


def judge(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC=]FILE...", help="Transcripts, cases or dumps; stdin (-) by default."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="name=value of the configuration, such as partitions=12."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A configuration file, for agents and routes.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say it in words instead of JSON.")] = False,
    prefix: Annotated[str, typer.Option(help="What stands before every topic of a dump.")] = "holdshort.",
) -> None:
    """Say what the gate would answer to each record: one line of JSON a record and a fired deadline.

    A record is a line {"topic": "inputs" | "resumes" | "agent-events.<agent>", "at": ..., "value": ...}, and
    optionally key, headers, partition, offset, clock, inputs_end. A line {"at": ...} lets time pass.

    A line may say what it expects: "expect": {"verdict": "refused", "code": [...], "open": [...], ...}, or a
    list of these where several deadlines fire. A file of cases is a JSON list, or a line each, of {"case":
    name, "transcript": [lines], "expect": [what holds of the last answers]}. What is not met is told on
    stderr, and the exit code is 1; it is 2 if the input cannot be understood.

    Dumps of topics are put in the order of their times, and deadlines fire between them: give inputs, resumes
    and every agent's events, and --set partitions=N. Known dumps are those of `kcat -J`, and as TOPIC=FILE
    those of `kafka-console-consumer` with --formatter-property (before Kafka 4: --property)
    print.timestamp=true, and the same for print.partition, print.offset, print.headers and print.key.
    """
    from holdshort.gatekeeper.cases import Compared, play, read_cases  # noqa: PLC0415 - heavy
    from holdshort.gatekeeper.transcript import Transcript  # noqa: PLC0415 - heavy

    cases = read_cases([_source(argument) for argument in files or [STDIN]], prefix)
    rules = _rules(cases, config, settings or [])
    met: list[bool] = []
    for case in cases:
        for told in play(case, Transcript(rules)):
            if isinstance(told, Compared):
                met.append(not told.differences)
                for difference in told.differences:
                    typer.echo(f"{told.where}: {difference}", err=True)
            else:
                _print(told, rules, explain)
    if met:
        typer.echo(f"holdshort: {sum(met)} of {len(met)} expectations are met", err=True)
    if not all(met):
        raise typer.Exit(1)


def _print(told: "Answered", rules: "Rules", explained: bool) -> None:
    if explained:
        from holdshort.gatekeeper.explained import explain  # noqa: PLC0415 - only here

        typer.echo(explain(told, rules) + "\n")
    else:
        import orjson  # noqa: PLC0415 - only here

        typer.echo(orjson.dumps(told.answer))


def _source(argument: str) -> "Source":
    """A file's text; what is not UTF-8 in it is for the gate to judge."""
    from holdshort.gatekeeper.cases import Source  # noqa: PLC0415 - heavy
    from holdshort.gatekeeper.transcript import MendTranscriptError  # noqa: PLC0415 - heavy

    before, equals, after = argument.partition("=")
    topic, name = (before, after) if equals and not Path(argument).exists() else (None, argument)
    try:
        raw = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise MendTranscriptError(f"{name}: {error.strerror}") from error
    return Source(name, raw.decode(errors="surrogateescape"), topic)


def _rules(cases: "list[Case]", config: Path | None, settings: list[str]) -> "Rules":
    """The rules of the transcript: of the configuration file, or for whatever agents have topics in it."""
    import yaml  # noqa: PLC0415 - only here

    from holdshort.gatekeeper.cases import agents_of  # noqa: PLC0415 - heavy
    from holdshort.settings import Config, MendSettingsError, load_config, validated  # noqa: PLC0415 - heavy

    load_config(config)  # says what is wrong in the file's own words, before anything is set beside it
    raw: dict[str, Any] = yaml.safe_load(config.read_text()) if config else {}
    if config is None:
        raw["agents"] = {agent: {} for agent in agents_of(cases)}
    partitions: Any = 1
    for name, value in _pairs(settings):
        if name == "partitions":
            partitions = value
        elif name in ("foreign_run_ids", "legacy_interrupts", "resume"):
            for agent in raw.setdefault("agents", {"default": {}}).values():
                agent[name] = value
        else:
            _put(raw, name.split("."), value)
    if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1:
        raise MendSettingsError("--set partitions: must be a number from 1")
    return validated(Config, raw, "--set").rules(partitions)


def _pairs(settings: list[str]) -> "Iterator[tuple[str, Any]]":
    import yaml  # noqa: PLC0415 - only here

    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise MendSettingsError(f"--set {setting}: must be name=value")
        try:
            yield name.strip(), yaml.safe_load(value)
        except yaml.YAMLError:
            raise MendSettingsError(f"--set {setting}: the value is not YAML") from None


def _put(raw: "dict[str, Any]", path: list[str], value: Any) -> None:
    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    for name in path[:-1]:
        raw = raw.setdefault(name, {})
        if not isinstance(raw, dict):
            raise MendSettingsError(f"--set {'.'.join(path)}: {name} has no settings of its own")
    raw[path[-1]] = value
