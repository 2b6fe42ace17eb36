"""What a soak leaves in the log, read again when all is over, as the check needs it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from tests.soak.plans import TEAMS

from holdshort.cli.bench.wire import Wire


class Said(NamedTuple):
    """One decision as it lies in the log; `by` is whom its edge has authenticated."""

    place: str
    team: str
    by: str
    value: Mapping[str, Any]

    @property
    def name(self) -> str:
        """By which its receipts name it: its own id, or its place if it has none that can be read."""
        id_ = self.value.get("decisionId")
        return id_ if isinstance(id_, str) else self.place


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that the check looks at; `audit` is the router's, by thread, in the order of its deeds."""

    questions: Mapping[str, Mapping[int, Mapping[str, str]]]  # thread, generation, interrupt: team
    decisions: Mapping[str, Said]  # by place
    receipts: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]  # by team and name
    audit: Mapping[str, Sequence[Mapping[str, Any]]]
    resumes: Mapping[str, Mapping[str, Any]]  # by run id
    given: Mapping[str, int] = field(default_factory=dict)  # how often the agent was given a run
    dead: Sequence[bytes] = ()  # values of dead letters
    open: Sequence[str] = ()  # what still stands in a compacted topic
    troubles: Sequence[str] = ()


def read(
    wire: Wire,
    prefix: str,
    questions: Mapping[str, Mapping[int, Mapping[str, str]]],
    given: Mapping[str, int],
    troubles: Sequence[str],
) -> Evidence:
    """Every topic that matters, from its beginning to its end. Raises MeasureAgainError."""
    audit: dict[str, list[Any]] = defaultdict(list)
    for message in wire.everything(f"{prefix}audit"):
        row = orjson.loads(message.value())
        if row["service"] == "router":
            audit[row["threadId"]].append(row)
    decisions, receipts = {}, defaultdict(list)
    for team in TEAMS:
        for said in _decisions(wire, prefix, team):
            decisions[said.place] = said
        for message in wire.everything(f"{prefix}receipts.{team}"):
            row = orjson.loads(message.value())
            receipts[team, row["decisionId"]].append(row)
    resumes = [orjson.loads(message.value()) for message in wire.everything(f"{prefix}resumes")]
    doubled = [f"two batches of run {one}" for one in _more_than_once(row["runId"] for row in resumes)]
    return Evidence(
        questions=questions,
        decisions=decisions,
        receipts=receipts,
        audit=audit,
        resumes={row["runId"]: row for row in resumes},
        given=given,
        dead=[message.value() for message in wire.everything(f"{prefix}dead-letters")],
        open=[*_open(wire, prefix)],
        troubles=[*troubles, *doubled],
    )


def _decisions(wire: Wire, prefix: str, team: str) -> Iterator[Said]:
    for message in wire.everything(f"{prefix}decisions.{team}"):
        place = f"decisions.{team}/{message.partition()}/{message.offset()}"
        by = dict(message.headers() or ())["holdshort-principal"].decode()
        yield Said(place, team, by, orjson.loads(message.value()))


def _more_than_once(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _open(wire: Wire, prefix: str) -> Iterator[str]:
    for topic in ("pending", "gathering", *(f"approvals.{team}" for team in TEAMS)):
        last = {message.key(): message.value() for message in wire.everything(f"{prefix}{topic}")}
        for key, value in last.items():
            if value is not None and _is_open(topic, orjson.loads(value)):
                yield f"{key.decode()} still stands in {topic}"


def _is_open(topic: str, row: Mapping[str, Any]) -> bool:
    match topic:
        case "pending":
            return row.get("pause") is not None or row.get("run") is not None
        case "gathering":
            return row.get("closedAt") is None
        case _:
            return True
