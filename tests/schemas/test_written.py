"""What gate and router write fits the schemas: in told histories, and in whatever hypothesis thinks of."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.schemas.both import Both, question
from tests.schemas.catalogue import ALL, members, present
from tests.schemas.histories import HISTORIES, told

from holdshort.contract.canon import sha256
from holdshort.stream.records import Record

WRITTEN: Final = {
    "pending": "pending.v1",
    "gathering": "gathering.v1",
    "audit": "audit.v1",
    "approvals": "approval.v1",
    "receipts": "receipt.v1",
    "dead-letters": "dead-letter.v1",
}
# A vote is somebody's: the router gives no votes.
NEVER: Final = {"gathering.v1": {"asked.votes.cause"}}


class Written(NamedTuple):
    """One record of ours, and the schema that it must fit."""

    schema: str
    record: Record
    value: Any

    @property
    def problems(self) -> list[str]:
        where = f"{self.record.topic}/{self.record.offset}"
        return [f"{where} {problem}" for problem in ALL[self.schema].problems(self.value)]


def written(both: Both) -> Iterator[Written]:
    """Every record of ours with a schema; tombstones have none."""
    for topic, log in both.logs.items():
        schema = WRITTEN.get(topic.partition(".")[0])
        for record in log if schema else []:
            if schema == "dead-letter.v1":
                yield Written(schema, record, {name: one.decode() for name, one in record.headers})
            elif schema is not None and record.value is not None:
                yield Written(schema, record, orjson.loads(record.value))


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_every_record_of_a_history_fits_its_schema(history: Callable[[], Both]) -> None:
    assert [problem for one in written(history()) for problem in one.problems] == []


def test_the_histories_write_every_member_that_the_schemas_name() -> None:
    found: dict[str, set[str]] = {schema: set() for schema in WRITTEN.values()}
    for history in HISTORIES:
        for one in written(history()):
            found[one.schema].update(present(one.value))

    for schema, paths in found.items():
        expected = {path.replace("ended.lost.", "run.") for path in members(ALL[schema])}
        assert expected - paths == NEVER.get(schema, set()), schema


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_the_audit_is_a_chain_for_each_service(history: Callable[[], Both]) -> None:
    heads = {"gatekeeper": "", "router": ""}
    for one in written(history()):
        if one.schema == "audit.v1":
            assert one.value["previous"] == heads[one.value["service"]]
            heads[one.value["service"]] = sha256(one.record.value or b"")


# -- whatever hypothesis thinks of --------------------------------------------------------------------------

ANYTHING: Final = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**62), 2**62)
    | some.floats(allow_nan=False)
    | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=6,
)
IDS: Final = some.sampled_from(["a", "b", "ä\u2028", "c" * 200])
RUNS: Final = some.sampled_from(["r1", "r2", "r3"])
TEAMS: Final = some.sampled_from(["payments", "security", "client", "unrouted"])
REASONS: Final = some.sampled_from(["payments:refund", "security:x", "chat:y", "tool_call", "z"])
DESCRIPTORS: Final = some.builds(
    lambda id_, reason, more: {**more, "id": id_, "reason": reason},
    IDS,
    REASONS,
    some.fixed_dictionaries(
        {},
        optional={"expiresAt": ANYTHING, "toolCallId": ANYTHING, "metadata": ANYTHING, "message": ANYTHING},
    ),
)
ENTRIES: Final = some.lists(
    some.fixed_dictionaries(
        {"interruptId": IDS, "status": some.sampled_from(["resolved", "cancelled"])},
        optional={"payload": ANYTHING, "metadata": some.dictionaries(some.text(), ANYTHING, max_size=2)},
    ),
    max_size=3,
)
ODD: Final = some.fixed_dictionaries(
    {},
    optional={
        "generation": ANYTHING,
        "decisionId": ANYTHING,
        "seen": ANYTHING,
        "attempt": ANYTHING,
        "decidedBy": ANYTHING,
        "decidedAt": ANYTHING,
        "comment": ANYTHING,
        "action": some.sampled_from(["decide", "claim", "release", "confirm", "other"]),
    },
)

Move = Callable[[Both], None]


def _said(type_: str, **members: some.SearchStrategy[Any]) -> some.SearchStrategy[Move]:
    return some.builds(
        lambda run, given: lambda both: both.event(type_, run, runId=run, **given),
        RUNS,
        some.fixed_dictionaries(members),
    )


def _answered(both: Both, team: str, answers: list[Any], odd: dict[str, Any]) -> None:
    """A decision about what is open, odd in some way; without a pause, a bare one."""
    state = both.threads.get(b"t")
    own = told(both) if state is not None and state.pause is not None else {}
    both.decides(team, **{**own, **odd, "resume": answers})


def _closed(both: Both, outcome: str) -> None:
    state = both.threads.get(b"t")
    if state is not None and state.run is not None:
        both.event(outcome, state.run.run_id, runId=state.run.run_id)


MOVES: Final[some.SearchStrategy[Move]] = some.one_of(
    some.builds(lambda run: lambda both: both.asks(run), RUNS),
    some.builds(lambda run, answers: lambda both: both.asks(run, resume=answers), RUNS, ENTRIES),
    some.builds(lambda run, answers: lambda both: both.resumes(run, 1, resume=answers), RUNS, ENTRIES),
    some.builds(
        lambda run, asked: lambda both: both.interrupts(run, *asked),
        RUNS,
        some.lists(DESCRIPTORS, max_size=3),
    ),
    _said("RUN_STARTED"),
    _said("MESSAGES_SNAPSHOT", messages=ANYTHING),
    _said("TOOL_CALL_START", toolCallId=ANYTHING, toolCallName=ANYTHING),
    _said("TOOL_CALL_RESULT", toolCallId=ANYTHING),
    _said("CUSTOM", name=some.just("on_interrupt"), value=ANYTHING),
    some.builds(
        lambda team, answers, odd: lambda both: _answered(both, team, answers, odd), TEAMS, ENTRIES, ODD
    ),
    some.builds(
        lambda outcome: lambda both: _closed(both, outcome), some.sampled_from(["RUN_FINISHED", "RUN_ERROR"])
    ),
    some.builds(
        lambda raw, topic: lambda both: both.write(topic, raw, "t"), some.binary(), some.just("inputs")
    ),
    some.builds(lambda hours: lambda both: both.passes(hours * 3600), some.integers(1, 30)),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(moves=some.lists(MOVES, max_size=12))
def test_whatever_is_said_what_is_written_fits(moves: list[Move]) -> None:
    both = Both()
    both.asks("r1")
    both.interrupts("r1", question("a"), question("b", reason="security:x"))
    for move in moves:
        move(both)

    assert [problem for one in written(both) for problem in one.problems] == []
