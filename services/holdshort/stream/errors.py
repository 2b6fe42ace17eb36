"""What can go wrong, named after what has to be done next.

    StreamError
    ├── Retry    drop the producer and what is uncommitted, fence again, restore, go on
    ├── Fenced   somebody else owns the lane: drop everything, wait for an assignment
    ├── Halt     a human must look at this lane; the others go on
    └── Fatal    this process cannot be of use: exit non-zero

Whatever happens inside a transaction becomes one of these at one height, in task.py; nothing is guessed
from an error's text, and an outcome that is not known is always Retry: only the log knows.
"""

from collections.abc import Collection


class StreamError(Exception):
    """The base of them; never raised itself."""


class Retry(StreamError):  # noqa: N818 - named after the remedy, not as an error
    """Unknown or passing trouble: the log tells the truth after the next fence and restore."""


class Fenced(StreamError):  # noqa: N818 - named after the remedy, not as an error
    """The transactional id has a newer owner; nothing of ours can become visible any more."""


class Halt(StreamError):  # noqa: N818 - named after the remedy, not as an error
    """The lane cannot go on without losing or doubling something; `command` accepts the loss explicitly.

    With topics that are `missing`, the lane looks again by itself once all of them are there.
    """

    def __init__(
        self, reason: str, command: str | None = None, *, missing: Collection[str] = frozenset()
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.command = command
        self.missing = missing


class Fatal(StreamError):  # noqa: N818 - named after the remedy, not as an error
    """A condition that no restart of a lane can mend, such as topics that do not fit the configuration."""
