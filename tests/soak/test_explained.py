"""The check of the soak finds what it is there for: every break of a small story is told."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.soak.evidence import Evidence, Said
from tests.soak.explained import findings
from tests.soak.plans import PROVED, Step, beside, plan

Row = dict[str, Any]

YES: Final = {"approved": True, "slip": "s"}
NO: Final = {"approved": False, "slip": "s"}


def said(number: int, name: str | None, payload: Row, team: str = "payments", by: str = "ann") -> Said:
    """A decision; without a name it is bare."""
    entry = {"interruptId": "q", "status": "resolved", "payload": payload}
    value: Row = {"threadId": "t", "resume": [entry]}
    if name is not None:
        value |= {"decisionId": name, "generation": 1}
    return Said(f"decisions.{team}/0/{number}", team, by, value)


def judged(one: Said, verdict: str, code: str | None = None) -> Row:
    topic, partition, offset = one.place.split("/")
    source = {"topic": topic, "partition": int(partition), "offset": int(offset)}
    return {"verdict": verdict, "code": code, "generation": 1, "team": one.team, "source": source}


def done(deed: str, code: str | None = None, **more: Any) -> Row:
    return {"verdict": deed, "code": code, "generation": 1, **more}


def receipt(verdict: str, code: str | None = None) -> Row:
    return {"verdict": verdict, "code": None, "entries": [{"code": code}]}


def batch(name: str) -> Row:
    entry = {"interruptId": "q", "metadata": {"holdshort": {"decisionId": name}}}
    return {"runId": "hs-1", "resume": [entry]}


def evidence(
    rows: Sequence[Row],
    decisions: Sequence[Said],
    receipts: Mapping[str, Sequence[Row]],
    answer: str,
    team: str = "payments",
) -> Evidence:
    """One thread with one question, answered by `answer`."""
    return Evidence(
        questions={"t": {1: {"q": team}}},
        decisions={one.place: one for one in decisions},
        receipts={(team, name): those for name, those in receipts.items()},
        audit={"t": [*rows, done("forwarded", runId="hs-1")]},
        resumes={"hs-1": batch(answer)},
        given={"hs-1": 1},
    )


FIRST: Final = said(0, "right/a", YES)
OTHER: Final = said(1, "other/a", NO, by="bob")
TWO_OPINIONS: Final = evidence(
    [judged(FIRST, "accepted"), judged(OTHER, "refused", "ALREADY_DECIDED")],
    [FIRST, OTHER],
    {"right/a": [receipt("accepted")], "other/a": [receipt("refused", "ALREADY_DECIDED")]},
    "right/a",
)


def test_a_whole_story_is_explained() -> None:
    assert findings(TWO_OPINIONS) == []


def test_a_deadline_explains_what_it_took_back() -> None:
    vote = said(0, "right/a", YES, team=PROVED)
    rows = [judged(vote, "accepted"), done("cancelled", "DENIAL", interruptId="q")]
    receipts = {"right/a": [receipt("accepted"), receipt("refused", "CANCELLED_BY_DENIAL")]}

    assert findings(evidence(rows, [vote], receipts, "router:denial", PROVED)) == []


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"open": ["t still stands in pending"]}, "still stands"),
        ({"given": {"hs-1": 2}}, "was given to the agent 2 times"),
        ({"resumes": {"hs-1": batch("other/a")}}, "counted have"),
        ({"resumes": {}}, "was given to the agent 1 times"),
        ({"dead": [b"{}"]}, "1 dead letters"),
        ({"receipts": {("payments", "right/a"): [receipt("accepted")]}}, "has the receipts {}"),
        ({"audit": {"t": TWO_OPINIONS.audit["t"][:2]}}, "was never answered"),
        ({"audit": {"t": TWO_OPINIONS.audit["t"][1:]}}, "nothing explains it"),
        ({"audit": {"t": [*TWO_OPINIONS.audit["t"], judged(OTHER, "accepted")]}}, "nothing explains it"),
        ({"audit": {"t": [*TWO_OPINIONS.audit["t"], done("forwarded", runId="hs-1")]}}, "or again"),
        ({"audit": {"t": [*TWO_OPINIONS.audit["t"], done("held", "TOO_LARGE")]}}, "no reason here"),
    ],
    ids=[
        "open",
        "delivered twice",
        "another answer",
        "no batch",
        "a dead letter",
        "no receipt",
        "no answer",
        "refused without a first",
        "accepted twice",
        "forwarded twice",
        "held",
    ],
)
def test_a_break_is_told(broken: Row, told: str) -> None:
    found = findings(replace(TWO_OPINIONS, **broken))

    assert any(told in text for text in found), found


@pytest.mark.parametrize(
    ("code", "explained"),
    [
        ("STALE_GENERATION", False),
        ("NOT_YOUR_INTERRUPT", False),
        ("CLAIMED", False),
        ("QUORUM_DISAGREES", False),
        ("INVALID_PAYLOAD", False),
        ("ANSWERED_ELSEWHERE", False),
        ("ALREADY_DECIDED", True),
    ],
)
def test_a_refusal_needs_the_fact_that_makes_it_true(code: str, explained: bool) -> None:
    rows = [judged(FIRST, "accepted"), judged(OTHER, "refused", code)]
    receipts = {"right/a": [receipt("accepted")], "other/a": [receipt("refused", code)]}

    found = findings(evidence(rows, [FIRST, OTHER], receipts, "right/a"))

    assert (found == []) is explained, found


@pytest.mark.parametrize("over", [True, False])
def test_a_bare_answer_to_a_pause_that_is_over_is_not_of_the_next_one(over: bool) -> None:
    late = said(1, None, NO, by="bob")
    first, forwarded = TWO_OPINIONS.audit["t"][0], TWO_OPINIONS.audit["t"][-1]
    refused = judged(late, "refused", "NOT_YOUR_INTERRUPT")
    story = replace(
        TWO_OPINIONS,
        decisions={one.place: one for one in (FIRST, late)},
        receipts={
            ("payments", "right/a"): [receipt("accepted")],
            ("payments", late.place): [receipt("refused", "NOT_YOUR_INTERRUPT")],
        },
        audit={"t": [first, forwarded, refused] if over else [first, refused, forwarded]},
    )

    assert (findings(story) == []) is over


def of_attempt(attempt: int, one: Said) -> Said:
    return one._replace(value={**one.value, "attempt": attempt})


@pytest.mark.parametrize(("attempt", "explained"), [(1, True), (2, False)])
def test_an_answer_for_an_earlier_attempt_is_stale_only_if_it_says_so(attempt: int, explained: bool) -> None:
    late, anew = of_attempt(attempt, said(1, "late/a", NO, by="bob")), said(2, "right/b", YES)
    first, forwarded = TWO_OPINIONS.audit["t"][0], TWO_OPINIONS.audit["t"][-1]
    rows = [first, forwarded, done("shown_again"), judged(late, "refused", "STALE_ATTEMPT")]
    story = replace(
        TWO_OPINIONS,
        decisions={one.place: one for one in (FIRST, late, anew)},
        receipts={
            ("payments", "right/a"): [receipt("accepted")],
            ("payments", "late/a"): [receipt("refused", "STALE_ATTEMPT")],
            ("payments", "right/b"): [receipt("accepted")],
        },
        audit={"t": [*rows, judged(anew, "accepted"), done("forwarded", runId="hs-2")]},
        resumes={"hs-1": batch("right/a"), "hs-2": batch("right/b")},
        given={"hs-1": 1, "hs-2": 1},
    )

    assert (findings(story) == []) is explained


def test_what_is_said_beside_an_answer_reaches_the_agent() -> None:
    slip = next(f"s{number}" for number in range(100) if beside(f"s{number}"))
    (entry,) = batch("right/a")["resume"]
    entry["payload"] = {"approved": True, "slip": slip}
    lost = {"runId": "hs-1", "resume": [entry]}
    kept = {"runId": "hs-1", "resume": [{**entry, "metadata": {**entry["metadata"], **beside(slip)}}]}

    assert findings(replace(TWO_OPINIONS, resumes={"hs-1": kept})) == []
    assert "has lost what was said" in findings(replace(TWO_OPINIONS, resumes={"hs-1": lost}))[0]


def planned(team: str, need: int, seed: int) -> list[Step]:
    asked = {
        "approvalId": f"a{seed}",
        "attempt": 1,
        "threadId": "t",
        "generation": 1,
        "digest": "d",
        "interrupt": {"id": "q"},
        "quorum": {"need": need, "have": 0},
    }
    return plan(asked, team, seed)


def test_people_do_everything_that_there_is() -> None:
    plans = [planned("payments", 1, seed) for seed in range(300)]
    names = {str(step.value.get("decisionId", "bare")).partition("/")[0] for steps in plans for step in steps}

    assert {name.rstrip("+-~") for name in names} >= {"right", "other", "late", "claim", "bare"}
    assert sum(name.startswith("wrong-") for name in names) == 8
    assert {"attempt" in step.value for steps in plans for step in steps} == {True, False}
    assert {"metadata" in step.value["resume"][0] for steps in plans for step in steps} == {True, False}
    assert [planned("payments", 1, seed) for seed in range(300)] == plans


def test_a_quorum_is_always_reached() -> None:
    for seed in range(300):
        steps = [step for step in planned(PROVED, 2, seed) if step.when == "asked" and step.team == PROVED]
        voted: dict[str, set[str]] = {}
        for step in steps:
            payload = step.value["resume"][0].get("payload", {})
            if isinstance(payload.get("approved"), bool) and "wrong" not in str(step.value.get("decisionId")):
                voted.setdefault(str(payload), set()).add(step.by)
        assert any(len(by) > 1 or "'approved': False" in what for what, by in voted.items()), seed
