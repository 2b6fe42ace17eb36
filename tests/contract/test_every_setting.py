"""Every setting of the contract changes what it says, and every limit holds on both sides: two tables.

A setting or a limit that is added without a line here fails. The defaults are those of the design.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.playbook import (
    Agent,
    Playbook,
    agent,
    client,
    later,
    pause_of,
    question,
    run_of,
    sdk,
    without_payload,
)

from holdshort.contract import schemas
from holdshort.contract.messages import size_of
from holdshort.contract.routes import Route, RouteTable
from holdshort.contract.rules import AgentRules, Limits, Rules
from holdshort.settings import Config

MIB = 1024 * 1024
HOUR_MS = 3_600_000
ALL_MONEY = RouteTable([Route(name="money", team="payments", reason="test:question")])
Said = tuple[Any, Any]


def code(play: Playbook, said: Any) -> Any:
    """The code by which it is refused, or the verdict."""
    verdict = play.verdict(said)
    return verdict.code or verdict.kind


def playing(*scene: Any, **changes: Any) -> Playbook:
    play = Playbook(**changes)
    play(*scene)
    return play


# -- settings: what is said by default, and what with the setting ------------------------------------------


def agents() -> Said:
    asks = client.asks("r1").having(agent="billing")
    return code(Playbook(), asks), code(Playbook(agents=["default", "billing"]), asks)


def default_agent() -> Said:
    return code(Playbook(), client.asks("r1")), code(Playbook(default_agent=None), client.asks("r1"))


def routes() -> Said:
    answer, asked = client.resumes("r2", a=True), agent.interrupts("r1", "a")
    return code(playing(asked), answer), code(playing(asked, routes=ALL_MONEY), answer)


def partitions() -> Said:
    asks = client.asks("r1").but(partition=0)
    return code(Playbook(partitions=1), asks), code(Playbook(partitions=12), asks)


def trust_principal() -> Said:
    asks = client.asks("r1").having(principal="ada")
    trusted = playing(asks, trust_principal=frozenset({"inputs"}))
    return run_of(playing(asks)).principal, run_of(trusted).principal


def _after(minutes: float, *scene: Any, **changes: Any) -> str:
    play = playing(*scene, **changes)
    _ = play >> later(minutes=minutes)
    said = "nothing" if play.silent else play.unchecked.pop(0)["verdict"]
    return str(said)


def start_lease_ms() -> Said:
    asks = client.asks("r1")
    return _after(14, asks), _after(14, asks, start_lease_ms=60_000)


def run_lease_ms() -> Said:
    heard = (client.asks("r1"), sdk.starts("r1"))
    return _after(14, *heard), _after(14, *heard, run_lease_ms=60_000)


def cold_resume() -> Said:
    answer = client.resumes("r1", a=True)
    return code(Playbook(), answer), code(Playbook(cold_resume="forward"), answer)


def outside_runs() -> Said:
    starts = agent.starts("r1")
    return code(Playbook(), starts), code(Playbook(outside_runs="refuse"), starts)


def unusable_schema() -> Said:
    asked = agent.interrupts("r1", question("a", responseSchema={"$ref": "http://127.0.0.1:1/"}))
    answer = client.resumes("r2", a=True)
    return code(playing(asked), answer), code(playing(asked, unusable_schema="accept"), answer)


def unaddressed_reuse() -> Said:
    again = (
        agent.interrupts("r1", "a"),
        client.resumes("r2", a=True),
        agent.interrupts("r2", "a"),
    )
    answer = client.resumes("r3", a=False)
    return code(playing(*again), answer), code(playing(*again, unaddressed_reuse="refuse"), answer)


def foreign_run_ids() -> Said:
    strange = {"default": AgentRules(foreign_run_ids=True)}
    asks, finishes = client.asks("r1"), agent.finishes("r1")
    return code(playing(asks), finishes), code(playing(asks, agents=strange), finishes)


def legacy_interrupts() -> Said:
    legacy = {"default": AgentRules(legacy_interrupts=True)}
    paused = (client.asks("r1"), sdk.starts("r1"), sdk.pauses_legacy("sure?"))
    finishes = sdk.finishes("r1")
    return code(playing(*paused), finishes), code(playing(*paused, agents=legacy), finishes)


SETTINGS: dict[Callable[[], Said], Said] = {
    agents: ("UNKNOWN_AGENT", "admitted"),
    default_agent: ("admitted", "UNKNOWN_AGENT"),
    routes: ("admitted", "RESERVED_FOR_TEAM"),
    partitions: ("admitted", "MISKEYED_RECORD"),
    trust_principal: (None, "ada"),
    start_lease_ms: ("nothing", "lost"),
    run_lease_ms: ("nothing", "lost"),
    cold_resume: ("UNKNOWN_INTERRUPT_ID", "admitted"),
    outside_runs: ("passed", "STALE_RUN"),
    unusable_schema: ("SCHEMA_REFUSED", "admitted"),
    unaddressed_reuse: ("admitted", "STALE_BINDING"),
    foreign_run_ids: ("passed", "ignored"),
    legacy_interrupts: ("passed", "opened"),
}
THE_ROUTERS = {
    "audit_key", "cancel", "claim_lease_ms", "deadline_margin_ms", "installation", "max_attempts", "resume",
    "teams",
}  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.__name__)
def test_a_setting_changes_what_it_says(setting: Callable[[], Said]) -> None:
    assert setting() == SETTINGS[setting]


def test_every_setting_is_in_the_table() -> None:
    names = {field.name for kind in (Rules, AgentRules) for field in msgspec.structs.fields(kind)}
    assert {setting.__name__ for setting in SETTINGS} | {"limits"} == names - THE_ROUTERS


def test_the_defaults_are_those_of_the_design() -> None:
    rules = Rules()
    assert dict(rules.agents) == {"default": AgentRules()}
    assert rules.default_agent == "default"
    assert (rules.routes.routes, rules.routes.default_team) == ((), None)
    assert rules.trust_principal == frozenset()
    assert (rules.start_lease_ms, rules.run_lease_ms) == (HOUR_MS // 4, HOUR_MS // 4)
    assert (rules.cold_resume, rules.outside_runs) == ("refuse", "pass")
    assert (rules.unusable_schema, rules.unaddressed_reuse) == ("cancel_only", "accept")
    assert AgentRules() == AgentRules(foreign_run_ids=False, legacy_interrupts=False, resume=None)
    assert Limits() == Limits(
        input=MIB, event=MIB, id=512, interrupts=64, descriptors=MIB // 4, schemas=16, payload=MIB // 16,
        entries=MIB // 2, tool_args=MIB // 16, remembered=16, memory_ms=24 * HOUR_MS, open_pauses=100_000,
        open_bytes=256 * MIB, work=25_000, dead_letter=2 * MIB,
    )  # fmt: skip


CONFIGURED: dict[str, tuple[Any, Callable[[Rules], Any], Any]] = {
    "agents": ({"x": {"foreign_run_ids": True, "legacy_interrupts": True}}, lambda r: r.agents,
               {"x": AgentRules(foreign_run_ids=True, legacy_interrupts=True)}),
    "default_agent": ("default", lambda r: r.default_agent, "default"),
    "trust_principal": (["inputs"], lambda r: r.trust_principal, {"inputs"}),
    "start_lease": ("24h", lambda r: r.start_lease_ms, 24 * HOUR_MS),
    "run_lease": ("1m", lambda r: r.run_lease_ms, 60_000),
    "cold_resume": ("forward", lambda r: r.cold_resume, "forward"),
    "outside_runs": ("refuse", lambda r: r.outside_runs, "refuse"),
    "unusable_schema": ("accept", lambda r: r.unusable_schema, "accept"),
    "unaddressed_reuse": ("refuse", lambda r: r.unaddressed_reuse, "refuse"),
    "limits": (
        {"input": "1KiB", "event": "2KiB", "interrupts": 3, "descriptors": "4KiB", "payload": "5KiB",
         "entries": "6KiB", "tool_args": "7KiB", "remembered": 8, "memory": "9s", "open_pauses": 10,
         "open_bytes": "11KiB"},
        lambda r: r.limits,
        Limits(input=1024, event=2048, interrupts=3, descriptors=4096, payload=5120, entries=6144,
               tool_args=7168, remembered=8, memory_ms=9000, open_pauses=10, open_bytes=11 * 1024),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_configuration_file_reaches_the_contract(name: str) -> None:
    given, read, expected = CONFIGURED[name]
    assert read(Config.model_validate({name: given}).rules(1)) == expected
    assert read(Rules()) != expected or name == "default_agent"


# -- limits: whether what is exactly at the limit goes, and what is one above it ---------------------------

Within = Callable[[int], bool]


def _input(over: int) -> bool:
    play = Playbook(limits=Limits(input=300))
    return bool(code(play, client.asks("r1").padded(300 + over)) == "admitted")


def _event(over: int) -> bool:
    play = playing(agent.starts("r1"), limits=Limits(event=300))
    return bool(code(play, agent.says(run="r1").padded(300 + over)) == "passed")


def _id(over: int) -> bool:
    return bool(code(Playbook(limits=Limits(id=20)), client.asks("r" * (20 + over))) == "admitted")


def _interrupts(over: int) -> bool:
    play = Playbook(limits=Limits(interrupts=3))
    return bool(code(play, agent.interrupts("r1", *[f"i{n}" for n in range(3 + over)])) == "opened")


def _descriptors(over: int) -> bool:
    asked = question("a", message="m" * over)
    play = Playbook(limits=Limits(descriptors=len(msgspec.json.encode(question("a", message="")))))
    return bool(code(play, agent.interrupts("r1", asked)) == "opened")


def _schemas(over: int) -> bool:
    asked = [question(f"i{n}", responseSchema={"maximum": n}) for n in range(2 + over)]
    play = playing(agent.interrupts("r1", *asked), limits=Limits(schemas=2))
    return not any(one.cancel_only for one in pause_of(play).interrupts)


def _payload(over: int) -> bool:
    play = playing(agent.interrupts("r1", "a"), limits=Limits(payload=50))
    return bool(code(play, client.resumes("r2", a="x" * (50 - 2 + over))) == "admitted")


def _entries(over: int) -> bool:
    answer = client.resumes("r2", a="x" * over)
    size = len(msgspec.json.encode(client.resumes("r2", a="").value["resume"]))
    play = playing(agent.interrupts("r1", "a"), limits=Limits(entries=size))
    return bool(code(play, answer) == "admitted")


def _tool_args(over: int) -> bool:
    bare = len('{"callId":"c","name":"pay","args":""}')
    play = playing(agent.starts("r1"), agent.calls("c", "pay"), limits=Limits(tool_args=bare + 10))
    play(agent.argues("c", "x" * (10 + over)))
    return run_of(play).calls[0].args is not None


def _remembered(over: int) -> bool:
    runs = [f"r{n}" for n in range(3 + over)]
    play = Playbook(limits=Limits(remembered=3))
    for run in runs:
        play(client.asks(run), sdk.finishes(run))
    return play.state().ended[-1].run_id == "r0"


def _memory_ms(over: int) -> bool:
    """The last millisecond in which it is remembered, and the one after."""
    play = playing(client.asks("r1"), sdk.finishes("r1"), limits=Limits(memory_ms=60_000))
    ended = play.state().ended[0].at
    play.transcript.play({"at": ended + 60_000 - 1 + over})
    return not play.state().empty


def _open_pauses(over: int) -> bool:
    play = Playbook(limits=Limits(open_pauses=2))
    for n in range(1 + over):
        play(Agent(thread=f"u{n}").interrupts("r1", "a"))
    play(agent.interrupts("r1", "a"))
    return not pause_of(play).sealed


def _open_bytes(over: int) -> bool:
    size = len(msgspec.json.encode(question("a")))
    play = Playbook(limits=Limits(open_bytes=size - over))
    _ = play >> agent.interrupts("r1", "a")
    play.unchecked.clear()
    return not pause_of(play).sealed


def _work(over: int) -> bool:
    schema = {"items": {"type": "integer"}}
    needed = schemas.work(schemas.admit(schema).cost, [1, 2, 3])
    asked = agent.interrupts("r1", question("a", responseSchema=schema))
    play = playing(asked, limits=Limits(work=needed - over))
    return bool(code(play, client.resumes("r2", a=[1, 2, 3])) == "admitted")


def _dead_letter(over: int) -> bool:
    said = agent.says().but(value="{", headers={})
    play = Playbook()
    size = size_of(play.transcript._record(play._line(said)[0]))
    play = Playbook(limits=Limits(dead_letter=size + 4096 - over))
    return play.verdict(said).emits[0].value == b"{"


LIMITS: tuple[Within, ...] = (
    _input, _event, _id, _interrupts, _descriptors, _schemas, _payload, _entries, _tool_args, _remembered,
    _memory_ms, _open_pauses, _open_bytes, _work, _dead_letter,
)  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.__name__.removeprefix("_"))
def test_exactly_at_the_limit_goes_and_one_above_does_not(limit: Within) -> None:
    assert limit(0)
    assert not limit(1)


def test_every_limit_is_in_the_table() -> None:
    names = {field.name for field in msgspec.structs.fields(Limits)}
    assert {limit.__name__.removeprefix("_") for limit in LIMITS} == names


def test_an_absent_payload_has_no_size() -> None:
    play = playing(agent.interrupts("r1", "a"), limits=Limits(payload=1))
    assert code(play, client.resumes("r2", a=without_payload)) == "admitted"
