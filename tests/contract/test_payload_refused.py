"""Row *payload refused* of contract 3: OPEN; a `resolved` payload that does not fit."""

from typing import Any

import pytest
from tests.expected import admitted, opened, quietly_refused, refused
from tests.playbook import (
    Answer,
    Playbook,
    agent,
    cancelled,
    client,
    pause_of,
    question,
    resolved,
    sdk,
    team,
    without_payload,
)

from holdshort.contract.rules import Limits

APPROVAL = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string", "maxLength": 5}},
    "required": ["approved"],
    "additionalProperties": False,
}
REFUSED = refused("INVALID_PAYLOAD", open=["a"])


def asking(schema: Any, **changes: Any) -> Playbook:
    play = Playbook(**changes)
    play >> agent.interrupts("r1", question("a", responseSchema=schema)) << opened("a")
    return play


def test_a_payload_that_fits_goes_on() -> None:
    play = asking(APPROVAL)
    play >> client.resumes("r2", a={"approved": False}) << admitted()


@pytest.mark.parametrize(
    ("payload", "problems"),
    [
        ({}, [("", "must have a member approved")]),
        ({"approved": 1}, [("/approved", 'must be of type "boolean"')]),
        ({"approved": None}, [("/approved", 'must be of type "boolean"')]),
        ({"approved": True, "x": 1}, [("/x", "is not a member that the schema knows")]),
        (True, [("", 'must be of type "object"')]),
        (
            {"approved": "yes", "comment": "too long"},
            [("/approved", 'must be of type "boolean"'), ("/comment", "must have at most 5 characters")],
        ),
    ],
)
def test_each_place_where_it_does_not_fit_is_told(payload: Any, problems: list[tuple[str, str]]) -> None:
    play = asking(APPROVAL)
    play >> client.resumes("r2", a=payload) << REFUSED
    assert [(problem["path"], problem["message"]) for problem in play.error()["problems"]] == problems


def test_problems_never_hold_a_value_of_the_payload() -> None:
    play = asking({"enum": ["x"], "pattern": "^y", "const": "x", "type": "integer", "maxLength": 1})
    play >> client.resumes("r2", a="my secret") << REFUSED
    assert "secret" not in str(play.events())
    assert len(play.error()["problems"]) == 5


def test_all_interrupts_are_told() -> None:
    play = Playbook()
    play(agent.interrupts("r1", *[question(id_, responseSchema=APPROVAL) for id_ in "abc"]))
    (
        play
        >> client.resumes("r2", a={}, b={"approved": True}, c=3)
        << refused("INVALID_PAYLOAD", about=["a", "c"])
    )


def test_an_absent_payload_is_checked_as_null() -> None:
    play = asking({"type": "null"})
    play >> client.resumes("r2", a=without_payload) << admitted()
    play = asking(APPROVAL)
    play >> client.resumes("r2", a=without_payload) << REFUSED


def test_a_cancelled_entrys_payload_is_ignored() -> None:
    for odd in (Answer("cancelled", {"payload": {"approved": 1}}), Answer("cancelled", {"payload": 2**60})):
        play = asking(APPROVAL)
        play >> client.resumes("r2", a=odd) << admitted()


@pytest.mark.parametrize("payload", [None, False, 0, "", [], {}, "text", 1.5, {"deep": [{}]}])
def test_without_a_schema_any_payload_will_do(payload: Any) -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> client.resumes("r2", a=payload) << admitted()


@pytest.mark.parametrize("payload", [2**53, -(2**53), [2**53], {"x": {"y": 2**53}}, 2**64, 1e300, -1e16])
def test_an_integer_that_javascript_cannot_hold_is_refused(payload: Any) -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> client.resumes("r2", a=payload) << REFUSED


@pytest.mark.parametrize("payload", [2**53 - 1, -(2**53) + 1, 0.1, 1e-300, True, "9007199254740993"])
def test_what_javascript_can_hold_goes_on(payload: Any) -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"))
    play >> client.resumes("r2", a=payload) << admitted()


