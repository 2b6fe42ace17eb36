"""One soak: pauses are opened, decided and settled under kills; then nothing may be open or unexplained."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.soak.evidence import Evidence, read
from tests.soak.explained import Story, findings
from tests.soak.load import Load
from tests.soak.world import VICTIMS, World

STUCK_S: Final = 120.0  # without anything new
SETTLE_S: Final = 60.0  # for the last decisions to be judged
LOOK_S: Final = 1.0
HELD: Final = 0.1  # of the pauses begin only when each kind of victim was killed once

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it; `directory` has the logs if something was found."""

    figures: Mapping[str, str]
    findings: list[str]
    directory: Path


async def soak(pauses: int, seed: int, environment: Mapping[str, str], told: Told) -> Result:
    """Raises Fatal where the world cannot start or a service does not come back."""
    directory = Path(tempfile.mkdtemp(prefix="holdshort-soak-"))
    began = time.monotonic()
    async with World(directory, seed, environment) as world:
        load = Load(world.wire(), pauses, seed)
        await _told(world, load, pauses, told)
        took = time.monotonic() - began
        await world.stop_deciders()
        await world.whole()
        load.close()
        evidence, found = await _settled(world, load, told)
        if world.ended_by_themselves:
            found.append(f"programs ended by themselves {world.ended_by_themselves} times")
    if not found:
        shutil.rmtree(directory)
    return Result(_figures(world, load, evidence, took), found, directory)


async def _told(world: World, load: Load, pauses: int, told: Told) -> None:
    """Every pause, while the world is hurt."""
    hurting = asyncio.create_task(world.hurt())
    last = time.monotonic()
    try:
        while not load.done and not hurting.done():
            held = 0 if len(world.kills) == len(VICTIMS) else int(HELD * pauses)
            if await asyncio.to_thread(load.step, held=held):
                last = time.monotonic()
            told(
                f"{load.over:,} of {pauses:,} pauses over, {load.opened - load.over:,} open, {_kills(world)}"
            )
            if time.monotonic() - last > STUCK_S:
                load.troubles.append(f"nothing came for {STUCK_S:g} s: {load.over:,} pauses are over")
                return
    finally:
        hurting.cancel()
        await asyncio.gather(hurting, return_exceptions=True)
    if not load.done:
        load.troubles.append(f"the killer gave up: {hurting.exception()}")


async def _settled(world: World, load: Load, told: Told) -> tuple[Evidence, list[str]]:
    """The evidence as soon as nothing is found in it, or when patience ends."""
    limit = time.monotonic() + SETTLE_S
    questions = {name.decode(): thread.asked for name, thread in load.threads.items()}
    given = {run.decode(): count for run, count in load.given.items()}
    while True:
        told("reading it all again")
        evidence = await asyncio.to_thread(read, world.wire(), world.prefix, questions, given, load.troubles)
        found = findings(evidence)
        if not found or time.monotonic() > limit:
            return evidence, found
        await asyncio.sleep(LOOK_S)


def _kills(world: World) -> str:
    return ", ".join(f"{kind} killed {count}" for kind, count in sorted(world.kills.items())) or "no kills"


def _figures(world: World, load: Load, evidence: Evidence, took: float) -> dict[str, str]:
    story = Story(evidence)
    receipts = sum(len(those) for those in evidence.receipts.values())
    corrections = receipts - sum(story.codes.values())
    return {
        "pauses": f"{load.opened:,} in {len(load.threads):,} threads, {load.over:,} over",
        "questions": f"{sum(len(q) for t in load.threads.values() for q in t.asked.values()):,}",
        "kills": f"{sum(world.kills.values())} ({_kills(world)})",
        "decisions": f"{len(evidence.decisions):,}",
        "receipts": f"{receipts:,}, of which {corrections:,} take back an earlier one",
        "said of decisions": ", ".join(f"{name} {count:,}" for name, count in story.codes.most_common()),
        "done by the router": ", ".join(f"{name} {count:,}" for name, count in story.deeds.most_common()),
        "runs that failed": f"{load.failed:,}",
        "dead letters": f"{len(evidence.dead):,}, all of decisions without a thread",
        "took": f"{took:.0f} s, {load.over / took:.0f} pauses a second",
    }
