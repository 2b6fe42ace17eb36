"""Names of threads and people as keyed hashes, where the audit is to hold none (`audit.hash_ids`). Pure."""

import hmac
from collections.abc import Mapping
from typing import Any, Final

MARK: Final = "hmac:"  # before every hash, so that none is taken for a name
_PEOPLE: Final = ("principal", "decidedBy")
_IDS: Final = ("runId", "interruptId", "decisionId")


def names_of(thread: str | None, key: "HashKey | None") -> frozenset[str] | None:
    """The names under which a thread may stand in the audit: its own and, with the key, its hash."""
    if thread is None:
        return None
    return frozenset({thread} if key is None else {thread, key.thread(thread)})


class HashKey:
    """The key; it shows itself nowhere. Without it nobody can tell which thread or person a hash is of."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "HashKey(...)"

    def thread(self, name: str) -> str:
        return self._hashed(b"thread", name)

    def person(self, name: str) -> str:
        return self._hashed(b"person", name)

    def _hashed(self, kind: bytes, name: str) -> str:
        """HMAC-SHA-256 of the kind, a zero byte and the name in UTF-8, in hexadecimal."""
        text = kind + b"\0" + name.encode(errors="surrogatepass")
        return MARK + hmac.digest(self._key, text, "sha256").hex()

    def hidden(self, thread: str, members: Mapping[str, Any]) -> dict[str, Any]:
        """A record of the audit without names of people, and without the thread's in place of another id.

        Some frameworks use a thread's id as the id of its interrupts, some clients as that of a run.
        """
        return {name: self._hidden(thread, name, value) for name, value in members.items()}

    def _hidden(self, thread: str, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self.hidden(thread, one) if isinstance(one, dict) else one for one in value]
        if name in _PEOPLE and isinstance(value, str):
            return self.person(value)
        return self.thread(thread) if name in _IDS and value == thread else value
