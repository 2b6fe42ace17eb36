"""The Helm of the tests, or why there is none."""

import os
from pathlib import Path

import pytest
from tests.helm.binary import CannotBeBuiltError, helm


@pytest.fixture(scope="session")
def program() -> Path:
    """The real Helm, built if it was not; without a network the tests are skipped, except in CI."""
    try:
        return helm()
    except CannotBeBuiltError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"Helm cannot be built here: {error}")
