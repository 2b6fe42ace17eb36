"""What a person signs about one interrupt, and a signature as compact JWS with Ed25519 (router 3).

A signature covers the whole of a decision about one interrupt: which installation, thread, pause and
question, what was shown, what was answered, by whom, when, and under which decisionId. The router checks it,
and it travels with the answer, so that the agent can check it again.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec
import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from holdshort.contract.canon import canonical, digest_of, sha256

SIGNATURE: Final = "holdshort:signature"  # a member of an entry's metadata
ALGORITHMS: Final = ("EdDSA", "Ed25519")  # the name of RFC 8037, and that of RFC 9864
LONGEST: Final = 8192


class Statement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is signed; `digest` is that of the approval, `payload_digest` None for no payload or a cancel."""

    aud: str
    thread_id: str
    generation: int
    interrupted_run_id: str
    interrupt_id: str
    digest: str
    status: Literal["resolved", "cancelled"]
    payload_digest: str | None
    decided_by: str
    decided_at: str
    decision_id: str


class Signed(NamedTuple):
    """A compact JWS, taken apart; nothing of it is proved before `verified`."""

    key_id: str
    statement: Statement
    signing_input: bytes
    signature: bytes

    def verified(self, public: bytes) -> bool:
        """Whether the holder of that key's private half has signed exactly this."""
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(self.signature, self.signing_input)
        except (InvalidSignature, ValueError):
            return False
        return True


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The protected header: nothing is taken that could change how the rest is read (`crit`, `b64`)."""

    alg: str
    kid: str
    typ: str | None = None


def payload_digest(payload: Any) -> str | None:
    """SHA-256 (hexadecimal) of a payload's canonical form (RFC 8785); None if it has none."""
    form = canonical(payload)
    return None if form is None else sha256(form)


def shown_digest(descriptor: Mapping[str, Any], tool: Mapping[str, Any] | None) -> str:
    """The digest of what is shown for an interrupt: descriptor, tool, arguments, as approval.v1 has them."""
    known = None if tool is None else {name: one for name, one in tool.items() if one is not None}
    return digest_of({"descriptor": descriptor, "tool": known})


def sign(statement: Statement, key: Ed25519PrivateKey, key_id: str) -> str:
    """The compact JWS of a statement."""
    header = {"alg": ALGORITHMS[0], "kid": key_id}
    payload = canonical(msgspec.to_builtins(statement))
    assert payload is not None, "a statement holds texts and a generation"
    signing_input = b".".join((_encoded(orjson.dumps(header)), _encoded(payload)))
    return b".".join((signing_input, _encoded(key.sign(signing_input)))).decode()


def read_signed(token: Any) -> Signed | None:
    """Take a compact JWS apart; None for anything that is not one of ours."""
    if not isinstance(token, str) or len(token) > LONGEST or token.count(".") != 2 or not token.isascii():
        return None
    header, payload, signature = token.encode().split(b".")
    try:
        about = msgspec.json.decode(_decoded(header), type=_Header)
        statement = msgspec.json.decode(_decoded(payload), type=Statement)
        signed = Signed(about.kid, statement, header + b"." + payload, _decoded(signature))
    except (msgspec.MsgspecError, UnicodeDecodeError, Error, ValueError):
        return None
    return signed if about.alg in ALGORITHMS else None


def _encoded(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


def _decoded(text: bytes) -> bytes:
    """Base64url without padding, in its one form: a second text of the same bytes is another signature."""
    raw = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    if _encoded(raw) != text:
        raise ValueError("not the one form of base64url")
    return raw
