"""`holdshort approve` with nothing but the team's credentials: for scripts, and as people go through it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.clients import Json, paused, started
from tests.commands import a_transfer, asks, environment, goes_on, open_approvals, resumed, run, runs
from tests.installations import Installation, installed

from holdshort.contract.statement import SIGNATURE

pytestmark = [
    pytest.mark.system,
    pytest.mark.broker,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

TEAM = ("approve", "--team", "payments")
CONFIG = """
agents: {{default: {{}}}}
teams:
  payments: {{keys: {{ann-1: {{key: {key}, decider: ann}}}}}}
  dba: {{}}
routes:
  - {{reason: "payments:signed", team: payments, signature: required}}
  - {{reason: "payments:*", team: payments}}
  - {{reason: "dba:*", team: dba}}
"""


class Desk:
    """The installation, and ann's key."""

    def __init__(self, site: Installation, key: Path) -> None:
        self.site = site
        self.wire = site.wire
        self.known = environment(site, config=False)
        self.key = key

    async def asked(self, thread: str, *interrupts: Json) -> str:
        """Ask, wait until the team is asked, and return the approval's id."""
        await asks(self.wire, thread, *interrupts)
        return await self.approval_of(thread)

    async def approval_of(self, thread: str) -> str:
        """Wait until the team is asked something of the thread."""

        def here(_: object) -> bool:
            return any(one["threadId"] == thread for one in open_approvals(self.wire, "payments").values())

        await self.wire.until(here, why="the team is not asked")
        return next(
            k for k, one in open_approvals(self.wire, "payments").items() if one["threadId"] == thread
        )

    async def waiting(self, approval: str, claim: str | None) -> None:
        """Wait until the approval shows who has claimed it."""

        def shown(_: object) -> bool:
            one = open_approvals(self.wire, "payments")[approval]["claim"]
            return (one or {}).get("by") == claim

        await self.wire.until(shown, why="the claim is not shown")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    directory = tmp_path_factory.mktemp("queue")
    private = Ed25519PrivateKey.generate()
    key = directory / "ann.pem"
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    async with installed(bootstrap_servers, directory, CONFIG.format(key=json.dumps(public))) as site:
        yield Desk(site, key)


async def test_a_script_lists_shows_approves_and_gets_the_receipt(desk: Desk) -> None:
    approval = await desk.asked("t-script", a_transfer())

    listed = (await run(desk.known, *TEAM, "list", "--json")).objects
    shown = await run(desk.known, *TEAM, "show", approval)
    done = await run(
        desk.known, *TEAM, "answer", approval, "--approve", "--by", "kim", "--comment", "ok", "--json"
    )

    assert approval in [one["approvalId"] for one in listed]
    for said in ("Pay ACME 950?", "agent default, thread t-script", "payments:transfer", '"maximum": 1000'):
        assert said in shown.out
    assert done.status == 0, done.err
    [receipt] = done.objects
    assert (receipt["verdict"], receipt["batch"]["complete"]) == ("accepted", True)
    [entry] = (await goes_on(desk.wire, "t-script"))["resume"]
    assert entry["payload"] == {"approved": True}
    assert entry["metadata"]["holdshort"]["decidedBy"] == "kim"
    assert entry["metadata"]["holdshort"]["comment"] == "ok"
    told = await run(desk.known, *TEAM, "receipts", "--json", "--thread", "t-script")
    assert [one["decisionId"] for one in told.objects] == [receipt["decisionId"]]


async def test_a_payload_that_does_not_fit_is_not_sent(desk: Desk, tmp_path: Path) -> None:
    approval = await desk.asked("t-misfit", a_transfer())
    file = tmp_path / "answer.json"
    file.write_text('{"approved": true, "amount": 5000}')

    wrong = await run(desk.known, *TEAM, "answer", approval, "--payload", str(file))
    assert wrong.status == 1
    assert "/amount" in wrong.err
    assert desk.wire.of("decisions.payments", "t-misfit") == []

    right = await run(
        desk.known, *TEAM, "answer", approval, "--payload", "-", typed='{"approved": true, "amount": 5}'
    )
    assert right.status == 0, right.err
    [entry] = (await goes_on(desk.wire, "t-misfit"))["resume"]
    assert entry["payload"] == {"approved": True, "amount": 5}


@pytest.mark.parametrize(
    ("way", "status", "payload"),
    [("--deny", "resolved", {"approved": False}), ("--cancel", "cancelled", None)],
)
async def test_no_and_no_answer(desk: Desk, way: str, status: str, payload: Json) -> None:
    thread = f"t{way}"
    approval = await desk.asked(thread, a_transfer())

    done = await run(desk.known, *TEAM, "answer", approval[:8], way)

    assert done.status == 0, done.err
    [entry] = (await goes_on(desk.wire, thread))["resume"]
    assert (entry["status"], entry.get("payload")) == (status, payload)


