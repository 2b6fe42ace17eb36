"""What the gate shows, as streams: every run of a thread as its client reads it, for ag-ui-validate."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ag_ui_validate.pytest_plugin import validate_agui
from tests.playbook import Passes, Playbook, Said, client, sdk

from holdshort.contract.rules import AgentRules


class FalseAlarm(NamedTuple):
    """A rule of ag-ui-validate that is off, because what it forbids is right, as in `example`."""

    rule: str
    says: str
    why: str
    example: tuple[Said, ...]
    agent: AgentRules = AgentRules()


FALSE_ALARMS: Final = (
    FalseAlarm(
        "AGUI207",
        "a result for a tool call that the run did not start",
        "A run that answers a pause brings the results of the interrupted run's calls.",
        (
            client.asks("r1"),
            sdk.starts("r1"),
            sdk.calls("c", "pay"),
            sdk.event("TOOL_CALL_END", toolCallId="c"),
            sdk.interrupts("r1", "a"),
            client.resumes("r2", a=True),
            sdk.starts("r2"),
            sdk.results("c", "r2"),
            sdk.finishes("r2"),
        ),
    ),
    FalseAlarm(
        "AGUI008",
        "a RUN_FINISHED under another run id than the RUN_STARTED",
        "Agents may have run ids of their own. Events are shown as written; `holdshort-run` names the run.",
        (client.asks("r1"), sdk.starts("r1"), sdk.finishes("r1").adding(runId="its own")),
        AgentRules(foreign_run_ids=True),
    ),
)
OFF: Final = tuple(alarm.rule for alarm in FALSE_ALARMS)
INTRODUCTION: Final = """\
Everything that the gate shows is read by ag-ui-validate, run by run: histories, and every input above.
It finds nothing, but for these rules."""


def emitted(play: Playbook, said: Iterable[Said | Passes]) -> Iterator[list[dict[str, Any]]]:
    """What the gate emits at each of these records."""
    for one in said:
        play = play >> one
        yield [emit for answer in play.unchecked for emit in answer["emits"]]


class Streams:
    """Everything shown, by thread and run; a run id that comes again continues its stream."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], list[Any]] = {}

    def read(self, emits: Iterable[dict[str, Any]]) -> None:
        for emit in emits:
            if emit["topic"] == "events":
                stream = (emit["key"], emit["headers"]["holdshort-run"])
                self.events.setdefault(stream, []).append(emit["value"])

    def findings(self) -> list[str]:
        """What ag-ui-validate finds in any of them: its errors and warnings."""
        return [
            f"{stream}: {found.rule} {found.message}"
            for stream, events in self.events.items()
            for found in findings(events)
        ]


def findings(events: list[Any], off: Iterable[str] = OFF) -> list[Any]:
    """What ag-ui-validate says of one stream, but for rules that are off and its remarks on style."""
    report = validate_agui(events, severity_overrides=dict.fromkeys(off, "off"))
    return [found for found in report.diagnostics if found.severity != "info"]
