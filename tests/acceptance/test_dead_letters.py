"""`holdshort dlq`: what could not be used is found, and sent again as it was, to where it came from only."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.clients import Seen, an_input, told
from tests.commands import PAYMENTS_AND_DBA, environment, run, runs
from tests.installations import Installation, installed

pytestmark = [
    pytest.mark.system,
    pytest.mark.broker,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

OURS = "holdshort-dead-letter-"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    directory = tmp_path_factory.mktemp("letters")
    topics = ["inputs", "decisions.payments", "dead-letters", "runs.default", "events"]
    async with installed(bootstrap_servers, directory, PAYMENTS_AND_DBA, topics=topics) as installation:
        yield installation


async def dead(site: Installation, key: str, count: int = 1) -> list[Seen]:
    await site.wire.until(lambda _: len(site.wire.of("dead-letters", key)) >= count, why="no dead letter")
    return site.wire.of("dead-letters", key)


def place(letter: Seen) -> str:
    return f"{letter.partition}/{letter.offset}"


async def test_letters_are_listed_filtered_and_counted(site: Installation) -> None:
    site.wire.send("inputs", b"not json", key="t-list")
    site.wire.send("decisions.payments", b"{]", key="t-list")
    await dead(site, "t-list", 2)
    known = environment(site)

    both = (await run(known, "dlq", "list", "--json", "--key", "t-list")).objects
    by_code = (await run(known, "dlq", "list", "--json", "--code", "MALFORMED_DECISION")).objects
    by_topic = (await run(known, "dlq", "list", "--json", "--key=t-list", "--topic=inputs")).objects
    newest = (await run(known, "dlq", "list", "--json", "--key=t-list", "--limit=1")).objects
    later = (await run(known, "dlq", "list", "--json", "--since", "2100-01-01T00:00:00Z")).objects
    recent = (await run(known, "dlq", "list", "--json", "--key=t-list", "--since", "10m")).objects
    shown = await run(known, "dlq", "list", "--key", "t-list")

    assert {one["code"] for one in both} == {"MALFORMED_INPUT", "MALFORMED_DECISION"}
    assert {one["topic"] for one in by_code} == {"decisions.payments"}
    assert [one["topic"] for one in by_topic] == ["inputs"]
    assert len(newest) == 1
    assert later == []
    assert len(recent) == 2
    assert "2 dead letters." in shown.out
    assert "1  MALFORMED_INPUT from inputs" in shown.out


async def test_a_letter_is_shown_with_its_reason_and_its_very_bytes(site: Installation) -> None:
    site.wire.send("inputs", b"\x1b[2Jnot json", key="t-show", headers={"mine": "kept"})
    [letter] = await dead(site, "t-show")

    shown = await run(environment(site), "dlq", "show", place(letter))
    raw = await run(environment(site), "dlq", "show", "--raw", place(letter))
    absent = await run(environment(site), "dlq", "show", "0/99999")

    assert "MALFORMED_INPUT: not a RunAgentInput" in shown.out
    assert r"\u{1b}[2Jnot json" in shown.out
    assert "mine" in shown.out
    assert raw.out == "\x1b[2Jnot json"
    assert (absent.status, "no dead letter 0/99999" in absent.err) == (2, True)


async def test_replayed_it_is_byte_for_byte_what_it_was_and_attempts_are_counted(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    value = b'{ "threadId":"t-again" , "oops": }'
    wire.send("inputs", value, key="t-again", headers={"mine": "kept", "holdshort-agent": "other"})
    [letter] = await dead(site, "t-again")

    dry = await run(known, "dlq", "replay", "--dry-run", "--key", "t-again")
    declined = await run(known, "dlq", "replay", "--key", "t-again", typed="n\n")
    assert (dry.status, declined.status) == (0, 1)
    assert "1 of 1 dead letters can be sent again." in dry.out
    assert "Send 1 again (1 to inputs)?" in declined.out

    done = await run(known, "dlq", "replay", "--yes", place(letter))
    assert done.status == 0, done.err
    assert "Sent 1." in done.out
    again = (await dead(site, "t-again", 2))[1]
    [first, second] = wire.of("inputs", "t-again")
    assert second.raw == first.raw == value
    assert second.partition == first.partition
    assert second.headers == {"mine": "kept", "holdshort-agent": "other", OURS + "attempts": "1"}
    assert again.headers[OURS + "attempts"] == "1"
    assert again.headers[OURS + "offset"] == str(second.offset)

    tired = await run(known, "dlq", "replay", "--yes", "--max-attempts=1", place(again))
    assert tired.status == 1
    assert "it has been sent again 1 times" in tired.out
    assert len(wire.of("inputs", "t-again")) == 2


async def test_a_record_of_a_wrong_partition_goes_to_its_own_and_is_used(site: Installation) -> None:
    wire = site.wire
    wire.send("inputs", an_input("t-mine", "r1"))
    await wire.until(lambda _: bool(wire.of("runs.default", "t-mine")), why="not delivered")
    home = wire.of("inputs", "t-mine")[0].partition
    wire.send("inputs", an_input("t-mine", "r2"), partition=(home + 1) % 4)
    [letter] = await dead(site, "t-mine")
    assert letter.headers[OURS + "code"] == "MISKEYED_RECORD"

    done = await run(environment(site), "dlq", "replay", "--yes", "--json", place(letter))

    assert [(one["sent"], one["code"]) for one in done.objects] == [(True, "MISKEYED_RECORD")]
    await wire.until(
        lambda _: bool(told(wire, "events", "t-mine", "RUN_ERROR", "r2")), why="it is not judged"
    )


async def test_what_would_be_too_large_again_is_left_alone(site: Installation) -> None:
    wire, known = site.wire, environment(site)
    await runs(wire, "t-large")
    for size in (1 << 20, (2 << 20) - 2000):  # over the limit of events; so large that a letter is cut
        event = {"type": "CUSTOM", "name": "x", "value": "x" * size}
        wire.send("agent-events.default", event, key="t-large", headers={"holdshort-run": "r1"})
    await dead(site, "t-large", 2)

    done = await run(known, "dlq", "replay", "--yes", "--code", "TOO_LARGE", "--json")

    assert done.status == 1
    assert {(one["sent"], one["cut"], one["said"]) for one in done.objects} == {
        (False, False, "it is larger than the limit still is (1048576 bytes)"),
        (False, True, "its value was too large to be kept here; it lies at its place, if at all"),
    }


async def test_all_of_them_only_if_that_is_said(site: Installation) -> None:
    done = await run(environment(site), "dlq", "replay", "--yes")

    assert done.status == 2
    assert "name letters or filters, or say --all" in done.err
