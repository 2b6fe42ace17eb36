"""How long properties are searched: quickly, or `HOLDSHORT_TEST_PROFILE=thorough` for long runs."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HOLDSHORT_TEST_PROFILE", "quick")
CALM = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("quick", max_examples=150, deadline=None, suppress_health_check=CALM)
settings.register_profile("thorough", max_examples=10_000, deadline=None, suppress_health_check=CALM)
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A thorough search takes as long as it takes."""
    if PROFILE == "thorough":
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.timeout(0))
