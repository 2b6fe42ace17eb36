"""Row *said differently* of contract 2: the interrupted run asks something else now."""

import pytest
from tests.expected import admitted, ignored, opened, refused, replayed, settled
from tests.playbook import Agent, Client, Playbook, agent, cancelled, client, pause_of, question, sdk

from holdshort.contract.rules import Limits


def test_another_question_supersedes_the_one_that_is_open() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a", generation=1)
    (
        play
        >> agent.interrupts("r1", "a", "b")
        << opened("a", "b", generation=2, superseded=1, settled=None, shown=["RUN_STARTED", "RUN_FINISHED"])
    )

    (gone,) = play.state().gone
    assert (gone.how, gone.ids, gone.outcome) == ("superseded", ("a",), None)


@pytest.mark.parametrize(
    "changed",
    [
        [question("b"), question("a")],
        [question("a"), question("b", unknown=1)],
        [question("a"), question("b", message="really?")],
        [question("a"), question("b", metadata={"n": 1.0})],
        [question("a")],
    ],
)
def test_order_unknown_fields_and_numbers_count(changed: list[dict[str, object]]) -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a", question("b")))
    play >> agent.interrupts("r1", *changed) << opened(*[str(one["id"]) for one in changed], superseded=1)


def test_an_answer_to_what_was_asked_before_does_not_count() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), agent.interrupts("r1", question("a", message="more!")))

    play >> client.resumes("r2", a=True).echoing(1) << refused("RESUME_CONFLICT", open=["a"])
    play >> client.resumes("r3", a=cancelled).echoing(1) << replayed(open=["a"])
    play >> client.resumes("r4", a=True).echoing(2) << admitted()


def test_while_resuming_nothing_is_superseded() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))

    play >> agent.interrupts("r1", "b") << ignored(emitted=[], status="resuming")
    play >> sdk.finishes("r2") << settled(1)


def test_an_id_that_was_asked_before_is_marked_as_reused() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), agent.interrupts("r1", "a", "b"))

    assert [(one.id, one.reused) for one in pause_of(play).interrupts] == [("a", True), ("b", False)]


def test_what_was_attempted_stays_attempted() -> None:
    """The tool has run, however the question is put now."""
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.interrupts("r1", question("a", toolCallId="c")))
    play(sdk.results("c"))

    play >> sdk.interrupts("r1", question("b", toolCallId="c"), "d") << opened("b", "d", superseded=1)

    assert pause_of(play).attempted == ("b",)


def test_the_run_keeps_its_principal_tools_and_context() -> None:
    play = Playbook(trust_principal=frozenset({"inputs"}))
    play(client.asks("r1").having(principal="ada"), sdk.calls("c", "pay"))
    play(sdk.event("MESSAGES_SNAPSHOT", messages=[]), sdk.interrupts("r1", "a"))
    first = pause_of(play)

    play >> sdk.interrupts("r1", question("b", toolCallId="c")) << opened("b", superseded=1)

    again = pause_of(play)
    assert (again.principal, again.admission, again.context) == ("ada", first.admission, first.context)
    assert again.interrupts[0].tool is not None
    assert again.interrupts[0].tool.name == "pay"


def test_it_may_unseal_a_pause() -> None:
    play = Playbook(agents=["default", "other"], limits=Limits(open_pauses=1))
    play(Agent(thread="u").interrupts("r1", "x"))
    play >> agent.interrupts("r1", "a") << opened(code="TOO_MANY_PAUSES", generation=1)
    play >> client.resumes("r2", a=True) << refused("TOO_MANY_PAUSES")
    play(Client("u").resumes("r2", x=True), Agent(thread="u").finishes("r2"))

    play >> agent.interrupts("r1", "a", "b") << opened("a", "b", generation=2, superseded=1)


def test_what_it_supersedes_does_not_count_against_the_limit() -> None:
    play = Playbook(limits=Limits(open_pauses=1))
    play(agent.interrupts("r1", "a"))
    play >> agent.interrupts("r1", "b") << opened("b", superseded=1, code=None)


def test_the_other_question_may_be_sealed() -> None:
    play = Playbook(limits=Limits(open_bytes=100))
    play >> agent.interrupts("r1", "a") << opened("a")
    (
        play
        >> agent.interrupts("r1", question("b", message="x" * 100))
        << opened(
            code="TOO_MANY_PAUSES",
            superseded=1,
            shown=["RUN_STARTED", "RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"],
        )
    )
    assert play.pending() == set()