async def test_arguments_are_edited(desk: Desk, tmp_path: Path) -> None:
    approval = await desk.asked("t-edit", {"id": "free", "reason": "payments:free"})
    file = tmp_path / "arguments.json"
    file.write_text('{"amount": 95}')

    done = await run(desk.known, *TEAM, "answer", approval, "--approve", "--edited-args", str(file))

    assert done.status == 0, done.err
    [entry] = (await goes_on(desk.wire, "t-edit"))["resume"]
    assert entry["payload"] == {"approved": True, "editedArgs": {"amount": 95}}


async def test_what_somebody_else_holds_is_refused_and_taken_once_it_is_free(desk: Desk) -> None:
    """The same words, said again when they may be, are judged again."""
    approval = await desk.asked("t-claim", a_transfer())
    said = (*TEAM, "--by", "lee", "answer", approval, "--deny")

    claimed = await run(desk.known, *TEAM, "claim", approval, "--by", "kim")
    refused = await run(desk.known, *said)
    await desk.waiting(approval, "kim")
    listed = await run(desk.known, *TEAM, "list")
    released = await run(desk.known, *TEAM, "release", approval, "--by", "kim")
    taken = await run(desk.known, *said)

    assert (claimed.status, released.status) == (0, 0)
    assert refused.status == 1
    assert "CLAIMED" in refused.out
    assert "kim" in listed.out
    assert taken.status == 0, taken.out
    await goes_on(desk.wire, "t-claim")


async def test_a_route_that_wants_signatures_gets_one(desk: Desk) -> None:
    approval = await desk.asked("t-signed", a_transfer(reason="payments:signed"))

    unsigned = await run(desk.known, *TEAM, "answer", approval, "--approve", "--by", "ann")
    signed = await run(
        desk.known,
        *(*TEAM, "--key", str(desk.key), "--key-id", "ann-1", "--by", "ann"),
        *("answer", approval, "--approve"),
    )

    assert unsigned.status == 1
    assert "SIGNATURE_REQUIRED" in unsigned.out
    assert signed.status == 0, signed.out + signed.err
    [entry] = (await goes_on(desk.wire, "t-signed"))["resume"]
    assert entry["metadata"]["holdshort"]["proof"] == "signature"
    assert SIGNATURE in entry["metadata"]


async def fails_with_the_answer(desk: Desk, thread: str, approval: str) -> None:
    """The agent's run gets the answer and fails, so that the team is asked again."""
    await desk.wire.until(lambda _: bool(resumed(desk.wire, thread)), why="the agent is not resumed")
    run_id = resumed(desk.wire, thread)[-1]["runId"]
    for event in (started(thread, run_id), {"type": "RUN_ERROR", "message": "no"}):
        desk.wire.send("agent-events.default", event, key=thread, headers={"holdshort-run": run_id})
    await desk.wire.until(
        lambda _: open_approvals(desk.wire, "payments").get(approval, {}).get("attempt") == 2,
        why="the team is not asked again",
    )


async def again(desk: Desk, thread: str) -> Json:
    """The entry of the second batch."""
    await desk.wire.until(lambda _: len(resumed(desk.wire, thread)) == 2, why="it is not resumed again")
    [entry] = resumed(desk.wire, thread)[1]["resume"]
    return entry


@pytest.mark.parametrize("way", ["option", "key"])
async def test_a_previous_answer_is_seen_and_confirmed_in_one_move(
    desk: Desk, tmp_path: Path, way: str
) -> None:
    thread = f"t-confirm-{way}"
    approval = await desk.asked(thread, a_transfer())
    file = tmp_path / "answer.json"
    file.write_text('{"approved": true, "amount": 5}')
    too_early = await run(desk.known, *TEAM, "answer", approval, "--confirm")
    first = await run(desk.known, *TEAM, "--by", "kim", "answer", approval, "--payload", str(file))
    await fails_with_the_answer(desk, thread, approval)

    listed = await run(desk.known, *TEAM, "list")
    shown = await run(desk.known, *TEAM, "show", approval)
    if way == "option":
        done = await run(desk.known, *TEAM, "--by", "lee", "answer", approval, "--confirm")
    else:
        rows = (await run(desk.known, *TEAM, "list", "--json")).objects
        number = [one["approvalId"] for one in rows].index(approval) + 1
        typed = [str(number), "p", "still fine", "q", ""]
        done = await run(desk.known, *TEAM, "--by", "lee", typed="\n".join(typed))

    assert (too_early.status, first.status, done.status) == (2, 0, 0), done.out + done.err
    assert "no previous answer to confirm" in too_early.err
    assert '{"approved":true,"amount":5} by kim' in listed.out
    assert "asked again, attempt 2: nobody knows what became of the last answer" in shown.out
    entry = await again(desk, thread)
    assert entry["payload"] == {"approved": True, "amount": 5}
    assert entry["metadata"]["holdshort"]["decidedBy"] == "lee"


