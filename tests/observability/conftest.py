"""Prometheus for the tests here; its absence is said clearly, and is an error in CI."""

import os
from collections.abc import Callable

import pytest
from tests.observability.prometheus import CannotBeHadError, program


@pytest.fixture(scope="session")
def prometheus_program() -> Callable[[str], str]:
    """The path of `prometheus` or `promtool`."""
    try:
        program("promtool")
    except CannotBeHadError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return program
