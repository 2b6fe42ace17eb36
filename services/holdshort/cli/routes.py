"""`holdshort routes list|explain`: which team gets which interrupt, and why, by the configuration file."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdshort.cli.showing import echo_json, plain, print_table, span

if TYPE_CHECKING:
    from holdshort.contract.choice import Candidate, Choice
    from holdshort.contract.routes import Policy
    from holdshort.settings import Config

app = typer.Typer(help="Which team gets which interrupt, and why.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="As one JSON object a line.")]


@app.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """Print the routes in the order in which they are asked."""
    from holdshort.contract.choice import in_order, kind_of  # noqa: PLC0415 - heavy

    config = _config()
    table = config.rules(1).routes
    routes = [
        {
            "place": place,
            "route": route.name,
            "kind": kind_of(route).value,
            "matches": _matches(route),
            "team": route.team,
            "answerBy": route.answer_by,
        }
        for place, route in in_order(table)
    ]
    if as_json:
        for one in routes:
            echo_json(one)
        return
    columns = ("", "kind", "matches", "team", "answered by")
    rows = [
        (
            f"routes[{one['place']}]",
            str(one["kind"]),
            plain(_said(one["matches"])),
            str(one["team"]),
            str(one["answerBy"]),
        )
        for one in routes
    ]
    last = table.match("", tool="", bound=False, metadata=None)
    print_table(
        columns, [*rows, ("", "else", "", last.team or "client", "team" if last.reserved else "anyone")]
    )


@app.command()
def explain(
    reason: Annotated[str, typer.Argument(help="The interrupt's reason.")],
    tool: Annotated[
        str | None, typer.Option("--tool", help="The name of the tool that the interrupt asks about.")
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", help="NAME=VALUE, a JSON value or text; as often as there are members."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Whose it is: whether the router may cancel for it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Say which route an interrupt takes, why the others that match do not, and how its team is asked."""
    from holdshort.cli.hints import hints  # noqa: PLC0415 - heavy
    from holdshort.contract.choice import choose  # noqa: PLC0415 - heavy

    config = _config()
    table = config.rules(1).routes
    choice = choose(table, reason, tool=tool, metadata=_members(metadata or []))
    said = _explained(config, choice, _cancels(config, agent, reason))
    said["hints"] = list(hints(table, choice, reason, tool))
    if as_json:
        echo_json(said)
    else:
        _print(said)


def _config() -> "Config":
    from holdshort.settings import load_settings  # noqa: PLC0415 - heavy

    return load_settings()[2]


def _members(given: list[str]) -> dict[str, Any]:
    """Raises MendSettingsError for a member without a value."""
    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    members: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not (name and equals):
            raise MendSettingsError(f"--metadata {one}: must be NAME=VALUE")
        try:
            members[name] = json.loads(text)
        except ValueError:
            members[name] = text
    return members


def _cancels(config: "Config", agent: str | None, reason: str) -> bool:
    """Whether the router may cancel by itself. Raises MendSettingsError for an agent that is not known."""
    from holdshort.contract.rules import AgentRules  # noqa: PLC0415 - heavy
    from holdshort.router.deadlines import takes_cancel_for_yes  # noqa: PLC0415 - heavy
    from holdshort.settings import MendSettingsError  # noqa: PLC0415 - heavy

    if agent is not None and agent not in config.agents:
        raise MendSettingsError(
            f"--agent {agent}: there is no such agent; there are {', '.join(config.agents)}"
        )
    known = AgentRules() if agent is None else config.rules(1).agent(agent)
    return not takes_cancel_for_yes(known, [reason])


# -- what is said -------------------------------------------------------------------------------------------