async def test_a_previous_answer_is_confirmed_with_a_signature(desk: Desk) -> None:
    thread, signs = "t-confirm-signed", ("--key", str(desk.key), "--key-id", "ann-1", "--by", "ann")
    approval = await desk.asked(thread, a_transfer(reason="payments:signed"))
    await run(desk.known, *TEAM, *signs, "answer", approval, "--deny")
    await fails_with_the_answer(desk, thread, approval)

    done = await run(desk.known, *TEAM, *signs, "answer", approval, "--confirm")

    assert done.status == 0, done.out + done.err
    entry = await again(desk, thread)
    assert (entry["payload"], entry["metadata"]["holdshort"]["proof"]) == ({"approved": False}, "signature")


async def test_a_key_that_is_none(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("no key")

    done = await run(
        desk.known,
        *(*TEAM, "--key", str(tmp_path / "no.pem"), "--key-id", "x", "--by", "ann"),
        *("answer", "whatever", "--deny"),
    )

    assert (done.status, "holds no private key" in done.err) == (2, True)


async def test_a_person_goes_through_the_queue(desk: Desk) -> None:
    """Looks at the first, fills the form in wrongly, mends it at the member, and leaves."""
    approval = await desk.asked("t-person", a_transfer(id="person", message="Pay\x1b[8m ACME?"))
    listed = (await run(desk.known, *TEAM, "list", "--json")).objects
    number = [one["approvalId"] for one in listed].index(approval) + 1
    typed = [str(number), "f", "maybe", "y", "5000", "500", "a comment", "q"]

    done = await run(desk.known, *TEAM, typed="\n".join(["kim", *typed, ""]))

    assert done.status == 0, done.err
    assert "\x1b" not in done.out
    assert r"Pay\u{1b}[8m ACME?" in done.out
    assert "must be y or n" in done.out
    assert "/amount" in done.out
    assert "accepted" in done.out
    [entry] = (await goes_on(desk.wire, "t-person"))["resume"]
    assert entry["payload"] == {"approved": True, "amount": 500}
    assert entry["metadata"]["holdshort"]["decidedBy"] == "kim"


async def test_a_person_sees_a_tools_arguments_and_edits_them(desk: Desk) -> None:
    """Their editor is a program that makes 950 into 95."""
    wire, ids = desk.wire, {"toolCallId": "c1"}
    await runs(wire, "t-tool")
    for event in (
        {"type": "TOOL_CALL_START", "toolCallName": "transfer_money", **ids},
        {"type": "TOOL_CALL_ARGS", "delta": '{"amount": 950, "to": "ACME"}', **ids},
        {"type": "TOOL_CALL_END", **ids},
        paused("t-tool", "r1", {"id": "tool", "reason": "payments:tool", **ids}),
    ):
        wire.send("agent-events.default", event, key="t-tool", headers={"holdshort-run": "r1"})
    approval = await desk.approval_of("t-tool")
    listed = (await run(desk.known, *TEAM, "list", "--json")).objects
    number = [one["approvalId"] for one in listed].index(approval) + 1

    done = await run(
        desk.known | {"EDITOR": "sed -i s/950/95/"},
        *(*TEAM, "--by", "kim"),
        typed="\n".join([str(number), "e", "", "q", ""]),
    )

    assert done.status == 0, done.err
    assert "tool transfer_money" in done.out
    assert '"amount": 950' in done.out
    [entry] = (await goes_on(wire, "t-tool"))["resume"]
    assert entry["payload"] == {"approved": True, "editedArgs": {"amount": 95, "to": "ACME"}}


async def test_an_id_may_begin_with_a_hyphen(desk: Desk) -> None:
    """As one approval's in 64 does."""
    await desk.asked("t-hyphen", a_transfer(id_="-4odd"))

    shown = await run(desk.known, *TEAM, "show", "-4odd")
    done = await run(desk.known, *TEAM, "--by", "kim", "answer", "--deny", "-4odd", "--json")

    assert "Pay ACME 950?" in shown.out
    assert done.status == 0, done.err
    await goes_on(desk.wire, "t-hyphen")


async def test_what_is_not_asked_of_the_team_cannot_be_answered(desk: Desk) -> None:
    await asks(desk.wire, "t-dba", {"id": "dba", "reason": "dba:drop"})

    done = await run(desk.known, *TEAM, "answer", "t-dba", "--approve")

    assert (done.status, "nothing of that name is asked of the team" in done.err) == (2, True)
    assert resumed(desk.wire, "t-dba") == []


async def test_a_team_that_is_not_there(desk: Desk) -> None:
    done = await run(desk.known, "approve", "--team", "payment", "list")

    assert done.status == 2
    assert f"there is no topic {desk.site.prefix}approvals.payment" in done.err


async def test_json_is_what_the_router_wrote(desk: Desk) -> None:
    approval = await desk.asked("t-json", a_transfer())

    shown = await run(desk.known, *TEAM, "show", "t-json", "--json")

    assert json.loads(shown.out) == open_approvals(desk.wire, "payments")[approval]
