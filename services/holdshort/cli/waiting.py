"""A sign of life: what a command waits for is said when it takes longer than people like to see nothing."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from holdshort.settings import KafkaSettings

SILENCE_S: Final = 2.0


@contextmanager
def waiting_for(kafka: KafkaSettings, tell: Callable[[str], object] | None = None) -> Iterator[None]:
    """Say once that Kafka is waited for, and where, if what is done inside takes longer than SILENCE_S.

    On stderr, unless `tell` is given; to be used while an event loop runs.
    """
    sentence = f"Waiting for Kafka at {kafka.bootstrap_servers} ..."
    told = asyncio.get_running_loop().call_later(SILENCE_S, tell or _on_stderr, sentence)
    try:
        yield
    finally:
        told.cancel()


def _on_stderr(sentence: str) -> None:
    sys.stderr.write(f"holdshort: {sentence}\n")
    sys.stderr.flush()
