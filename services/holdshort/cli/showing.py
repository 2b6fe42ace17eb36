"""What others wrote, at a terminal: plain text, times, durations and tables; and JSON for programs.

Agents and clients choose messages, arguments and ids. Whatever could move the cursor, colour, hide or
reorder text is shown as its code: what a person approves must be what they see.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import typer

_UNSHOWABLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_WIDE: Final = 200


def plain(text: str, *, lines: bool = False) -> str:
    """The text with what cannot be shown as \\u{...}; with `lines`, line ends and tabs stay."""
    kept = "\n\t" if lines else ""
    return "".join(
        one if one in kept or unicodedata.category(one) not in _UNSHOWABLE else f"\\u{{{ord(one):x}}}"
        for one in text
    )


def short(text: str, most: int = 60) -> str:
    """At most so many characters of a text, on one line."""
    shown = plain(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def moment(ms: int | None) -> str:
    """A time in ms since the epoch, in UTC."""
    if ms is None:
        return "-"
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def span(ms: int) -> str:
    """A duration in its two largest units."""
    seconds = abs(ms) // 1000
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds >= size or (unit == "s" and not parts):
            parts.append(f"{seconds // size}{unit}")
            seconds %= size
        if len(parts) == 2:
            break
    return " ".join(parts)


def until(ms: int | None, now: int) -> str:
    """When something is due, as people count: `in 5m`, `2h ago`."""
    if ms is None:
        return "-"
    return f"in {span(ms - now)}" if ms >= now else f"{span(now - ms)} ago"


def now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def pretty(value: Any, indent: int = 2) -> str:
    """JSON for people."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    return "\n".join(" " * indent + line for line in plain(text, lines=True).splitlines())


def echo_json(value: Any) -> None:
    """One line of JSON on stdout."""
    typer.echo(orjson.dumps(value))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; cells are shown as they are, never as markup."""
    from rich.console import Console  # noqa: PLC0415 - heavy
    from rich.table import Table  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415 - heavy

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=_WIDE)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console.print(table)


def print_facts(facts: Iterable[tuple[str, str]], indent: str = "") -> None:
    """Names and what they say, aligned; what is empty is left out."""
    known = [(name, text) for name, text in facts if text]
    width = max((len(name) for name, _ in known), default=0)
    for name, text in known:
        first, *others = plain(text, lines=True).splitlines() or [""]
        typer.echo(f"{indent}{name:{width}}  {first}")
        for line in others:
            typer.echo(f"{indent}{'':{width}}  {line}")
