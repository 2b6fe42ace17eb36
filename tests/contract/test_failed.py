"""Row *failed* of contract 2: RUN_ERROR of the current or an outside run."""

from tests.expected import admitted, passed, reopened, settled
from tests.playbook import Playbook, agent, client, pause_of, sdk

from holdshort.contract.state import Pointer, Try


def test_the_run_ends_and_its_error_passes_as_it_came() -> None:
    play = Playbook()
    play(client.asks("r1"), sdk.starts("r1"))
    play >> sdk.fails("r1") << passed(shown=["RUN_ERROR"], under=["r1"])

    assert play.events() == [{"type": "RUN_ERROR", "message": "it broke"}]
    assert play.state().ended[0].outcome == "error"
    play >> client.asks("r2") << admitted()


def test_a_pause_it_answered_is_open_again_in_the_same_generation() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    play >> sdk.fails("r2") << reopened("a", generation=1, settled=None, shown=["RUN_ERROR"])

    assert pause_of(play).try_ == Try("r2", Pointer("inputs", 0, 0), "failed", play.at)
    assert play.pending() == {"a"}


def test_a_stream_may_open_with_run_error() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.fails("r1") << passed(shown=["RUN_STARTED", "RUN_ERROR"], under=["r1"])


def test_an_outside_run_may_only_fail() -> None:
    play = Playbook()
    play >> agent.fails("x") << passed(shown=["RUN_STARTED", "RUN_ERROR"], under=["x"])
    assert play.state().ended[0].outcome == "error"


def test_over_the_limit_it_has_its_effect_and_the_client_gets_ours() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.starts("r2"))
    (
        play
        >> sdk.fails("r2").adding(x="x" * 1024 * 1024)
        << reopened("a", shown=["RUN_ERROR"], dead=["TOO_LARGE"])
    )
    assert play.events()[0]["code"] == "TOO_LARGE"


def test_the_last_try_is_remembered() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.fails("r2"))
    play(client.resumes("r3", a=True))
    play >> sdk.fails("r3") << reopened("a")

    tried = pause_of(play).try_
    assert tried is not None
    assert tried.run_id == "r3"


def test_after_it_the_same_batch_is_a_retry_and_another_is_allowed() -> None:
    play = Playbook()
    play(agent.interrupts("r1", "a"), client.resumes("r2", a=True), sdk.fails("r2"))
    play >> client.resumes("r2", a=True) << admitted()
    play(sdk.fails("r2"))
    play >> client.resumes("r4", a=False) << admitted()
    play >> sdk.finishes("r4") << settled(1)


def test_a_pause_the_run_did_not_answer_is_not_touched() -> None:
    play = Playbook()
    play(client.asks("r1"))
    play >> sdk.fails("r1") << passed(generation=None)
    assert play.state().pause is None
