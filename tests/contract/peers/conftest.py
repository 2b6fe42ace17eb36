"""The peers, each started once for all tests that ask it; without package registries they are left out."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contract.peers import made
from tests.contract.peers.peer import Peer


def _had(make: Callable[[], Path]) -> Path:
    """What was made; skipped where it cannot be had, but never in CI."""
    try:
        return make()
    except made.CannotBeMadeError as error:
        if os.environ.get("CI"):
            raise
        first, *_ = str(error).splitlines()
        pytest.skip(f"the packages of this peer cannot be had here: {first}")


@pytest.fixture(scope="session")
def clients() -> Iterator[Peer]:
    """The real clients of AG-UI and TanStack."""
    peer = Peer(made.node(), _had(made.node_driver))
    yield peer
    peer.stop()


@pytest.fixture(scope="session")
def strands() -> Iterator[Peer]:
    """A real Strands agent."""
    yield from _producer("strands_agent")


@pytest.fixture(scope="session")
def ag2() -> Iterator[Peer]:
    """A real AG2 agent."""
    yield from _producer("ag2_agent")


def _producer(module: str) -> Iterator[Peer]:
    peer = Peer(_had(made.producers_python), "-m", f"tests.contract.peers.producers.{module}")
    yield peer
    peer.stop()
