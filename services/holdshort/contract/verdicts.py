"""What judging one record gives: a verdict, the records it emits, and the changes it makes to the thread."""

from enum import StrEnum

import msgspec

from holdshort.contract.changes import Change
from holdshort.contract.codes import Code
from holdshort.contract.messages import Emit
from holdshort.contract.resume import Problem
from holdshort.contract.rules import Rules


class Kind(StrEnum):
    """The closed set of verdicts."""

    PASSED = "passed"
    OPENED = "opened"
    IGNORED = "ignored"
    SETTLED = "settled"
    REOPENED = "reopened"
    LOST = "lost"
    VIOLATED = "violated"
    UNREADABLE = "unreadable"
    ADMITTED = "admitted"
    REFUSED = "refused"
    DUPLICATE = "duplicate"
    REPLAYED = "replayed"
    FORGOTTEN = "forgotten"


class Verdict(msgspec.Struct, frozen=True):
    """The judgement of one record or deadline.

    `settled` and `superseded` are the generations of pauses that ended in the same step. `run_id` names the
    run that the record is about, for logs and the audit; None for an event of the thread's own run.
    """

    kind: Kind
    emits: tuple[Emit, ...] = ()
    changes: tuple[Change, ...] = ()
    code: Code | None = None
    problems: tuple[Problem, ...] = ()
    settled: int | None = None
    superseded: int | None = None
    run_id: str | None = None


def about(run_id: str | None, verdict: Verdict, rules: Rules) -> Verdict:
    """The verdict with the run that the record names, cut so that it can be told of any record."""
    if run_id is None or verdict.run_id is not None:
        return verdict
    return msgspec.structs.replace(verdict, run_id=run_id[: rules.limits.id])


IGNORED = Verdict(Kind.IGNORED)
DUPLICATE = Verdict(Kind.DUPLICATE)
