"""What judging one record gives: a verdict, the records it emits, and the changes it makes to the thread."""

from enum import StrEnum

import msgspec

from holdshort.contract.changes import Change
from holdshort.contract.codes import Code
from holdshort.contract.messages import Emit
from holdshort.contract.resume import Problem


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


class Verdict(msgspec.Struct, frozen=True):
    """The judgement of one record or deadline.

    `settled` and `superseded` are the generations of pauses that ended in the same step.
    """

    kind: Kind
    emits: tuple[Emit, ...] = ()
    changes: tuple[Change, ...] = ()
    code: Code | None = None
    problems: tuple[Problem, ...] = ()
    settled: int | None = None
    superseded: int | None = None


IGNORED = Verdict(Kind.IGNORED)
DUPLICATE = Verdict(Kind.DUPLICATE)
