"""Row *too large* of contract 3: an input over a limit of section 9 (each limit: test_limits.py)."""

from tests.expected import admitted, opened, quietly_refused, refused
from tests.playbook import Answer, Playbook, Said, agent, cancelled, client, pause_of, team, without_payload

MEGABYTE = 1024 * 1024


def test_a_record_over_the_limit_is_refused_and_told_so() -> None:
    play = Playbook()
    play >> client.asks("r1").padded(MEGABYTE + 1) << refused("TOO_LARGE")
    assert play.error()["problems"][0]["message"] == f"more than {MEGABYTE} bytes"


def test_it_changes_nothing() -> None:
    play = Playbook()
    play >> agent.interrupts("r0", "a") << opened("a")
    before = play.state()
    play >> client.resumes("r1", a="x" * MEGABYTE) << refused("TOO_LARGE", open=["a"])
    assert play.state() == before


def test_all_problems_are_listed() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a", "b"))
    huge = "x" * 65 * 1024
    play >> client.resumes("r1", a=huge, b=huge) << refused("TOO_LARGE")
    assert [problem["path"] for problem in play.error()["problems"]] == [
        "/resume/0/payload",
        "/resume/1/payload",
    ]


def test_a_cancelled_entrys_payload_is_ignored_and_so_is_its_size() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"))
    huge = Answer("cancelled", {"payload": "x" * 65 * 1024})
    play >> client.resumes("r1", a=huge) << admitted()


def test_large_messages_beside_a_small_answer_are_no_problem() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"))
    play >> client.resumes("r1", a=True).adding(messages=["x" * 900 * 1024]) << admitted()


def test_endless_ids_are_refused_by_dead_letter_for_they_cannot_be_repeated() -> None:
    for said in (
        client.asks("r" * 513),
        client.asks("r1").but(key="t" * 513).adding(threadId="t" * 513),
        client.asks("\x01" * 400_000),
    ):
        play = Playbook()
        play >> said << quietly_refused("TOO_LARGE", dead=["TOO_LARGE"])


def test_the_longest_ids_are_let_in() -> None:
    play = Playbook()
    thread = "t" * 512
    play >> client.asks("r" * 512).but(key=thread).adding(threadId=thread) << admitted()


def test_endless_interrupt_ids_and_principals_are_refused() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"))
    play >> client.resumes("r1", {"a": True, "i" * 513: True}) << refused("TOO_LARGE")
    assert [problem["path"] for problem in play.error()["problems"]] == ["/resume/1/interruptId"]
    play >> client.resumes("r1", a=True).having(principal="p" * 513) << refused("TOO_LARGE")


def test_from_resumes_it_is_told_in_the_pause() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"))
    play >> team.resumes("hs-1", a="x" * MEGABYTE) << quietly_refused("TOO_LARGE", emitted=[])
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert (refusal.run_id, refusal.code) == ("hs-1", "TOO_LARGE")


def test_what_is_kept_of_it_is_never_endless() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"))
    play >> team.resumes("h" * MEGABYTE, a=True) << quietly_refused("TOO_LARGE")
    refusal = pause_of(play).refusal
    assert refusal is not None
    assert len(refusal.run_id) == 512


def test_an_entry_without_a_payload_has_none_that_could_be_too_large() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a", "b"))
    large = client.resumes("r1", a=without_payload, b=cancelled).adding(messages=["x" * 100 * 1024])
    play >> large << admitted()


def test_where_an_id_is_too_long_is_told() -> None:
    play = Playbook()
    play >> client.asks("r" * 513).having(principal="p" * 513) << quietly_refused("TOO_LARGE")
    assert [problem["path"] for problem in play.got["problems"]] == ["/runId", "header"]
    thread = "t" * 513
    play >> client.asks("r1").adding(threadId=thread).but(key=thread) << quietly_refused("TOO_LARGE")
    assert [problem["path"] for problem in play.got["problems"]] == ["/threadId"]


def test_a_resume_written_with_escapes_is_measured_all_the_same() -> None:
    play = Playbook()
    play(agent.interrupts("r0", "a"))
    entry = '{"interruptId":"a","status":"resolved","payload":"' + "x" * 65 * 1024 + '"}'
    raw = '{"threadId":"t","runId":"r1","re\\u0073ume":[' + entry + "]}"
    play >> Said("inputs", raw) << refused("TOO_LARGE")
