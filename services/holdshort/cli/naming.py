"""How words are taken: a name that somebody else chose may begin with a hyphen; help needs nothing else."""

from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

APPROVAL_ID: Final = 22  # characters of base64url: one in 64 begins with a hyphen


class Named(TyperCommand):
    """A command whose argument may begin with a hyphen.

    A typing mistake such as --jsn is told as one all the same; behind `--` everything is a name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.ignore_unknown_options = ctx.allow_extra_args = True
        anything = "--" in args
        left: list[str] = super().parse_args(ctx, args)
        names = [one.name for one in self.params if one.param_type_name == "argument"]
        for word in (*(str(ctx.params.get(name) or "") for name in names), *left):
            if word.startswith("--") and len(word) != APPROVAL_ID and not anything:
                ctx.fail(f"No such option: {word}")
        if left:
            ctx.fail(f"one name is enough, {' '.join(left)} is too much")
        return left


class Helpful(TyperGroup):
    """A group that asks for options of its own, and whose commands tell their --help without them."""

    def invoke(self, ctx: Any) -> Any:
        words = [*ctx._protected_args, *ctx.args]  # noqa: SLF001 - as `invoke` of click takes them
        if "--help" in words:
            name, command, left = self.resolve_command(ctx, words)
            if command is not None:
                command.make_context(name, left, parent=ctx).close()  # tells it and ends, if it is meant so
        return super().invoke(ctx)
