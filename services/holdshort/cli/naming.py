"""Commands that take a name which somebody else chose: it may begin with a hyphen, and is no option then."""

from typing import Any, Final

from typer.core import TyperCommand

APPROVAL_ID: Final = 22  # characters of base64url: one in 64 begins with a hyphen


class Named(TyperCommand):
    """A command whose argument `name` may begin with a hyphen.

    A typing mistake such as --jsn is told as one all the same; behind `--` everything is a name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.ignore_unknown_options = ctx.allow_extra_args = True
        anything = "--" in args
        left: list[str] = super().parse_args(ctx, args)
        for word in (str(ctx.params.get("name") or ""), *left):
            if word.startswith("--") and len(word) != APPROVAL_ID and not anything:
                ctx.fail(f"No such option: {word}")
        if left:
            ctx.fail(f"one name is enough, {' '.join(left)} is too much")
        return left
