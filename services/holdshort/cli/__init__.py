"""The holdshort executable: what surrounds every command. The commands are listed in commands.py."""

import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdshort.cli.commands import app as app


def __getattr__(name: str) -> Any:
    """`app`, which only now is imported: `main` must come before that."""
    if name != "app":
        raise AttributeError(name)
    from holdshort.cli.commands import app  # noqa: PLC0415 - see above

    return app


def main() -> None:
    """Run the command line; users' mistakes end in a sentence, not in a trace."""
    try:
        _commands()()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if type(error).__name__ not in _MISTAKES:
            raise
        sys.stderr.write(f"holdshort: {error}\n")
        sys.exit(2)


def _commands() -> Any:
    """The application. Ctrl-C while it is imported ends us silently: nothing is there to stop in order."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from holdshort.cli.commands import app  # noqa: PLC0415 - see above

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return app


_MISTAKES = {
    "ConnectOnceError",
    "Fatal",
    "InstallExtraError",
    "MeasureAgainError",
    "MendSettingsError",
    "MendTranscriptError",
    "ReadLogError",
    "UseAnotherDirectoryError",
}
