"""The configuration in force, and how a newer one takes its place without a restart (decision 0011).

The file is looked at every few seconds and on SIGHUP. A newer configuration is checked whole before anything
changes: it is taken as a whole, or the one in force stays and the log says why. What was refused is tried
again at every look, since topics may have been made meanwhile, and told once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Never

from holdshort.settings import Config, MendSettingsError, config_of, content_of
from holdshort.stream.errors import Fatal
from holdshort.telemetry.logs import Event

WATCH_S: Final = 2.0
CHANGEABLE: Final = frozenset(
    {"agents", "default_agent", "teams", "default_team", "routes", "trust_principal", "deadline_margin"}
)


class RefusedError(Exception):
    """A configuration that is not taken; the text says why, a sentence each."""


def needs_restart(before: Config, after: Config) -> Iterator[str]:
    """What of a newer configuration cannot be taken by a process that runs, one sentence each.

    Open pauses need the topics of their agent and their team, so neither goes away by itself. States are kept
    with what they count for and when they are due, so whatever says that stays, too: limits, leases, and
    whether a team has a `max_open` at all.
    """
    for name in Config.model_fields:
        if name not in CHANGEABLE and getattr(before, name) != getattr(after, name):
            yield f"{name} has changed"
    for what in ("agents", "teams"):
        for name in sorted(getattr(before, what).keys() - getattr(after, what).keys()):
            yield f"{what}.{name} is gone"
    for name in sorted(before.teams.keys() & after.teams.keys()):
        if (before.teams[name].max_open is None) != (after.teams[name].max_open is None):
            yield f"teams.{name}.max_open is new or gone"


def digest_of(content: bytes) -> str:
    """The first 12 digits of what `sha256sum` says of the file."""
    return sha256(content).hexdigest()[:12]


class Reload:
    """Follows one configuration file.

    `check` raises RefusedError or Fatal for a configuration that cannot be taken, `adopt` puts one in force;
    nothing is awaited between the two.
    """

    def __init__(
        self,
        file: Path | None,
        config: Config,
        check: Callable[[Config], Awaitable[None]],
        adopt: Callable[[Config], None],
        log: Any,
    ) -> None:
        self.config = config
        self.digest = ""
        self.refused: str | None = None
        self._file = file
        self._check = check
        self._adopt = adopt
        self._log = log
        self._told: tuple[bytes | None, str] | None = None
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Look now, and say what became of it (SIGHUP)."""
        self._asked.set()

    async def watch(self) -> None:
        """Follow the file until cancelled. A change counts when two looks have seen the same, or when asked:
        a file that is being written is not taken by halves.
        """
        if self._file is None:
            await self._say_there_is_none()
        asked, before = True, None
        while True:
            content = self._read()
            if content is not None and (asked or content == before):
                await self._consider(content, aloud=asked)
            before = content
            asked = await self._next_look()

    async def _say_there_is_none(self) -> Never:
        while True:
            await self._asked.wait()
            self._asked.clear()
            self._log.warning(
                Event.CONFIGURATION_REFUSED, reason="there is no file: HOLDSHORT_CONFIG is not set"
            )

    async def _next_look(self) -> bool:
        """Whether somebody asked for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WATCH_S):
                await self._asked.wait()
        asked = self._asked.is_set()
        self._asked.clear()
        if asked:
            self._told = None
        return asked

    def _read(self) -> bytes | None:
        """What stands in the file; it is small and at hand, so the loop waits for it."""
        assert self._file is not None
        try:
            return content_of(self._file)
        except MendSettingsError as error:
            self._refuse(None, str(error))
            return None

    async def _consider(self, content: bytes, *, aloud: bool) -> None:
        """Take this content, or say why not; what is in force already is told only if asked (`aloud`)."""
        assert self._file is not None
        digest = digest_of(content)
        if digest != self.digest:
            try:
                config = config_of(content, self._file)
                if not _same(config, self.config):
                    await self._check(config)
                    self._adopt(config)
            except (MendSettingsError, RefusedError, Fatal, RecursionError) as why:
                self._refuse(content, str(why))
                return
            self.config, self.digest, aloud = config, digest, True
        if aloud or self.refused is not None:
            self._log.info(Event.CONFIGURATION_TAKEN, digest=digest)
        self.refused, self._told = None, None

    def _refuse(self, content: bytes | None, why: str) -> None:
        self.refused = why
        if self._told != (content, why):
            self._told = content, why
            digest = None if content is None else digest_of(content)
            self._log.error(Event.CONFIGURATION_REFUSED, reason=why, digest=digest, in_force=self.digest)


def _same(one: Config, other: Config) -> bool:
    """Whether two files say the same, however they are written; 1 is not true."""
    return one.model_dump_json(exclude_unset=True) == other.model_dump_json(exclude_unset=True)
