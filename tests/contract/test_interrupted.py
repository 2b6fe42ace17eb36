"""Row *interrupted* of contract 2: a well-formed interrupt outcome of the current or an outside run."""

from tests.expected import abandoned, admitted, opened, refused, replayed, settled
from tests.playbook import (
    SECOND,
    START_MS,
    Agent,
    Client,
    Playbook,
    agent,
    client,
    later,
    pause_of,
    question,
    sdk,
    team,
)

from holdshort.contract.rules import Limits
from holdshort.contract.state import Pointer


def test_the_run_ends_and_the_pause_opens() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    (
        play
        >> sdk.interrupts("r1", "a", "b")
        << opened("a", "b", generation=1, status="open", shown=["RUN_FINISHED"], under=["r1"])
    )

    pause = pause_of(play)
    assert play.state().run is None
    assert play.state().ended[0].outcome == "interrupt"
    assert (pause.run_id, pause.admission, pause.agent) == ("r1", Pointer("inputs", 0, 0), "default")
    assert pause.opened_at == play.at


def test_a_pause_the_run_answered_is_settled_in_the_same_verdict() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.interrupts("r1", "a"), client.resumes("r2", a=True))
    play >> sdk.interrupts("r2", "b") << opened("b", generation=2, settled=1, superseded=None)

    (gone,) = play.state().gone
    assert (gone.how, gone.outcome, gone.answered_by) == ("settled", "interrupt", "r2")


def test_an_outside_run_may_pause_without_having_started() -> None:
    play = Playbook()
    play >> agent.interrupts("x", "a") << opened("a", shown=["RUN_STARTED", "RUN_FINISHED"], under=["x"])
    assert pause_of(play).admission is None


def test_a_run_not_shown_as_running_is_started_by_us_first() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.interrupts("r1", "a") << opened("a", shown=["RUN_STARTED", "RUN_FINISHED"])


CHANGES = [
    "TEXT_MESSAGE_START",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_CHUNK",
    "TOOL_CALL_END",
    "TOOL_CALL_RESULT",
    "REASONING_START",
    "THINKING_START",
    "ACTIVITY_DELTA",
    "STATE_DELTA",
]


# -- generations --------------------------------------------------------------------------------------------


def test_the_first_generation_of_a_thread_is_when_it_opened() -> None:
    play = Playbook()
    play >> agent.interrupts("r1", "a") << opened("a", generation=1)
    assert play.nth(1) == START_MS + SECOND


def test_each_further_pause_is_one_more() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=1), sdk.interrupts("r2", "a"))
    play(client.resumes("r3", a=1).echoing(2), sdk.finishes("r3"), client.asks("r4"))
    play >> sdk.interrupts("r4", "a") << opened("a", generation=3)
    assert (play.nth(2), play.nth(3)) == (play.nth(1) + 1, play.nth(1) + 2)


def test_a_generation_is_never_used_again_though_the_state_is_forgotten() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=1), sdk.finishes("r2"))
    play(later(hours=25))
    assert play.state().empty

    play >> agent.interrupts("r1", "a") << opened("a", generation=2)
    assert play.nth(2) == play.at > play.nth(1)


# -- what is stored -----------------------------------------------------------------------------------------


def test_the_tool_call_an_interrupt_is_bound_to_is_stored_with_it() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.argues("c", '{"eur":'), sdk.argues("c", "5}"))
    play >> sdk.interrupts("r1", question("a", toolCallId="c"), "b") << opened("a", "b")

    bound, free = pause_of(play).interrupts
    assert bound.tool is not None
    assert (bound.tool.call_id, bound.tool.name, bound.tool.args) == ("c", "pay", '{"eur":5}')
    assert free.tool is None


def test_a_call_that_had_its_result_is_not_known_any_more() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.results("c"))
    play >> sdk.interrupts("r1", question("a", toolCallId="c")) << opened("a")
    assert pause_of(play).interrupts[0].tool is None


def test_the_context_is_where_input_and_snapshots_lie() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.event("MESSAGES_SNAPSHOT").but(offset=7))
    play(sdk.event("STATE_SNAPSHOT").but(offset=8), sdk.interrupts("r1", "a"))

    context = pause_of(play).context
    assert context.input == Pointer("inputs", 0, 0)
    assert context.messages == Pointer("agent-events.default", 0, 7)
    assert context.state == Pointer("agent-events.default", 0, 8)
    assert context.complete


def test_an_input_without_changes_after_it_is_a_complete_context() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"), sdk.interrupts("r1", "a"))
    assert pause_of(play).context.complete


