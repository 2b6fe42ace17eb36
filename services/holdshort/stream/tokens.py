"""A bearer token out of a file, for both client libraries; whoever renews it replaces the file."""

import asyncio
import base64
import binascii
import time
from pathlib import Path
from typing import Any, Final

import orjson
from aiokafka.abc import AbstractTokenProvider

OPAQUE_S: Final = 300.0  # a token that does not say when it expires is read again this often


class FileTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is untyped
    """Reads the file whenever a client asks; without a token it raises OSError, and there is no connection.

    aiokafka asks for each new connection. A broker closes a connection whose token has expired, and the next
    one brings the token that is there by then.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    async def token(self) -> str:
        return await asyncio.to_thread(self._read)

    def for_librdkafka(self, _: str) -> tuple[str, float]:
        """The token, and when it expires (s since the epoch); asked for again at four fifths of that time."""
        token = self._read()
        return token, _expiry(token) or time.time() + OPAQUE_S

    def _read(self) -> str:
        token = self._file.read_text("ascii", "replace").strip()
        if not token:
            raise OSError(f"{self._file} is empty")
        return token


def _expiry(token: str) -> float | None:
    """The `exp` of a JSON Web Token (RFC 7519, 4.1.4); None for any other token."""
    _, _, rest = token.partition(".")
    payload = rest.partition(".")[0]
    try:
        claims: Any = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (binascii.Error, ValueError, TypeError, KeyError):
        return None
