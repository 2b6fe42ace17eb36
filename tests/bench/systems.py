"""The systems under test: ours and its peers, each with what starts it. `holdshort` is the product itself."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.bench.peers import environments, java

from holdshort.cli.bench.program import GATEKEEPER

ROUTER: Final = (sys.executable, "-m", "holdshort.cli", "router")
Told = Callable[[str], None]
Command = Callable[[Told], Sequence[str]]
"""How to start it; builds what must be built, and says so."""


@dataclass(frozen=True, slots=True)
class System:
    """One system. It is told BENCH_BOOTSTRAP_SERVERS, BENCH_PREFIX, BENCH_PARTITIONS, BENCH_STATE_DIRECTORY.

    `beside` are further programs that belong to it.

    `refuses` says that it has rules, `mirror` that there is none: the load reads its own records back.
    """

    name: str
    what: str
    command: Command | None
    environment: Mapping[str, str] = field(default_factory=dict)
    refuses: bool = True
    mirror: bool = False
    beside: Sequence[Command] = ()

    def but(self, name: str, what: str, **environment: str) -> "System":
        return replace(self, name=name, what=what, environment={**self.environment, **environment})


def _always(*command: str) -> Command:
    return lambda _: command


FLOOR: Final = System(
    "floor", "nothing: the load reads back its own records", None, refuses=False, mirror=True
)
HOLDSHORT: Final = System(
    "holdshort",
    "the gatekeeper: all rules, schemas, audit; 2 lanes",
    _always(*GATEKEEPER),
    {"HOLDSHORT_LANES": "2", "HOLDSHORT_INSTANCE": "bench"},
)
TWO_PROCESSES: Final = replace(
    HOLDSHORT.but("holdshort-p2", "two processes of the gatekeeper, a lane each"),
    beside=(_always("env", "HOLDSHORT_INSTANCE=bench-2", *GATEKEEPER),),
)
ROUTED: Final = replace(
    HOLDSHORT.but("holdshort-routed", "gatekeeper and router, of 2 lanes each: pauses to people and back"),
    beside=(_always(*ROUTER),),
)
LIMIT: Final = System(
    "limit",
    "the thinnest pass-through in Python, a transaction a partition",
    _always(sys.executable, str(Path(__file__).parent / "peers" / "limit.py")),
    refuses=False,
)
LIMIT_RULES: Final = replace(
    LIMIT.but("limit-rules", "the same with simplified rules", BENCH_RULES="1"), refuses=True
)
KSTREAMS: Final = System(
    "kstreams",
    "Kafka Streams with simplified rules, in memory, commits every 100 ms",
    java.command,
    {**java.environment(), "BENCH_COMMIT_MS": "100"},
)
QUIX: Final = System(
    "quix",
    "Quix Streams with simplified rules, commits every 100 ms",
    environments.quix,
    {"BENCH_COMMIT_MS": "100"},
)

SYSTEMS: Final = {
    system.name: system
    for system in (
        FLOOR,
        HOLDSHORT,
        HOLDSHORT.but("holdshort-1", "the gatekeeper with one lane", HOLDSHORT_LANES="1"),
        HOLDSHORT.but("holdshort-4", "the gatekeeper with four lanes", HOLDSHORT_LANES="4"),
        TWO_PROCESSES,
        ROUTED,
        LIMIT,
        LIMIT.but("limit-lane", "the thinnest pass-through, one transaction for all", BENCH_LANES="1"),
        LIMIT_RULES,
        LIMIT_RULES.but("limit-rules-lane", "with rules, one transaction for all", BENCH_LANES="1"),
        KSTREAMS,
        KSTREAMS.but("kstreams-c10", "commits every 10 ms", BENCH_COMMIT_MS="10"),
        KSTREAMS.but("kstreams-t2", "two threads", BENCH_THREADS="2"),
        KSTREAMS.but("kstreams-c10-t2", "both", BENCH_COMMIT_MS="10", BENCH_THREADS="2"),
        KSTREAMS.but("kstreams-rocks", "its state in RocksDB", BENCH_STORE="rocks"),
        KSTREAMS.but("kstreams-x2s", "transactions time out after 2 s", BENCH_TRANSACTION_TIMEOUT_MS="2000"),
        KSTREAMS.but("kstreams-dynamic", "a member without a name of its own", BENCH_INSTANCE="none"),
        QUIX,
    )
}