def test_changes_after_the_last_snapshot_make_it_incomplete() -> None:
    for change in CHANGES:
        play = Playbook()
        play(client.asks("r1"), sdk.event("MESSAGES_SNAPSHOT"), sdk.event("STATE_SNAPSHOT"))
        play(sdk.event(change), sdk.interrupts("r1", "a"))
        assert not pause_of(play).context.complete


def test_a_run_outside_the_gate_has_a_context_only_by_its_snapshots() -> None:
    play = Playbook()
    play(agent.starts("x"), agent.interrupts("x", "a"))
    assert not pause_of(play).context.complete

    for n, snapshot in enumerate(("MESSAGES_SNAPSHOT", "STATE_SNAPSHOT")):
        play(client.resumes(f"o{n}", a=1), sdk.finishes(f"o{n}"), agent.starts(f"x{n}"))
        play(agent.event(snapshot, f"x{n}"), agent.interrupts(f"x{n}", "a"))
        assert not pause_of(play).context.complete

    play(client.resumes("r1", a=1), sdk.finishes("r1"), agent.starts("y"))
    play(
        agent.event("MESSAGES_SNAPSHOT", "y"), agent.event("STATE_SNAPSHOT", "y"), agent.interrupts("y", "a")
    )
    assert pause_of(play).context.complete


def test_the_end_of_inputs_is_stored_with_the_pause() -> None:
    play = Playbook()
    play(client.asks("r1").but(offset=41))
    play >> sdk.interrupts("r1", "a") << opened("a")
    assert pause_of(play).inputs_end == 42


def test_the_next_question_about_a_call_that_was_attempted_says_so() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.calls("c", "pay"), sdk.interrupts("r1", question("a", toolCallId="c")))
    play(client.resumes("r2", a=True), sdk.results("c", run="r2"))
    play >> sdk.interrupts("r2", question("b", toolCallId="c")) << opened("b", settled=1)
    assert pause_of(play).attempted == ("b",)


# -- beyond the limit of open pauses ------------------------------------------------------------------------


def sealed() -> Playbook:
    play = Playbook(agents=["default", "other"], limits=Limits(open_pauses=1))
    play(Agent(thread="u").interrupts("r1", "x"), client.asks("r1"), sdk.starts("r1"))
    (
        play
        >> sdk.interrupts("r1", "a")
        << opened(
            code="TOO_MANY_PAUSES",
            generation=1,
            shown=["RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"],
            status="open",
        )
    )
    return play


def test_a_pause_beyond_the_limit_opens_sealed_and_without_descriptors() -> None:
    play = sealed()
    assert pause_of(play).sealed
    assert pause_of(play).interrupts == ()
    assert play.pending() == set()
    assert play.events()[2]["metadata"]["holdshort"] == {"generation": play.nth(1), "outcome": "sealed"}


def test_it_must_never_fail_open() -> None:
    play = sealed()
    play >> client.asks("r2") << refused("TOO_MANY_PAUSES")
    play >> client.resumes("r3", a=True) << refused("TOO_MANY_PAUSES")


def test_only_abandon_ends_it() -> None:
    play = sealed()
    play >> team.abandons(1) << abandoned(1)
    play >> client.asks("r2") << admitted()


def test_a_pause_settled_in_the_same_step_does_not_count() -> None:
    play = Playbook(limits=Limits(open_pauses=1))
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True))
    play >> sdk.interrupts("r2", "b") << opened("b", settled=1, code=None)


def test_the_limit_is_each_agents_own() -> None:
    play = Playbook(agents=["default", "other"], limits=Limits(open_pauses=1))
    play(Agent("other", "u").interrupts("r1", "x"))
    play >> agent.interrupts("r1", "a") << opened("a", code=None)


def test_a_replay_over_it_is_shown_as_refused_with_that_code() -> None:
    play = Playbook(limits=Limits(open_pauses=1))
    play(client.asks("r1"), sdk.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.finishes("r2"))
    play(Agent(thread="u").interrupts("x", "u"))
    play >> agent.interrupts("r3", "b") << opened(code="TOO_MANY_PAUSES", generation=2)

    (
        play
        >> client.resumes("r4", a=True).echoing(1)
        << replayed("TOO_MANY_PAUSES", shown=["RUN_STARTED", "RUN_ERROR"])
    )


def test_other_threads_are_another_matter() -> None:
    play = Playbook()
    play(Agent(thread="u").interrupts("r1", "a"), agent.interrupts("r1", "a"))
    play >> Client("u").resumes("r2", a=True) << admitted()
    play >> Agent(thread="u").finishes("r2") << settled(1)
    assert pause_of(play).status == "open"
