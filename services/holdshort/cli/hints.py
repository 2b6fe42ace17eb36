"""What was probably meant by a reason or a tool that no route knows: a mistyped one finds its route. Pure."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from holdshort.contract.choice import Choice, Kind, kind_of
from holdshort.contract.routes import CORE_REASONS, RESERVED_NAMESPACE, UNROUTED, RouteTable

ALIKE: Final = 0.75  # of two words that are one typing mistake apart
MOST_NAMED: Final = 8


def hints(table: RouteTable, choice: Choice, reason: str, tool: str | None) -> Iterator[str]:
    """One sentence each; nothing where a route was found by all that was said."""
    if choice.winner is not None and choice.winner.kind in (Kind.REASON, Kind.NAMESPACE):
        return
    if choice.winner is None and reason == "tool_call" and tool is None:
        if choice.destination.route == UNROUTED and any(route.tools for route in table.routes):
            yield "say which tool it asks about: --tool NAME"
        return
    yield from _of_the_reason(table, choice, reason)
    tools = sorted({one for route in table.routes for one in route.tools})
    if tool is not None and tools and tool not in tools:
        yield f"no route names the tool {tool}; {_meant(tool, tools) or _named('tools', tools)}"


def _of_the_reason(table: RouteTable, choice: Choice, reason: str) -> Iterator[str]:
    known = [route.reason for route in table.routes if route.reason and kind_of(route) is not Kind.CORE]
    if reason.startswith(f"{RESERVED_NAMESPACE}:") or reason in CORE_REASONS or not known:
        return
    said = _meant_by(reason, known)
    if said is not None or choice.winner is None:
        yield f"no route names the reason {reason}; {said or _named('reasons', known)}"


def _meant_by(reason: str, known: Iterable[str]) -> str | None:
    """The reason of a route that this one may be: itself, or a namespace that it may be in."""
    exact = {one: one for one in known if not one.endswith("*")}
    spaces = {one.removesuffix("*"): one for one in known if one.endswith("*")}
    if found := _meant(reason, exact):
        return found
    ends = [end for end, one in enumerate(reason, 1) if one in ":./_-"]
    for begin in [*(reason[:end] for end in reversed(ends)), reason]:
        if found := _nearest(begin, spaces):
            return f"did you mean {spaces[found]}?"
    return None


def _meant(word: str, known: Iterable[str]) -> str | None:
    found = _nearest(word, known)
    return f"did you mean {found}?" if found else None


def _nearest(word: str, known: Iterable[str]) -> str | None:
    """The most alike, whatever the case of its letters."""
    folded = {one.casefold(): one for one in known}
    found = get_close_matches(word.casefold(), folded, n=1, cutoff=ALIKE)
    return folded[found[0]] if found else None


def _named(what: str, known: Iterable[str]) -> str:
    listed = list(dict.fromkeys(known))
    more = ", ..." if len(listed) > MOST_NAMED else ""
    return f"the routes name the {what} {', '.join(listed[:MOST_NAMED])}{more}"
