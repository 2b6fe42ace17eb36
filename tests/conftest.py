"""What every test may use: one real Kafka a run, and its absence said clearly."""

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from holdshort.stream.embedded import ConnectOnceError, EmbeddedKafka

T = TypeVar("T")

# Ctrl-C reaches the programs that tests start, also when a shell has started the tests in its background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _Background:
    """An event loop in a thread of its own, for what outlives the loops of single tests."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="session")
def bootstrap_servers() -> Iterator[str]:
    """A real Kafka: the one of KAFKA_BOOTSTRAP_SERVERS, or an embedded one for the whole run."""
    if given := os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        yield given
        return
    background = _Background()
    kafka = EmbeddedKafka()
    try:
        background.run(kafka.start())
    except ConnectOnceError as error:
        background.stop()
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    yield kafka.bootstrap_servers
    background.run(kafka.stop())
    background.stop()