def test_the_work_budget_is_the_records_and_not_the_payloads() -> None:
    play = Playbook(limits=Limits(work=99))
    schema = {"items": {"type": "integer"}}
    play(agent.interrupts("r1", *[question(id_, responseSchema=schema) for id_ in "ab"]))
    some = list(range(9))
    play >> client.resumes("r2", a=some, b=0) << admitted()
    play(sdk.fails("r2"))
    play >> client.resumes("r3", a=some, b=some) << refused("INVALID_PAYLOAD", about=["b"])


# -- interrupts that can only be cancelled ------------------------------------------------------------------

HOSTILE = {"pattern": "(?=x)"}


def test_one_whose_schema_was_refused_can_only_be_cancelled() -> None:
    play = asking(HOSTILE)
    play >> client.resumes("r2", a="x") << refused("SCHEMA_REFUSED", about=["a"], open=["a"])
    play >> client.resumes("r2", a=without_payload) << refused("SCHEMA_REFUSED")
    play >> client.resumes("r2", a=cancelled) << admitted()


def test_it_is_refused_from_the_router_too() -> None:
    play = asking(HOSTILE)
    play >> team.resumes("hs-1", a="x") << quietly_refused("SCHEMA_REFUSED")
    assert pause_of(play).refusal is not None


def test_with_unusable_schemas_accepted_it_is_not_checked() -> None:
    play = asking(HOSTILE, unusable_schema="accept")
    assert not pause_of(play).interrupts[0].cancel_only
    play >> client.resumes("r2", a={"anything": "goes"}) << admitted()


def test_with_unusable_schemas_accepted_the_usable_ones_are_checked_all_the_same() -> None:
    play = asking(APPROVAL, unusable_schema="accept")
    play >> client.resumes("r2", a={}) << REFUSED


def test_with_unusable_schemas_accepted_numbers_are_checked_all_the_same() -> None:
    play = asking(HOSTILE, unusable_schema="accept")
    play >> client.resumes("r2", a=2**53) << REFUSED


def test_the_first_interrupt_with_a_problem_gives_the_code_whatever_the_order_of_entries() -> None:
    play = Playbook()
    play(
        agent.interrupts("r1", question("a", responseSchema=APPROVAL), question("b", responseSchema=HOSTILE))
    )
    play >> client.resumes("r2", a={}, b=1) << refused("INVALID_PAYLOAD", about=["a", "b"])
    play >> client.resumes("r2", b=1, a={}) << refused("INVALID_PAYLOAD", about=["a", "b"])


def test_which_payload_is_over_the_budget_does_not_depend_on_the_order_of_entries() -> None:
    play = Playbook(limits=Limits(work=99))
    schema = {"items": {"type": "integer"}}
    play(agent.interrupts("r1", *[question(id_, responseSchema=schema) for id_ in "ab"]))
    some = list(range(9))
    play >> client.resumes("r2", b=some, a=some) << refused("INVALID_PAYLOAD", about=["b"])


# -- answers that can be written ----------------------------------------------------------------------------


def test_endless_names_make_no_endless_answer() -> None:
    play = asking({"additionalProperties": {"items": {"type": "integer"}}})
    play >> client.resumes("r2", a={"q" * 60_000: ["x"] * 20}) << REFUSED
    assert all(len(problem["path"]) < 300 for problem in play.error()["problems"])


def test_endless_names_in_the_schema_make_none_either() -> None:
    endless = {"$defs": {"x": {"required": ["n" * 30_000]}}, "allOf": [{"$ref": "#/$defs/x"}] * 20}
    play = asking(endless)
    play >> client.resumes("r2", a={}) << REFUSED
    assert len(play.error()["problems"]) == 20
    assert all(len(problem["message"]) < 300 for problem in play.error()["problems"])


def test_no_more_than_twenty_problems_of_one_payload_are_told() -> None:
    play = asking({"items": {"type": "integer"}})
    play >> client.resumes("r2", a=resolved(["x"] * 50).members["payload"]) << REFUSED
    assert len(play.error()["problems"]) == 20
