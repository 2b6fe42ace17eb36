"""`holdshort audit` on an installation whose threads and people are hashed, with the key and without."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.commands import PAYMENTS_AND_DBA, a_transfer, asks, environment, run
from tests.installations import Installation, installed

pytestmark = [
    pytest.mark.system,
    pytest.mark.broker,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

VARIABLE = "HOLDSHORT_AUDIT_KEY_FILE"
THREAD = "customer-4711"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    directory = tmp_path_factory.mktemp("hashed")
    key = directory / "audit.key"
    key.write_text("0123456789abcdef0123456789abcdef\n")
    config = PAYMENTS_AND_DBA + "audit: {hash_ids: true}\n"
    settings = {VARIABLE: str(key)}
    async with installed(bootstrap_servers, directory, config, settings=settings) as installation:
        wire = installation.wire
        await asks(wire, THREAD, a_transfer("i1"))
        await wire.until(lambda _: bool(wire.of("gathering", THREAD)), why="the router does not know it")
        decision = {
            "v": 1,
            "decisionId": "d1",
            "threadId": THREAD,
            "generation": wire.of("pending", THREAD)[-1].value["generation"],
            "resume": [{"interruptId": "i1", "status": "resolved", "payload": {"approved": True}}],
            "decidedBy": "ann@example.org",
        }
        wire.send("decisions.payments", decision)
        await wire.until(lambda _: bool(wire.of("receipts.payments", THREAD)), why="no receipt")
        yield installation


def keyless(site: Installation) -> dict[str, str]:
    return {name: value for name, value in environment(site).items() if name != VARIABLE}


async def test_neither_thread_nor_person_stands_in_the_audit(site: Installation) -> None:
    written = [one.raw or b"" for one in site.wire.of("audit")]

    assert any(b'"accepted"' in raw for raw in written)
    for raw in written:
        assert THREAD.encode() not in raw
        assert b"ann@example.org" not in raw
    assert all((one.key or "").startswith("hmac:") for one in site.wire.of("audit"))


async def test_the_chains_are_followed_without_the_key(site: Installation) -> None:
    done = await run(keyless(site), "audit", "verify")

    assert done.status == 0, done.out
    assert "are whole, their newest records included" in done.out


async def test_a_thread_is_told_with_the_key_alone(site: Installation, tmp_path: Path) -> None:
    told = await run(environment(site), "audit", "trail", THREAD)
    unknown = await run(keyless(site), "audit", "trail", THREAD)
    other = tmp_path / "other.key"
    other.write_text("another key, and long enough")
    wrong = await run({**environment(site), VARIABLE: str(other)}, "audit", "trail", THREAD)

    assert told.status == 0, told.err
    assert "run r1 pauses and asks" in told.out
    assert "a decision of team payments is accepted" in told.out
    assert (unknown.status, wrong.status) == (1, 1)
    assert f"its threads are hashed: {VARIABLE}?" in unknown.err
    assert f"is {VARIABLE} the key by which they were?" in wrong.err


async def test_an_export_is_narrowed_to_a_thread_with_the_key_alone(
    site: Installation, tmp_path: Path
) -> None:
    narrowed = await run(environment(site), "audit", "export", "--thread", THREAD)
    nothing = await run(keyless(site), "audit", "export", "--thread", THREAD)
    other = tmp_path / "other.key"
    other.write_text("another key, and long enough")
    wrong = await run({**environment(site), VARIABLE: str(other)}, "audit", "export", "--thread", THREAD)

    assert len(narrowed.objects[:-1]) == len(site.wire.of("audit"))
    assert (narrowed.status, nothing.status, wrong.status) == (0, 1, 1)
    assert nothing.objects[:-1] == wrong.objects[:-1] == []
    assert f"its threads are hashed: {VARIABLE}?" in nothing.err
    assert f"is {VARIABLE} the key by which they were?" in wrong.err


async def test_a_service_without_its_key_says_so(site: Installation) -> None:
    done = await run(keyless(site), "gatekeeper")

    assert done.status == 2
    assert f"audit.hash_ids needs a key: {VARIABLE}" in done.err
