"""A newer configuration is taken whole, or not at all and with a reason."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs
from tests.virtual import in_virtual_time, pass_time

from holdshort.settings import Config, load_config
from holdshort.stream.errors import Fatal
from holdshort.stream.reload import WATCH_S, RefusedError, Reload, needs_restart
from holdshort.telemetry.logs import Event, logger

TWO = "teams: {a: {}, b: {}}\ndefault_team: a\n"
OTHER = "teams: {a: {}, b: {}}\ndefault_team: b\n"
LOOKS = 2 * WATCH_S + 0.1


@dataclass
class Followed:
    """A file that is followed, what was adopted from it, and what would be said of a newer one."""

    file: Path
    log: list[Any] = field(default_factory=list)
    adopted: list[Config] = field(default_factory=list)
    trouble: Exception | None = None

    def __post_init__(self) -> None:
        self.reload = Reload(self.file, load_config(self.file), self.check, self.adopted.append, logger())

    async def check(self, config: Config) -> None:
        if self.trouble is not None:
            raise self.trouble

    async def write(self, text: str, seconds: float = LOOKS) -> None:
        self.file.write_text(text)
        await pass_time(seconds)

    def told(self, event: Event) -> list[Any]:
        return [one for one in self.log if one["event"] == event]

    def refused(self) -> bool:
        return self.reload.refused is not None

    @property
    def in_force(self) -> bool:
        """Whether what stands in the file is what is in force."""
        return self.reload.digest == sha256(self.file.read_bytes()).hexdigest()[:12]


def following(scenario: Callable[[Followed], Awaitable[None]]) -> Callable[[Path], None]:
    """A test in virtual time with a file that is followed."""

    @wraps(scenario)
    def test(tmp_path: Path) -> None:
        async def main() -> None:
            file = tmp_path / "holdshort.yaml"
            file.write_text(TWO)
            with capture_logs() as log:
                followed = Followed(file, log)
                watch = asyncio.create_task(followed.reload.watch())
                await pass_time(0.1)
                await scenario(followed)
                watch.cancel()
                with suppress(asyncio.CancelledError):
                    await watch

        in_virtual_time(main())

    del test.__wrapped__
    return test


@following
async def test_what_is_in_force_at_start_is_told_and_not_adopted_again(followed: Followed) -> None:
    assert followed.in_force
    assert [one["digest"] for one in followed.told(Event.CONFIGURATION_TAKEN)] == [followed.reload.digest]
    assert followed.adopted == []


@following
async def test_a_change_is_taken_within_two_looks(followed: Followed) -> None:
    await followed.write(OTHER)

    assert [config.default_team for config in followed.adopted] == ["b"]
    assert followed.in_force
    assert len(followed.told(Event.CONFIGURATION_TAKEN)) == 2


@following
async def test_a_file_that_is_being_written_is_not_taken_by_halves(followed: Followed) -> None:
    for end in range(len(OTHER)):
        await followed.write(OTHER[:end], WATCH_S)
    assert followed.adopted == []

    await followed.write(OTHER)
    assert [config.default_team for config in followed.adopted] == ["b"]
    assert followed.told(Event.CONFIGURATION_REFUSED) == []


@following
async def test_who_asks_does_not_wait_and_is_told_in_any_case(followed: Followed) -> None:
    followed.file.write_text(OTHER)
    followed.reload.ask()
    await pass_time(0.1)
    assert len(followed.adopted) == 1

    followed.reload.ask()
    await pass_time(0.1)
    assert len(followed.adopted) == 1
    assert len(followed.told(Event.CONFIGURATION_TAKEN)) == 3


@following
async def test_a_link_that_is_swapped_is_a_change(followed: Followed) -> None:
    """As Kubernetes updates a ConfigMap: a link to another directory, of the same size and any time."""
    directory = followed.file.parent
    (directory / "one").mkdir()
    (directory / "two").mkdir()
    (directory / "one" / "file").write_text(TWO)
    (directory / "two" / "file").write_text(OTHER)
    (directory / "data").symlink_to("one")
    followed.file.unlink()
    followed.file.symlink_to("data/file")
    await pass_time(LOOKS)
    assert followed.adopted == []

    (directory / "swapped").symlink_to("two")
    (directory / "swapped").rename(directory / "data")
    await pass_time(LOOKS)
    assert [config.default_team for config in followed.adopted] == ["b"]


@following
async def test_a_wrong_file_is_told_once_and_the_configuration_before_it_stays(followed: Followed) -> None:
    before = followed.reload.digest
    await followed.write("teams: {a: {}}\ndefault_team: nobody\n", 20 * WATCH_S)

    (refused,) = followed.told(Event.CONFIGURATION_REFUSED)
    assert "team 'nobody' is routed to but not listed under teams" in refused["reason"]
    assert refused["in_force"] == before == followed.reload.digest
    assert followed.refused()
    assert followed.adopted == []

    await followed.write(TWO)
    assert not followed.refused()
    assert followed.told(Event.CONFIGURATION_TAKEN)[-1]["digest"] == before


@following
async def test_a_file_that_is_gone_is_told_and_changes_nothing(followed: Followed) -> None:
    text = followed.file.read_text()
    followed.file.unlink()
    await pass_time(20 * WATCH_S)
    assert [one["reason"] for one in followed.told(Event.CONFIGURATION_REFUSED)] == [
        f"{followed.file}: No such file or directory"
    ]

    await followed.write(text)
    assert not followed.refused()
    assert followed.adopted == []


@pytest.mark.parametrize("trouble", [RefusedError("not now"), Fatal("not now")])
def test_what_does_not_fit_the_cluster_is_tried_again_until_it_does(
    tmp_path: Path, trouble: Exception
) -> None:
    @following
    async def test(followed: Followed) -> None:
        followed.trouble = trouble
        await followed.write(OTHER, 20 * WATCH_S)
        assert [one["reason"] for one in followed.told(Event.CONFIGURATION_REFUSED)] == ["not now"]
        assert followed.adopted == []

        followed.trouble = None
        await pass_time(LOOKS)
        assert len(followed.adopted) == 1
        assert followed.in_force

    test(tmp_path)


@following
async def test_a_comment_is_another_digest_and_nothing_to_adopt(followed: Followed) -> None:
    await followed.write(TWO + "# nothing\n")
    assert followed.adopted == []
    assert followed.in_force


@following
async def test_true_is_another_value_than_one(followed: Followed) -> None:
    routes = "routes: [{{metadata: {{n: {}}}, team: a}}]\n"
    await followed.write(TWO + routes.format("1"))
    await followed.write(TWO + routes.format("true"))
    assert len(followed.adopted) == 2


def test_without_a_file_there_is_nothing_to_read_again() -> None:
    async def main() -> None:
        async def check(_: Config) -> None: ...

        reload = Reload(None, Config(), check, lambda _: None, logger())
        watch = asyncio.create_task(reload.watch())
        await pass_time(1)
        reload.ask()
        await pass_time(1)
        watch.cancel()

    with capture_logs() as log:
        in_virtual_time(main())
    assert [one["reason"] for one in log] == ["there is no file: HOLDSHORT_CONFIG is not set"]


# -- what needs a restart -----------------------------------------------------------------------------------

BEFORE = """
agents: {a: {}, b: {}}
default_agent: a
teams: {x: {max_open: 3}, y: {}}
routes: [{reason: "p:*", team: x}]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("b: {}}", "b: {cancel: unsafe, resume: replay}, c: {}}", []),
        ("y: {}", "y: {groups: {leads: [ann]}}, z: {max_open: 1}", []),
        ("max_open: 3", "max_open: 4", []),
        ("default_agent: a", "default_agent: b", []),
        ("team: x}", "team: y, ttl: 1h}, {tool: t, team: x}", []),
        (", b: {}", "", ["agents.b is gone"]),
        (", y: {}", "", ["teams.y is gone"]),
        ("{max_open: 3}", "{}", ["teams.x.max_open is new or gone"]),
        ("y: {}", "y: {max_open: 1}", ["teams.y.max_open is new or gone"]),
        (
            "default_agent: a",
            "run_lease: 1h\nlimits: {input: 64KiB}",
            ["run_lease has changed", "limits has changed"],
        ),
    ],
)
def test_what_a_running_process_cannot_take_is_named(old: str, new: str, said: list[str]) -> None:
    assert old in BEFORE
    before, after = (
        Config.model_validate(yaml.safe_load(text)) for text in (BEFORE, BEFORE.replace(old, new))
    )

    assert list(needs_restart(before, after)) == said
