"""One run of chaos: a world, a load and a torment; then everything comes to rest and is checked."""

import asyncio
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.chaos import log
from tests.chaos.checkers import Evidence, Finding, findings
from tests.chaos.faults import Torment
from tests.chaos.load import Load
from tests.chaos.log import Witness
from tests.chaos.world import PREFIX, World

REST_PATIENCE_S: Final = 180.0  # for what is under way when the faults end
LOOK_EVERY_S: Final = 2.0
SETTLE_PATIENCE_S: Final = 60.0  # for the last transactions

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much: so many kills, or so many seconds."""

    seed: int
    kills: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What happened and what was found; `directory` has the evidence if something was."""

    plan: Plan
    figures: Mapping[str, str]
    findings: list[Finding]
    directory: Path


class _Run:
    def __init__(self, plan: Plan, world: World, told: Told) -> None:
        self.plan = plan
        self.world = world
        self.told = told
        self.load = Load(world.proxied, PREFIX, Random(plan.seed))
        self.torment = Torment(world, plan.seed)
        self.witness = Witness(world.proxied, PREFIX, world.topics, self.load.saw)
        self.began = time.monotonic()

    def standing(self) -> str:
        return (
            f"{self.torment.kills.total()} kills, {self.torment.others.total()} other faults, "
            f"{self.load.begun} threads begun, {len(self.load.stories)} under way, "
            f"{len(self.witness.seen):,} records, longest gap {self.witness.longest_gap:.1f} s"
        )

    def enough(self) -> bool:
        self.told(self.standing())
        if self.witness.failed:
            raise RuntimeError(f"the live reader ended: {self.witness.troubles}")
        if self.plan.kills is not None:
            return self.torment.kills.total() >= self.plan.kills
        return time.monotonic() - self.began >= (self.plan.seconds or 0.0)

    async def live(self) -> Evidence:
        """Faults, then rest, then all that is there. Whatever does not come to rest is a finding, too."""
        telling = asyncio.create_task(self.load.tell())
        try:
            await self.torment.until(self.enough)
            self.load.wind_down()
            await self.torment.over()
            await self._until(lambda: self.load.done, REST_PATIENCE_S)
            return await self._settled()
        finally:
            telling.cancel()
            await self.torment.stop()
            await self.witness.stop()

    async def _until(self, condition: Callable[[], bool], patience: float) -> None:
        limit = time.monotonic() + patience
        while not condition() and not self.witness.failed and time.monotonic() < limit:
            self.told(f"coming to rest: {self.standing()}")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _settled(self) -> Evidence:
        """The evidence as soon as nothing is found in it, or when patience ends."""
        limit = time.monotonic() + SETTLE_PATIENCE_S
        while True:
            self.told("reading it all again")
            evidence = await self._evidence()
            found = await asyncio.to_thread(findings, evidence)
            if not found or time.monotonic() > limit:
                return evidence
            await asyncio.sleep(LOOK_EVERY_S)

    async def _evidence(self) -> Evidence:
        world, load = self.world, self.load
        where = (world.direct, PREFIX, world.topics)
        halted = await asyncio.to_thread(world.halted)
        effects = world.effects.read_text().splitlines() if world.effects.exists() else []
        return Evidence(
            ends=await log.ends(*where),
            records=await log.whole(*where),
            witnessed=dict(self.witness.seen),
            effects=[json.loads(line) for line in effects],
            acknowledged=frozenset(load.sent),
            must_be_refused=frozenset(load.must_be_refused),
            pauses=load.pauses,
            unfinished=[f"unfinished: {story}" for story in load.stories.values()],
            troubles=[*self.witness.troubles, *load.troubles, *halted],
            longest_gap=self.witness.longest_gap,
        )

    def figures(self, evidence: Evidence, found: list[Finding]) -> dict[str, str]:
        kinds = Counter(finding.kind for finding in found)
        ends = {program.name: program.own_ends for program in self.world.programs if program.own_ends}
        return {
            "kills": _counted(self.torment.kills),
            "other faults": _counted(self.torment.others),
            "delivered EndTxn": _counted(self.world.traps.delivered),
            "threads": str(self.load.begun),
            "inputs": str(len(evidence.of("inputs"))),
            "resumes": str(len(evidence.of("resumes"))),
            "effects": str(len(evidence.effects)),
            "records": str(sum(len(records) for records in evidence.records.values())),
            "lost": str(kinds["lost"]),
            "doubled": str(kinds["doubled"]),
            "reordered": str(kinds["reordered"]),
            "visible-then-gone": str(kinds["gone"]),
            "open transactions": str(sum(e.committed != e.written for e in evidence.ends.values())),
            "otherwise wrong": str(kinds["wrong"] + kinds["open"]),
            "longest gap": f"{evidence.longest_gap:.1f} s",
            "ended by themselves": _counted(Counter(ends)),
            "took": f"{time.monotonic() - self.began:.0f} s",
        }


def _counted(counter: Counter[Any]) -> str:
    parts = ", ".join(f"{name} {count}" for name, count in sorted(counter.items(), key=str))
    return f"{sum(counter.values())}" + (f" ({parts})" if parts else "")


async def run(plan: Plan, told: Told) -> Result:
    """Raises what keeps the world from starting, or its brokers from coming back."""
    directory = Path(tempfile.mkdtemp(prefix="holdshort-chaos-"))
    async with World(directory) as world:
        one = _Run(plan, world, told)
        evidence = await one.live()
        found = findings(evidence)
        result = Result(plan, one.figures(evidence, found), found, directory)
        if found:
            _keep(evidence, found, directory)
    await asyncio.to_thread(_clear, directory, whole=not found)
    return result


def _clear(directory: Path, *, whole: bool) -> None:
    for records in directory.glob("kafka/*/records"):
        shutil.rmtree(records)
    if whole:
        shutil.rmtree(directory)


def _keep(evidence: Evidence, found: list[Finding], directory: Path) -> None:
    """Beside the logs of all programs: what was found, and every committed record."""
    (directory / "findings.txt").write_text("\n".join(f"{kind}: {text}" for kind, text in found))
    with (directory / "records.jsonl").open("w") as file:
        for topic, records in evidence.records.items():
            for seen in records:
                row = [topic, seen.partition, seen.offset, seen.key, seen.headers, seen.value]
                file.write(json.dumps(row) + "\n")
