"""A bearer token out of a file: read again for each connection, renewed before it expires."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from holdshort.stream.tokens import OPAQUE_S, FileTokens


def web_token(claims: Any) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{middle}.c2ln"


async def test_what_the_file_holds_by_then_is_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = FileTokens(file)
    file.write_text("first\n")
    assert await tokens.token() == "first"

    file.write_text("second\n")

    assert await tokens.token() == "second"
    assert tokens.for_librdkafka("")[0] == "second"


def test_a_web_token_says_itself_when_it_expires(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(web_token({"sub": "a", "exp": 2_000_000_000.5}))

    assert FileTokens(file).for_librdkafka("") == (file.read_text(), 2_000_000_000.5)


@pytest.mark.parametrize(
    "token", ["opaque", "a.b.c", "a.@@@.c", web_token([]), web_token({"exp": None}), web_token({"sub": "a"})]
)
def test_another_token_is_asked_for_again_after_a_while(tmp_path: Path, token: str) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    before = time.time()

    _, expires = FileTokens(file).for_librdkafka("")

    assert before + OPAQUE_S <= expires <= time.time() + OPAQUE_S


async def test_without_a_token_there_is_an_error_and_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(FileNotFoundError):
        await FileTokens(file).token()

    file.write_text("\n")

    with pytest.raises(OSError, match="token is empty"):
        await FileTokens(file).token()
