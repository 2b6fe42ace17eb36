"""`holdshort interrupts` and `holdshort threads` as operators type them at night, on a real installation."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.clients import Json, an_input, told
from tests.commands import (
    PAYMENTS_AND_DBA,
    SCHEMA,
    a_transfer,
    asks,
    environment,
    goes_on,
    resumed,
    run,
    runs,
)
from tests.installations import Installation, installed

pytestmark = [
    pytest.mark.system,
    pytest.mark.broker,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    directory = tmp_path_factory.mktemp("operators")
    async with installed(bootstrap_servers, directory, PAYMENTS_AND_DBA) as installation:
        yield installation


def ids(rows: list[Json]) -> set[tuple[str, str | None]]:
    return {(row["threadId"], row["interruptId"]) for row in rows}


async def test_what_is_open_is_listed_with_team_and_deadline(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    both = (a_transfer("list-1"), {"id": "list-2", "reason": "dba:drop"})
    await asks(wire, "t-list", *both)
    await wire.until(lambda _: bool(wire.of("gathering", "t-list")), why="the router does not know it")

    rows = (await run(known, "interrupts", "list", "--json")).objects
    of_team = (await run(known, "interrupts", "list", "--json", "--team", "dba")).objects
    of_reason = (await run(known, "interrupts", "list", "--json", "--reason", "payments:*")).objects
    of_others = (await run(known, "interrupts", "list", "--json", "--agent", "other")).objects
    of_old = (await run(known, "interrupts", "list", "--json", "--older-than", "1h")).objects
    shown = await run(known, "interrupts", "list")

    [first] = [row for row in rows if row["interruptId"] == "list-1"]
    assert (first["team"], first["state"], first["agent"]) == ("payments", "waiting", "default")
    assert first["until"] == first["since"] + 7 * 24 * 3600 * 1000
    assert ("t-list", "list-2") in ids(of_team)
    assert ("t-list", "list-1") not in ids(of_team)
    assert ("t-list", "list-1") in ids(of_reason)
    assert ("t-list", "list-2") not in ids(of_reason)
    assert of_others == of_old == []
    assert "t-list" in shown.out
    assert "payments:transfer" in shown.out


async def test_a_duration_that_is_none_is_a_mistake(site: Installation) -> None:
    done = await run(environment(site), "interrupts", "list", "--older-than", "yesterday")

    assert done.status == 2
    assert "a duration is a number and a unit" in done.err


async def test_show_says_everything_and_nothing_can_paint_the_terminal(site: Installation) -> None:
    hostile = "Pay ACME 1\x1b[2K\rPay ACME 950\u202e?"
    await asks(site.wire, "t-show", a_transfer("show-1", message=hostile))
    await site.wire.until(
        lambda _: bool(site.wire.of("gathering", "t-show")), why="the router does not know it"
    )

    shown = await run(environment(site), "interrupts", "show", "show-1")
    [told_] = (await run(environment(site), "interrupts", "show", "t-show", "--json")).objects
    unknown = await run(environment(site), "interrupts", "show", "nothing")

    assert shown.status == 0, shown.err
    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out
    assert r"Pay ACME 1\u{1b}[2K\u{d}Pay ACME 950\u{202e}?" in shown.out
    assert '"maximum": 1000' in shown.out
    assert told_["pending"]["pause"]["interrupts"][0]["descriptor"]["responseSchema"] == SCHEMA
    assert told_["gathering"]["asked"][0]["team"] == "payments"
    assert unknown.status == 1


async def test_cancel_answers_every_question_with_cancelled(site: Installation) -> None:
    wire = site.wire
    await asks(wire, "t-cancel", a_transfer("cancel-1"), {"id": "cancel-2", "reason": "dba:drop"})

    declined = await run(environment(site), "interrupts", "cancel", "t-cancel", typed="n\n")
    assert declined.status == 1
    assert "cancel-1, cancel-2" in declined.out
    assert resumed(wire, "t-cancel") == []

    done = await run(
        environment(site), "interrupts", "cancel", "t-cancel", "--yes", "--by", "op", "--comment", "stuck"
    )
    assert done.status == 0, done.err
    given = await goes_on(wire, "t-cancel")
    assert [(one["interruptId"], one["status"]) for one in given["resume"]] == [
        ("cancel-1", "cancelled"),
        ("cancel-2", "cancelled"),
    ]
    assert given["resume"][0]["metadata"]["holdshort"] == {
        "cause": "operator",
        "decidedBy": "op",
        "comment": "stuck",
    }
    assert given["messages"] == [{"id": "m1", "role": "user", "content": "please"}]
    assert given["parentRunId"] == "r1"
    await asked_no_more(site, "t-cancel")


async def asked_no_more(site: Installation, thread: str) -> None:
    def closed(_: object) -> bool:
        seen = site.wire.of("pending", thread)
        return bool(seen) and (seen[-1].value or {}).get("pause") is None

    await site.wire.until(closed, why="the pause does not end")


async def test_no_cancel_where_an_agent_may_take_it_for_a_yes(site: Installation) -> None:
    await asks(site.wire, "t-unsafe", {"id": "unsafe-1", "reason": "x"}, agent="graph")

    refused = await run(environment(site), "interrupts", "cancel", "t-unsafe", "--yes")
    assert refused.status == 1
    assert "may take a cancel for a yes" in refused.err
    assert resumed(site.wire, "t-unsafe", "graph") == []

    done = await run(environment(site), "interrupts", "abandon", "unsafe-1", "--yes")
    assert done.status == 0, done.err
    assert "abandoned" in done.out
    await asked_no_more(site, "t-unsafe")
    assert resumed(site.wire, "t-unsafe", "graph") == []
    assert [seen.value["code"] for seen in told(site.wire, "events", "t-unsafe", "RUN_ERROR", "r1")] == [
        "ABANDONED"
    ]


async def test_an_id_in_several_threads_ends_none_of_them(site: Installation) -> None:
    for thread in ("t-same-1", "t-same-2"):
        await asks(site.wire, thread, a_transfer("same"))

    done = await run(environment(site), "interrupts", "abandon", "same", "--yes")

    assert done.status == 2
    assert "2 threads have an interrupt of that name" in done.err
    rows = (await run(environment(site), "interrupts", "list", "--json")).objects
    assert {thread for thread, id_ in ids(rows) if id_ == "same"} == {"t-same-1", "t-same-2"}


async def test_watch_says_what_opens_and_what_closes(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    await asks(wire, "t-watch-1", a_transfer("watch-1"))
    await asked_by_router(site, "t-watch-1")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "holdshort.cli", "interrupts", "watch", "--json"),
        env=known,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await said(process, "open", "watch-1")
        await asks(wire, "t-watch-2", a_transfer("watch-2"))
        assert await said(process, "open", "watch-2")
        ended = await run(known, "interrupts", "abandon", "t-watch-1", "--yes")
        assert ended.status == 0, ended.err
        assert await said(process, "closed", "watch-1")
    finally:
        process.terminate()
        await process.communicate()


async def asked_by_router(site: Installation, thread: str) -> None:
    await site.wire.until(
        lambda _: bool(site.wire.of("gathering", thread)), why="the router does not know it"
    )


async def said(process: asyncio.subprocess.Process, event: str, interrupt: str) -> bool:
    """Read until the line comes."""
    assert process.stdout is not None
    async with asyncio.timeout(30):
        async for line in process.stdout:
            one = json.loads(line)
            if (one["event"], one["interruptId"]) == (event, interrupt):
                return True
    return False


async def test_a_thread_is_freed_of_a_run_that_blocks_it(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    await runs(wire, "t-block")
    shown = await run(known, "threads", "show", "t-block")
    assert "run in flight" in shown.out

    done = await run(known, "threads", "release", "t-block", "--yes")
    again = await run(known, "threads", "release", "t-block", "--yes")

    assert done.status == 0, done.err
    assert again.status == 1
    assert "no run blocks" in again.err
    [event] = told(wire, "events", "t-block", "RUN_ERROR", "r1")
    assert event.value["code"] == "ABANDONED"
    [known_] = (await run(known, "threads", "show", "t-block", "--json")).objects
    assert known_["pending"]["ended"][0]["outcome"] == "abandoned"


async def test_a_thread_that_waits_for_people_is_not_released(site: Installation) -> None:
    await asks(site.wire, "t-waits", a_transfer("waits"))

    done = await run(environment(site), "threads", "release", "t-waits", "--yes")

    assert done.status == 1
    assert "holdshort interrupts cancel" in done.err
    rows = (await run(environment(site), "interrupts", "list", "--json", "--team", "payments")).objects
    assert ("t-waits", "waits") in ids(rows)


async def test_a_thread_that_nobody_knows(site: Installation) -> None:
    done = await run(environment(site), "threads", "show", "never")

    assert done.status == 1
    assert "nothing is known of thread never" in done.err


async def test_without_its_topics_a_command_says_what_is_missing(site: Installation) -> None:
    done = await run(environment(site, HOLDSHORT_PREFIX="elsewhere."), "interrupts", "list")

    assert done.status == 2
    assert "there is no topic elsewhere.pending: `holdshort topics plan`" in done.err


# -- forget -------------------------------------------------------------------------------------------------


def latest(site: Installation, topic: str, thread: str) -> Json:
    """What stands in a compacted topic of a thread; None behind a tombstone."""
    return site.wire.of(topic, thread)[-1].value


async def kept_no_more(site: Installation, topic: str, key: str) -> None:
    await site.wire.until(lambda _: latest(site, topic, key) is None, why=f"{topic} keeps it")


def asked_of_payments(site: Installation, thread: str) -> list[str]:
    """The approvals that were put to payments for a thread, open or not."""
    seen = site.wire.of("approvals.payments")
    return [str(one.key) for one in seen if one.value is not None and one.value["threadId"] == thread]


async def test_a_forgotten_thread_has_nothing_left_in_any_compacted_topic(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    await asks(wire, "t-forget", a_transfer("forget-1"))
    await wire.until(lambda _: bool(asked_of_payments(site, "t-forget")), why="payments is not asked")
    [approval] = asked_of_payments(site, "t-forget")

    declined = await run(known, "threads", "forget", "t-forget", typed="n\n")
    assert declined.status == 1
    assert "forget-1" in declined.out
    assert latest(site, "pending", "t-forget") is not None

    done = await run(known, "threads", "forget", "t-forget", "--yes", "--json")
    assert done.status == 0, done.err
    assert done.objects == [
        {"threadId": "t-forget", "forgotten": True, "said": "thread t-forget is forgotten"}
    ]
    for topic, key in (("pending", "t-forget"), ("gathering", "t-forget"), ("approvals.payments", approval)):
        await kept_no_more(site, topic, key)
    assert told(wire, "events", "t-forget", "RUN_ERROR", "r1")[0].value["code"] == "ABANDONED"

    shown = await run(known, "threads", "show", "t-forget")
    again = await run(known, "threads", "forget", "t-forget", "--yes")
    assert (shown.status, again.status) == (1, 1)
    assert "nothing is known of thread t-forget" in again.err
    trail = await run(known, "audit", "trail", "t-forget")
    assert trail.status == 0, trail.err
    assert "the thread is forgotten" in trail.out


async def test_a_run_in_flight_is_ended_and_forgotten(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    await runs(wire, "t-forget-run")

    done = await run(known, "threads", "forget", "t-forget-run", "--yes")

    assert done.status == 0, done.err
    assert told(wire, "events", "t-forget-run", "RUN_ERROR", "r1")[0].value["code"] == "ABANDONED"
    await wire.until(lambda _: latest(site, "pending", "t-forget-run") is None, why="the run is remembered")


async def test_an_input_of_before_runs_again_when_its_thread_was_forgotten(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    await runs(wire, "t-forget-input")
    ended = await run(known, "threads", "release", "t-forget-input", "--yes")
    assert ended.status == 0, ended.err

    done = await run(known, "threads", "forget", "t-forget-input", "--yes")
    assert done.status == 0, done.err
    wire.send("inputs", an_input("t-forget-input", "r1"), headers={"holdshort-agent": "default"})

    await wire.until(lambda _: len(wire.of("runs.default", "t-forget-input")) == 2, why="it does not run")


async def test_json_of_a_forget_does_not_ask(site: Installation) -> None:
    done = await run(environment(site), "threads", "forget", "t-list", "--json")

    assert done.status == 2
    assert "--yes" in done.err


async def test_what_the_router_still_holds_is_shown_and_forgotten_in_the_end(site: Installation) -> None:
    """The router stands still while a thread is forgotten; said once more, it is done."""
    wire, known, thread = site.wire, environment(site), "-t-half"
    await asks(wire, thread, a_transfer("half-1"))
    await wire.until(lambda _: bool(asked_of_payments(site, thread)), why="payments is not asked")
    [router] = [one for one in site.stack.processes if one.service == "router"]
    assert router.pid is not None
    os.kill(router.pid, signal.SIGSTOP)
    try:
        half = await run(known, "threads", "forget", thread, "--yes")
        shown = await run(known, "threads", "show", thread)
        [as_object] = (await run(known, "threads", "show", thread, "--json")).objects
    finally:
        os.kill(router.pid, signal.SIGCONT)
    done = await run(known, "threads", "forget", thread, "--yes")
    after = await run(known, "threads", "show", thread)

    assert half.status == 1
    assert "the gatekeeper has forgotten it, the router not yet" in half.err
    assert shown.status == 0, shown.err
    assert "the router still holds" in shown.out
    assert "half-1 (team payments)" in shown.out
    assert as_object["pending"] is None
    assert as_object["gathering"]["asked"][0]["interruptId"] == "half-1"
    assert done.status == 0 or "nothing is known" in done.err  # the router may have been quicker
    await kept_no_more(site, "gathering", thread)
    assert after.status == 1


# -- a team that is gone ------------------------------------------------------------------------------------


async def test_questions_of_a_team_that_is_gone_are_told(site: Installation, tmp_path: Path) -> None:
    await asks(site.wire, "t-gone", a_transfer("gone-1"), {"id": "gone-2", "reason": "dba:drop"})
    await asked_by_router(site, "t-gone")
    file = tmp_path / "without-dba.yaml"
    file.write_text("agents: {default: {}, other: {}, graph: {cancel: unsafe}}\nteams: {payments: {}}\n")
    without = environment(site, HOLDSHORT_CONFIG=str(file))
    of_dba = await run(environment(site), "interrupts", "list", "--team", "dba", "--json")

    listed = await run(without, "interrupts", "list")
    examined = await run(without, "doctor", "--json", "--patience=1")
    fine = await run(environment(site), "interrupts", "list")

    told_ = f"open questions of team dba, which is not configured any more: {len(of_dba.objects)};"
    assert told_ in listed.err
    assert "configure dba again until they are answered" in listed.err
    [found] = [one for one in examined.objects if one["check"] == "teams"]
    assert examined.status == 1
    assert found["said"].startswith(told_)
    assert "interrupts cancel" in found["advice"]
    assert "not configured" not in fine.err
