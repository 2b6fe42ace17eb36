"""The short form of the soak: all kinds of people and of kills, nothing open, nothing unexplained."""

from typing import Final

import pytest
from tests.soak.run import soak
from tests.soak.world import VICTIMS

pytestmark = [pytest.mark.slow, pytest.mark.system, pytest.mark.broker, pytest.mark.timeout(300)]

PAUSES: Final = 300
SEED: Final = 20261130


async def test_three_hundred_pauses_end_and_every_receipt_is_explained(bootstrap_servers: str) -> None:
    said: list[str] = []

    result = await soak(PAUSES, SEED, {"KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers}, said.append)

    assert result.findings == [], f"{result.directory}: {result.figures}"
    assert result.figures["pauses"].endswith(f"{PAUSES} over")
    assert all(f"{victim} killed" in result.figures["kills"] for victim in VICTIMS), result.figures
