"""What became of a batch: its run failed or was lost, or the gate refused it (router 4). Pure."""

from typing import Final

import msgspec

from holdshort.contract.codes import Code
from holdshort.contract.state import Pause, ThreadState, Try
from holdshort.router.codes import DecisionCode
from holdshort.router.deadlines import abandon
from holdshort.router.gathering import Gathering, asked_again, sent_again
from holdshort.router.turn import Turn

# Refusals after which asking people again would not help: the batch stays gathered, an alert says why.
HOLD: Final = frozenset({Code.TOO_LARGE, Code.UNKNOWN_AGENT, Code.INVALID_RESUME, Code.MALFORMED_INPUT})
# Refusals that say something about the answers.
MISFIT: Final = frozenset({Code.INVALID_PAYLOAD, Code.SCHEMA_REFUSED})

_replace = msgspec.structs.replace


def follow(turn: Turn) -> None:
    """Bring the gathering in line with its pause; doing it twice does nothing more."""
    pause, resuming = turn.pause, turn.pause.status == "resuming"
    if turn.gathering.resuming != resuming:
        turn.gathering = _replace(turn.gathering, resuming=resuming)
    if resuming or turn.gathering.abandoned:
        return  # an answer is with the agent, ours or a faster client's: everything waits for that run's end
    if not pause.routed and turn.gathering.forwarded is None:
        return  # between the agent and its client, until its ttl is over
    tried = _new_try(turn.gathering, pause)
    newly = frozenset(pause.attempted) - frozenset(turn.gathering.attempted)
    if turn.gathering.attempted != pause.attempted:
        turn.gathering = _replace(turn.gathering, attempted=pause.attempted)
    if tried is not None:
        tries = turn.gathering.tries + 1
        turn.gathering = _replace(turn.gathering, tried=_name(tried), tries=tries)
        if tries >= turn.rules.max_attempts:
            abandon(turn, "MAX_ATTEMPTS")
            return
    if tried is not None and tried.run_id == turn.gathering.forwarded:
        _after_a_try(turn)
    elif turn.gathering.forwarded is not None and turn.gathering.held is None:
        _after_a_refusal(turn)
    elif newly:
        _show_again(turn)  # never sent, but what it is about may have happened, unseen by who decides now


def _new_try(gathering: Gathering, pause: Pause) -> Try | None:
    return pause.try_ if pause.try_ is not None and _name(pause.try_) != gathering.tried else None


def _name(tried: Try) -> str:
    return f"{tried.run_id}/{tried.admission}/{tried.at}"


def _after_a_try(turn: Turn) -> None:
    """Nobody knows whether the answers were used: sent again only if routes say so and nothing happened."""
    gathering = turn.gathering
    retries = min(one.put.retry for one in gathering.asked)
    if gathering.retries < retries and not turn.pause.attempted:
        turn.gathering = _replace(sent_again(gathering), retries=gathering.retries + 1)
        turn.does("sent_again")
    else:
        _show_again(turn)


def _after_a_refusal(turn: Turn) -> None:
    gathering, refusal = turn.gathering, turn.pause.refusal
    if refusal is None or refusal.run_id != gathering.forwarded:
        return
    late = [one for one in gathering.asked if one.expires_at is not None and one.expires_at <= refusal.at]
    if refusal.code in HOLD:
        turn.hold(refusal.code)
    elif refusal.code == Code.INTERRUPT_EXPIRED and late:
        turn.gathering = sent_again(gathering)  # without what has expired: forwarding sees to that
        turn.clock = max(turn.clock, refusal.at)
        turn.does("sent_again", code=refusal.code)
    else:  # of a busy thread, too: the pause is open again
        _show_again(turn, refusal.code if refusal.code in MISFIT else None)


def _show_again(turn: Turn, problem: str | None = None) -> None:
    turn.gathering = asked_again(turn.gathering, turn.now, problem)
    turn.does("shown_again", code=problem)


# -- the end of a pause -------------------------------------------------------------------------------------


def why_over(gathering: Gathering, state: ThreadState | None) -> str | None:
    """Why the answers gathered for a pause that is over did not count; None if they did."""
    gone = (
        next((one for one in state.gone if one.generation == gathering.generation), None) if state else None
    )
    if gone is None:  # nothing is remembered of it: what was under way has arrived by now
        return None if gathering.forwarded is not None else DecisionCode.STALE_GENERATION
    if gone.how == "settled":
        ours = gathering.forwarded is not None and gone.answered_by == gathering.forwarded
        return None if ours else DecisionCode.ANSWERED_ELSEWHERE
    return Code.ABANDONED if gone.how == "abandoned" else DecisionCode.STALE_GENERATION
