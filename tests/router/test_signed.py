"""Router 3, signed decisions: what is signed is one answer to one question by one person, no more."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.clients import Json
from tests.router.pauses import forgetting
from tests.router.scenes import (
    NO,
    YES,
    acts,
    answers,
    code,
    config,
    ends,
    fails,
    on,
    passes,
    pause,
    question,
    runs,
)
from tests.systems import System
from tests.virtual import EPOCH_MS

from holdshort.contract.statement import SIGNATURE, read_signed, sign
from holdshort.sdk.approvals import Approval, Decision, approve, confirm, decision_record, deny
from holdshort.sdk.approver import Approver
from holdshort.sdk.signing import CannotSignError, Signer
from holdshort.sdk.testing import an_approval, decide

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def signer_of(name: str, key_id: str | None = None, seed: int | None = None) -> Signer:
    """The same key in every run."""
    raw = bytes([seed if seed is not None else sum(name.encode()) % 251]) * 32
    return Signer(Ed25519PrivateKey.from_private_bytes(raw), key_id or f"{name}-1", name)


ANN, BOB, ANNS_NEXT = signer_of("ann"), signer_of("bob"), signer_of("ann", "ann-2", 7)
MALLORY = signer_of("ann", "ann-1", 99)  # calls herself ann, and her key ann's


def key(signer: Signer, more: str = "") -> str:
    pem = orjson.dumps(signer.public).decode()
    return f"{signer.key_id}: {{key: {pem}, decider: {signer.decider}{more}}}"


LATER = datetime.fromtimestamp(EPOCH_MS / 1000 + 1800, UTC).isoformat()
SIGNED = config(
    'reason: "p:*", team: payments, signature: required',
    'reason: "q:*", team: payments, quorum: 2',
    'reason: "o:*", team: payments',
    'reason: "d:*", team: dba',
    more="installation: holdshort",
    teams=(
        f"{{payments: {{keys: {{{key(ANN)}, {key(BOB)}}}}}, ops: {{}}, "
        f"dba: {{keys: {{{key(ANN, f', until: {LATER}')}, {key(ANNS_NEXT)}}}}}}}"
    ),
)


def asked(s: System, team: str, id_: str) -> Approval:
    return Approval.model_validate(s.asked(team)[id_])


def record(s: System, decision: Decision, id_: str = "a", team: str = "payments") -> Json:
    return decision_record(asked(s, team, id_), decision, NOW)


async def send(s: System, value: Json, team: str = "payments") -> Json:
    await s.send(f"decisions.{team}", value)
    return s.said(f"receipts.{team}", "t")[-1].value


def with_token(value: Json, token: Any) -> Json:
    (one,) = value["resume"]
    return {**value, "resume": [{**one, "metadata": {SIGNATURE: token}}]}


def token_of(value: Json) -> str:
    found: str = value["resume"][0]["metadata"][SIGNATURE]
    return found


@on(SIGNED)
async def test_a_signed_decision_counts_and_its_signature_reaches_the_agent(s: System) -> None:
    await pause(s, question("a", "p:x"))
    shown = asked(s, "payments", "a")
    assert shown.signature == "required"
    value = ANN.signed(record(s, approve(by="ann")), shown)
    assert (await send(s, value))["verdict"] == "accepted"

    entry = runs(s)[0].value["resume"][0]
    signed = read_signed(entry["metadata"][SIGNATURE])
    assert signed is not None
    assert signed.verified(ANN.key.public_key().public_bytes_raw())
    assert signed.statement.interrupt_id == "a"
    assert (entry["metadata"]["holdshort"]["decidedBy"], entry["metadata"]["holdshort"]["proof"]) == (
        "ann",
        "signature",
    )


@on(SIGNED)
async def test_an_unsigned_decision_is_refused_where_a_signature_is_required(s: System) -> None:
    await pause(s, question("a", "p:x"))

    assert code(await send(s, record(s, approve(by="ann")))) == "SIGNATURE_REQUIRED"


@on(SIGNED)
async def test_a_forged_signature_is_refused(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "o:x"))
    shown, plain = asked(s, "payments", "a"), record(s, approve(by="ann"))
    header, payload, signature = token_of(ANN.signed(plain, shown)).split(".")
    none = "eyJhbGciOiJub25lIiwia2lkIjoiYW5uLTEifQ"  # {"alg":"none","kid":"ann-1"}
    attempts: dict[str, Json] = {
        "another key": MALLORY,
        "another name": Signer(BOB.key, "bob-1", "ann"),  # bob's key, in ann's name
        "no signature": f"{header}.{payload}.",
        "half of one": f"{header}.{payload}.{signature[:40]}",
        "no algorithm": f"{none}.{payload}.",
        "not a text": {"signature": signature},
    }
    for name, attempt in attempts.items():
        value = {**plain, "decisionId": name}
        forged = attempt.signed(value, shown) if isinstance(attempt, Signer) else with_token(value, attempt)
        receipt = await send(s, forged)
        assert (receipt["verdict"], code(receipt)) == ("refused", "SIGNATURE_FORGED"), name
    # One that is not required is still not taken if it is bad.
    bad = {**with_token(record(s, approve(by="ann"), "b"), "x.y.z"), "decisionId": "optional"}
    assert code(await send(s, bad)) == "SIGNATURE_FORGED"


@on(SIGNED)
async def test_a_replayed_signature_is_refused(s: System) -> None:
    await pause(s, question("a", "p:x"))
    shown = asked(s, "payments", "a")
    mine = ANN.signed(record(s, approve(by="ann")), shown)
    assert code(await send(s, {**mine, "decisionId": "another"})) == "SIGNATURE_REPLAYED"
    await send(s, mine)
    await fails(s, runs(s)[0].value["runId"])
    for number in range(70):  # many receipts later
        await send(s, {**record(s, deny()), "decisionId": f"noise-{number}"})

    again = await send(s, mine)

    assert again["verdict"] in ("duplicate", "refused")
    assert len(runs(s)) == 1


@on(SIGNED)
async def test_a_signature_of_an_earlier_attempt_is_used_up(s: System) -> None:
    await pause(s, question("a", "p:x"))
    mine = ANN.signed(record(s, approve(by="ann")), asked(s, "payments", "a"))
    await send(s, mine)
    await fails(s, runs(s)[0].value["runId"])
    await forgetting(s, "t")

    moved = {**mine, "attempt": 2}  # the statement does not say it
    assert code(await send(s, moved)) == "SIGNATURE_REPLAYED"


def signed_at(s: System, minutes: float, decision: Decision) -> Json:
    """What ann signs at that time, about what is shown now."""
    at = datetime.fromtimestamp(EPOCH_MS / 1000 + minutes * 60, UTC)
    shown = asked(s, "payments", "a")
    return ANN.signed(decision_record(shown, decision, at), shown)


@on(SIGNED)
async def test_what_was_signed_before_the_question_was_put_again_is_of_an_earlier_attempt(s: System) -> None:
    await pause(s, question("a", "p:x"))
    refused, kept_back = signed_at(s, 1, approve(YES, by="ann")), signed_at(s, 2, approve(by="ann"))
    await passes(3)
    await acts(s, "payments", "claim", "a", decidedBy="bob")
    assert code(await send(s, refused)) == "CLAIMED"
    await acts(s, "payments", "release", "a", decidedBy="bob")
    await send(s, signed_at(s, 3, deny(by="ann")))
    await fails(s, runs(s)[0].value["runId"])
    await forgetting(s, "t")

    for old in (refused, kept_back):
        assert code(await send(s, {**old, "attempt": 2})) == "SIGNATURE_REPLAYED"
    timeless = {**record(s, approve(by="ann")), "decidedAt": "at noon", "decisionId": "timeless"}
    assert code(await send(s, ANN.signed(timeless, asked(s, "payments", "a")))) == "SIGNATURE_REPLAYED"
    assert len(runs(s)) == 1
    await passes(1)
    assert (await send(s, signed_at(s, 5, approve(by="ann"))))["verdict"] == "accepted"


@on(SIGNED)
async def test_what_stands_beside_a_signed_answer_unsigned_is_marked(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "p:x"))
    for id_, more in (("a", {"comment": "go on"}), ("b", {})):
        value = {**record(s, approve(by="ann"), id_), "decisionId": id_, **more}
        signed = ANN.signed(value, asked(s, "payments", id_))
        if more:
            signed["resume"][0]["metadata"]["ticket"] = 7
        assert (await send(s, signed))["verdict"] == "accepted"

    first, second = (one["metadata"] for one in runs(s)[0].value["resume"])
    assert (first["ticket"], first["holdshort"]["comment"]) == (7, "go on")
    assert first["holdshort"]["unsigned"] == ["holdshort.comment", "ticket"]
    assert "unsigned" not in second["holdshort"]


@on(SIGNED)
async def test_a_retargeted_signature_is_refused(s: System) -> None:
    await pause(s, question("a", "p:x"), question("b", "p:x"))
    mine = ANN.signed(record(s, approve(by="ann")), asked(s, "payments", "a"))
    other = record(s, approve(by="ann"), "b")
    elsewhere = Signer(ANN.key, ANN.key_id, "ann", installation="staging")

    assert code(await send(s, with_token(other, token_of(mine)))) == "SIGNATURE_RETARGETED"
    foreign = elsewhere.signed(record(s, approve(by="ann")), asked(s, "payments", "a"))
    assert code(await send(s, {**foreign, "decisionId": "e"})) == "SIGNATURE_RETARGETED"
    await send(s, mine)
    value = {**record(s, approve(by="ann"), "b"), "decisionId": "b"}
    await send(s, ANN.signed(value, asked(s, "payments", "b")))
    run = runs(s)[0].value["runId"]
    await ends(s, run)
    await pause(s, question("a", "p:x"), parentRunId=run)
    later = {**record(s, approve(by="ann")), "decisionId": "later"}
    assert code(await send(s, with_token(later, token_of(mine)))) == "SIGNATURE_RETARGETED"


@on(SIGNED)
async def test_an_edited_decision_is_refused(s: System) -> None:
    await pause(s, question("a", "p:x"))
    shown, plain = asked(s, "payments", "a"), record(s, deny(by="ann"))
    edits: list[Json] = [
        {"payload": YES},
        {"payload": {**NO, "more": 1}},
        {"status": "cancelled"},
        {"payload": ...},
        {"decidedAt": "2020-01-01T00:00:00Z"},
        {"decidedBy": "bob"},
    ]
    for number, edit in enumerate(edits):
        signed = ANN.signed({**plain, "decisionId": f"edit-{number}"}, shown)
        (one,) = signed["resume"]
        of_the_entry = {name for name in edit if name in ("payload", "status")}
        entry = {**one, **{name: edit[name] for name in of_the_entry}}
        entry = {name: value for name, value in entry.items() if value is not ...}
        others = {name: value for name, value in edit.items() if name not in of_the_entry}
        receipt = await send(s, {**signed, **others, "resume": [entry]})
        assert (receipt["verdict"], code(receipt)) == ("refused", "SIGNATURE_EDITED"), edit
    assert runs(s) == []


@on(SIGNED)
async def test_an_answer_without_a_payload_cannot_become_a_cancel(s: System) -> None:
    await pause(s, question("a", "p:x"))
    signed = ANN.signed(record(s, Decision(status="resolved", by="ann")), asked(s, "payments", "a"))
    (one,) = signed["resume"]

    assert code(await send(s, {**signed, "resume": [{**one, "status": "cancelled"}]})) == "SIGNATURE_EDITED"


@on(SIGNED)
async def test_a_quorum_is_proved_by_signatures(s: System) -> None:
    await pause(s, question("a", "q:x"))
    shown, value = asked(s, "payments", "a"), record(s, approve())
    assert code(await send(s, {**value, "decidedBy": "ann", "decisionId": "u"})) == "DECIDER_NOT_PROVEN"
    await send(s, ANN.signed({**value, "decisionId": "ann"}, shown))
    again = await send(s, ANN.signed({**value, "decisionId": "ann again"}, shown))
    assert again["verdict"] == "duplicate"
    await send(s, BOB.signed({**value, "decisionId": "bob"}, shown))

    metadata = runs(s)[0].value["resume"][0]["metadata"]
    signed = [read_signed(one) for one in metadata[SIGNATURE + "s"]]
    assert [one.statement.decided_by for one in signed if one] == ["ann", "bob"]


@on(SIGNED)
async def test_keys_are_rotated_side_by_side(s: System) -> None:
    await pause(s, question("a", "d:x"), question("b", "d:x"), question("c", "d:x"))
    for number, (id_, signer) in enumerate((("a", ANN), ("b", ANNS_NEXT))):
        value = {**record(s, approve(), id_, "dba"), "decisionId": f"d{number}"}
        assert (await send(s, signer.signed(value, asked(s, "dba", id_)), "dba"))["verdict"] == "accepted"
    await passes(31)
    shown = asked(s, "dba", "c")
    old = ANN.signed({**record(s, approve(), "c", "dba"), "decisionId": "old"}, shown)
    assert code(await send(s, old, "dba")) == "UNKNOWN_KEY"
    new = ANNS_NEXT.signed({**record(s, approve(), "c", "dba"), "decisionId": "new"}, shown)
    assert (await send(s, new, "dba"))["verdict"] == "accepted"


@on(SIGNED)
async def test_a_key_is_its_teams(s: System) -> None:
    await pause(s, question("a", "p:x"))
    value = ANNS_NEXT.signed(record(s, approve()), asked(s, "payments", "a"))

    assert code(await send(s, value)) == "UNKNOWN_KEY"


@on(SIGNED)
async def test_an_answer_is_confirmed_with_a_signature_of_its_own(s: System) -> None:
    await pause(s, question("a", "p:x"))
    await send(s, ANN.signed(record(s, approve({"limit": 5})), asked(s, "payments", "a")))
    await fails(s, runs(s)[0].value["runId"])
    shown = asked(s, "payments", "a")
    assert code(await send(s, {**record(s, confirm()), "decisionId": "u"})) == "SIGNATURE_REQUIRED"
    await send(s, BOB.signed(record(s, confirm()), shown))

    assert answers(runs(s)[1]) == {"a": {"limit": 5, "approved": True}}


# -- the signing side ---------------------------------------------------------------------------------------


async def test_an_approver_signs_what_it_answers() -> None:
    app = Approver("payments", signer=ANN)
    app.on()(lambda _: approve())
    value = await decide(app, an_approval())

    assert value is not None
    signed = read_signed(token_of(value))
    assert signed is not None
    assert signed.verified(ANN.key.public_key().public_bytes_raw())
    assert value["decidedBy"] == "ann"


def test_what_is_not_what_is_shown_is_not_signed() -> None:
    shown = an_approval(digest="0" * 64)

    with pytest.raises(CannotSignError, match="digest"):
        ANN.signed(decision_record(shown, approve(), NOW), shown)


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(ANN.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    assert Signer.from_pem(file.read_bytes(), key_id="k", decider="ann").public == ANN.public
    with pytest.raises(CannotSignError):
        Signer.from_pem(b"nothing", key_id="k", decider="ann")
    assert "key=" not in repr(ANN)


def test_every_part_of_a_statement_is_signed() -> None:
    shown = an_approval()
    value = ANN.signed(decision_record(shown, approve(), NOW), shown)
    signed = read_signed(token_of(value))
    assert signed is not None
    import msgspec

    for name in signed.statement.__struct_fields__:
        changed: Any = 7 if name == "generation" else "cancelled" if name == "status" else "other"
        other = msgspec.structs.replace(signed.statement, **{name: changed})
        forged = sign(other, MALLORY.key, "ann-1").split(".")[1]
        header, _, signature = token_of(value).split(".")
        edited = read_signed(f"{header}.{forged}.{signature}")
        assert edited is not None
        assert not edited.verified(ANN.key.public_key().public_bytes_raw()), name
    assert NO != YES
