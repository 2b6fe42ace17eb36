"""Forwarding: when every open interrupt has an answer, one whole batch goes to the gate (router 4). Pure."""

import msgspec

from holdshort.contract.canon import own_run_id
from holdshort.contract.codes import Code
from holdshort.contract.messages import ACTION, GENERATION, JSON_TYPE, Emit
from holdshort.router.context import Rebuilt, places, rebuild, run_input, without_context
from holdshort.router.deadlines import cancel_is_unsafe, fill, own_answer
from holdshort.router.gathering import Asked, Gathering
from holdshort.router.quorum import is_denial
from holdshort.router.turn import Turn

RESUMES = "resumes"
HEADERS_BYTES = 2048  # room for key and headers of the batch, which count for the limit too
INCOMPLETE = "INCOMPLETE_CONTEXT"

_replace = msgspec.structs.replace


def forward(turn: Turn) -> None:
    """Send what is complete, in the transaction that stores that it is sent; or end what was given up."""
    if turn.gathering.abandoned:
        if turn.before is None or not turn.before.abandoned:
            turn.outputs.append(_abandonment(turn.gathering))
        return
    _cancel_rest(turn)
    if turn.open and turn.gathering.complete and turn.gathering.held is None:
        _send(turn)


def _cancel_rest(turn: Turn) -> None:
    """A denial ends the other questions, if its route says so; not where a cancel may be taken for a yes."""
    if not turn.open or turn.gathering.complete or not any(_ends_others(one) for one in turn.gathering.asked):
        return
    if cancel_is_unsafe(turn.pause, turn.rules):
        return
    for asked in turn.gathering.asked:
        if asked.answer is None:
            fill(turn, asked, "denial")


def _ends_others(asked: Asked) -> bool:
    return asked.put.on_denial == "cancel_rest" and asked.answer is not None and is_denial(asked.answer)


def _send(turn: Turn) -> None:
    """One RunAgentInput for this pause, which the gate judges like any other."""
    if not _without_expired(turn):
        return
    turn.wanted = [place for place in places(turn.pause) if place not in turn.fetched]
    if turn.wanted:
        return
    rebuilt, run_id = rebuild(turn.pause, turn.fetched), turn.gathering.run_id
    replays = turn.rules.agent(turn.pause.agent).resume == "replay"
    if not rebuilt.complete and replays:
        turn.hold(INCOMPLETE)
        return
    value = run_input(turn.pause, turn.gathering, run_id, rebuilt)
    if not _fits(turn, value) and not replays:
        rebuilt = without_context()
        value = run_input(turn.pause, turn.gathering, run_id, rebuilt)
    if not _fits(turn, value):
        turn.hold(Code.TOO_LARGE)
        return
    _write(turn, value, run_id, rebuilt)


def _write(turn: Turn, value: bytes, run_id: str, rebuilt: Rebuilt) -> None:
    gathering = turn.gathering
    headers = (JSON_TYPE, (GENERATION, str(gathering.generation).encode()))
    turn.outputs.append(Emit(RESUMES, gathering.thread_id.encode(), value, headers))
    turn.gathering = _replace(gathering, forwarded=run_id)
    turn.does("forwarded", code=None if rebuilt.complete else INCOMPLETE, run_id=run_id)


def _fits(turn: Turn, value: bytes) -> bool:
    return len(value) <= turn.rules.limits.input - HEADERS_BYTES


def _without_expired(turn: Turn) -> bool:
    """One expired interrupt spoils the others' answers: what expired before sending becomes cancelled."""
    now = max(turn.now, turn.clock)
    for asked in turn.gathering.asked:
        answer, expires_at = asked.answer, asked.expires_at
        if answer is None or answer.status == "cancelled" or expires_at is None or now < expires_at:
            continue
        if cancel_is_unsafe(turn.pause, turn.rules):
            turn.hold(Code.INTERRUPT_EXPIRED)
            return False
        turn.overrule(asked, Code.INTERRUPT_EXPIRED)
        late = own_answer(asked, "expired", answering=False)
        turn.put(_replace(asked, answer=late, votes=()))
        turn.does("expired", asked, code=Code.INTERRUPT_EXPIRED)
    return True


def _abandonment(gathering: Gathering) -> Emit:
    """The record by which the gate ends the pause (contract 3, row abandon)."""
    run_id = own_run_id(gathering.thread_id, gathering.generation, "abandon")
    value = msgspec.json.encode({"threadId": gathering.thread_id, "runId": run_id})
    headers = (JSON_TYPE, (GENERATION, str(gathering.generation).encode()), (ACTION, b"abandon"))
    return Emit(RESUMES, gathering.thread_id.encode(), value, headers)
