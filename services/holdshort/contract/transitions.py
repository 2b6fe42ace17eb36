"""How runs end, and how pauses open, open again and go: the changes that several rows have in common."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdshort.contract import schemas
from holdshort.contract.canon import digest_of
from holdshort.contract.changes import Change, PauseGone, PauseIs, RunEnded
from holdshort.contract.descriptors import call_id_of, described
from holdshort.contract.outcomes import Paused
from holdshort.contract.routes import CLIENT, Destination
from holdshort.contract.rules import Rules, World
from holdshort.contract.state import (
    Context,
    EndedRun,
    GonePause,
    How,
    Interrupt,
    Outcome,
    Pause,
    Run,
    ThreadState,
    ToolCall,
    Try,
)

_replace = msgspec.structs.replace


def end_run(state: ThreadState, run: Run, outcome: Outcome, at: int, rules: Rules) -> RunEnded:
    """The run is over; all of it is kept only if it was lost and as long as it is the newest."""
    ended = EndedRun(
        run_id=run.run_id,
        admission=run.admission,
        agent=run.agent,
        digest=run.digest,
        outcome=outcome,
        at=at,
        not_gated=run.not_gated and outcome == "success",
        lost=run if outcome == "lost" else None,
    )
    older = [_replace(one, lost=None) if one.lost else one for one in state.ended]
    return RunEnded((ended, *older)[: rules.limits.remembered])


def end_pause(
    state: ThreadState,
    how: How,
    at: int,
    rules: Rules,
    by: Run | None = None,
    outcome: Outcome | None = None,
) -> PauseGone:
    """The pause is no more; `by` is the run that answered it, `outcome` how that run ended."""
    pause = state.pause
    assert pause is not None
    gone = GonePause(
        generation=pause.generation,
        run_id=pause.run_id,
        admission=pause.admission,
        agent=pause.agent,
        ids=pause.ids,
        digest=pause.digest,
        how=how,
        at=at,
        answered_by=by.run_id if by else None,
        batch=by.loose_batch if by else None,
        input_digest=by.digest if by else None,
        outcome=outcome,
    )
    return PauseGone((gone, *state.gone)[: rules.limits.remembered])


def reopen(state: ThreadState, run: Run, outcome: Any, at: int) -> tuple[Change, ...]:
    """A pause whose answering run failed or was lost is open again: nobody knows whether it was used."""
    if state.pause is None or run.answers != state.pause.generation:
        return ()
    tried = Try(run.run_id, run.admission, outcome, at)
    return (PauseIs(_replace(state.pause, try_=tried)),)


def open_pause(
    state: ThreadState,
    run: Run,
    read: Paused,
    now: int,
    world: World,
    rules: Rules,
    follows: Pause | None = None,
) -> Pause:
    """A new pause of that run; the pause that it follows, if any, is already in `state.gone`.

    Beyond the limit of open pauses it opens sealed, without descriptors: a pause must never fail open.
    """
    interrupts = _interrupts(state, run, read, rules)
    pause = Pause(
        generation=state.generation + 1 if state.generation else now,
        run_id=run.run_id,
        admission=run.admission,
        agent=run.agent,
        opened_at=now,
        digest=read.digest,
        principal=run.principal,
        interrupts=interrupts,
        context=context_of(run),
        calls=run.calls,
        attempted=_attempted(read, follows),
    )
    full = world.open_pauses >= rules.limits.open_pauses
    if full or world.open_bytes + pause.size > rules.limits.open_bytes:
        return _replace(pause, sealed=True, interrupts=(), calls=(), attempted=())
    return pause


def context_of(run: Run) -> Context:
    """Where the run's context lies; complete if input and snapshots say all of messages and state."""
    known = run.admission is not None or (run.messages is not None and run.state is not None)
    complete = known and not (run.messages_changed or run.state_changed)
    return Context(input=run.admission, messages=run.messages, state=run.state, complete=complete)


def _attempted(read: Paused, follows: Pause | None) -> tuple[str, ...]:
    """The interrupts about a tool call that had its result while the pause before was there."""
    if follows is None or not follows.attempted:
        return ()
    done = {call_id_of(described(one)) for one in follows.interrupts if one.id in follows.attempted}
    return tuple(one["id"] for one in read.descriptors if call_id_of(one) in done)


def _interrupts(state: ThreadState, run: Run, read: Paused, rules: Rules) -> tuple[Interrupt, ...]:
    reused = {id_ for pause in state.gone for id_ in pause.ids}
    unusable = _unusable(read, rules)
    room = rules.limits.tool_args  # for all of them: several may be about the same call
    found = []
    for raw, descriptor in zip(read.raws, read.descriptors, strict=True):
        tool = _tool(run, call_id_of(descriptor))
        route = _route(rules, descriptor, tool)
        fitting = tool.within(room) if tool else None
        room -= fitting.size if fitting else 0
        found.append(
            Interrupt(
                id=descriptor["id"],
                descriptor=raw,
                tool=fitting,
                route=route.route,
                team=route.team,
                reserved=route.reserved,
                reused=descriptor["id"] in reused,
                cancel_only=descriptor["id"] in unusable,
            )
        )
    if any(interrupt.team for interrupt in found):  # then all are answered through the router (contract 3.3)
        found = [i if i.team else _replace(i, team=CLIENT) for i in found]
    return tuple(found)


def _unusable(read: Paused, rules: Rules) -> set[str]:
    """Interrupts that can only be cancelled: their schema is refused, or one too many of its pause."""
    refused: set[str] = set()
    if rules.unusable_schema == "accept":
        return refused
    few = len(read.descriptors) <= rules.limits.schemas  # then so are their schemas
    seen: dict[str, int] = {}
    for descriptor in read.descriptors:
        if (schema := descriptor.get("responseSchema")) is None:
            continue
        position = 0 if few else seen.setdefault(digest_of(schema), len(seen))
        if position >= rules.limits.schemas or schemas.admit(schema).refused:
            refused.add(descriptor["id"])
    return refused


def _tool(run: Run, call_id: str | None) -> ToolCall | None:
    return next((call for call in run.calls if call.call_id == call_id), None)


def _route(rules: Rules, descriptor: Mapping[str, Any], tool: ToolCall | None) -> Destination:
    return rules.routes.match(
        descriptor["reason"],
        tool=tool.name if tool else None,
        bound=call_id_of(descriptor) is not None,
        metadata=descriptor.get("metadata"),
    )