def _explained(config: "Config", choice: "Choice", cancels: bool) -> dict[str, Any]:
    destination, winner = choice.destination, choice.winner
    policy = config.rules(1).routes.policy(destination.route)
    return {
        "route": destination.route,
        "place": winner.place if winner else None,
        "team": destination.team,
        "answerBy": "team" if destination.reserved else "anyone",
        "why": _why(winner) if winner else choice.why,
        "routes": [_candidate(one) for one in choice.candidates],
        "policy": dict(_policy(policy)) if policy is not None and destination.team is not None else {},
        "cancelsByItself": cancels,
        "maxOpen": config.teams[destination.team].max_open if destination.team in config.teams else None,
    }


def _why(winner: "Candidate") -> str:
    return f"the first that matches, by {winner.kind}"


def _candidate(one: "Candidate") -> dict[str, Any]:
    return {
        "place": one.place,
        "route": one.route.name,
        "kind": one.kind.value,
        "matches": _matches(one.route),
        "team": one.route.team,
        "wins": one.lost is None,
        "lost": one.lost,
    }


def _matches(route: Any) -> dict[str, Any]:
    if route.reason is not None:
        return {"reason": route.reason}
    members = {"metadata": dict(route.metadata)} if route.metadata else {}
    return ({"tool": sorted(route.tools)} if route.tools else {}) | members


def _policy(policy: "Policy") -> Iterator[tuple[str, Any]]:
    """What of a policy there is to say; times as people write them."""
    yield "deadline", _deadline(policy)
    yield "onDeadline", _on_deadline(policy)
    yield "ttl", span(policy.ttl_ms)
    if policy.remind_ms is not None:
        yield "remindAfter", span(policy.remind_ms)
    if policy.escalate_ms is not None:
        yield "escalateAfter", f"{span(policy.escalate_ms)}, to {policy.escalate_to}"
    groups = f", one each of {', '.join(policy.groups)}" if policy.groups else ""
    yield "quorum", f"{policy.quorum}{groups}"
    if policy.quorum > 1:
        yield "denial", policy.denial
    yield "onDenial", policy.on_denial
    yield "requesterMayDecide", policy.requester_may_decide
    yield "signature", policy.signature
    yield "priority", policy.priority
    yield "retry", policy.retry
    if policy.overflow_to is not None:
        yield "overflowTo", policy.overflow_to
    if policy.on_overflow is not None:
        yield "onOverflow", policy.on_overflow


def _deadline(policy: "Policy") -> str:
    if policy.on_deadline == "wait":
        return "the earliest expiry of the pause, else the ttl"
    expiry = "the earliest expiry of the pause less a margin"
    return (
        expiry + ", else the ttl"
        if policy.deadline_ms is None
        else f"{span(policy.deadline_ms)}, or {expiry}"
    )


def _on_deadline(policy: "Policy") -> str:
    from msgspec import UNSET  # noqa: PLC0415 - heavy

    if policy.on_deadline != "answer":
        return policy.on_deadline
    return "answer: a denial" if policy.answer is UNSET else f"answer: {bytes(policy.answer).decode()}"


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_said(one)}" for name, one in value.items())
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _print(said: dict[str, Any]) -> None:
    place = f"routes[{said['place']}], " if said["place"] is not None else ""
    team = said["team"] or "its client"
    typer.echo(plain(f"goes to {team} ({place}route {said['route'] or '-'}): {said['why']}"))
    for hint in said["hints"]:
        typer.echo(plain(f"hint: {hint}"))
    typer.echo(f"answer_by: {said['answerBy']}")
    for one in said["routes"]:
        mark = "wins" if one["wins"] else f"does not: {one['lost']}"
        typer.echo(
            plain(f"  routes[{one['place']}] {one['kind']}: {_said(one['matches'])} -> {one['team']}: {mark}")
        )
    for name, value in said["policy"].items():
        typer.echo(plain(f"{_words(name)}: {value if not isinstance(value, bool) else str(value).lower()}"))
    if said["policy"] and not said["cancelsByItself"]:
        typer.echo("nothing is cancelled by itself: this agent may take a cancel for a yes")
    if said["maxOpen"] is not None:
        typer.echo(f"max open: {said['maxOpen']} questions of the team at once, over all partitions")


def _words(name: str) -> str:
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in name)
