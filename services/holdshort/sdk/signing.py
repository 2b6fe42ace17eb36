"""A person's key, and what they sign with it: decisions that the router and the agent can both check.

    signer = Signer.from_pem(Path("ann.pem").read_bytes(), key_id="ann-2027", decider="ann@example.com")
    record = signer.signed(decision_record(approval, decision, now), approval)

What is signed is what the approval shows, by its own content: a digest that is not that of what it shows is
refused here, for a signature under something unseen is worse than none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from holdshort.contract.statement import SIGNATURE, Statement, payload_digest, shown_digest, sign
from holdshort.sdk.approvals import Approval


class CannotSignError(ValueError):
    """The key is not one to sign with, or the decision and what was shown do not fit together."""


@dataclass(frozen=True, slots=True, repr=False)
class Signer:
    """The private key of one person.

    key_id        the name of its public half in the team's configuration
    decider       whose it is; stands in decisions as `decidedBy`
    installation  the `installation` of the router's configuration
    """

    key: Ed25519PrivateKey
    key_id: str
    decider: str
    installation: str = "holdshort"

    @classmethod
    def from_pem(
        cls,
        pem: bytes,
        *,
        key_id: str,
        decider: str,
        installation: str = "holdshort",
        password: bytes | None = None,
    ) -> "Signer":
        """Read a private key (PKCS 8). Raises CannotSignError."""
        try:
            key = load_pem_private_key(pem, password)
        except (ValueError, TypeError) as error:
            raise CannotSignError("the file holds no private key, or its password is another") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise CannotSignError("the key is not an Ed25519 key")
        return cls(key, key_id, decider, installation)

    @property
    def public(self) -> str:
        """The public half as PEM, for the team's configuration."""
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def signed(self, record: Mapping[str, Any], approval: Approval) -> dict[str, Any]:
        """A decision.v1 about this approval, by this person, with a signature. Raises CannotSignError."""
        tool = None if approval.tool is None else approval.tool.model_dump(by_alias=True)
        if shown_digest(approval.interrupt, tool) != approval.digest:
            raise CannotSignError("the approval's digest is not that of what it shows")
        whole = {**record, "decidedBy": self.decider}
        return {**whole, "resume": [self._entry(entry, whole, approval) for entry in record["resume"]]}

    def _entry(
        self, entry: Mapping[str, Any], record: Mapping[str, Any], approval: Approval
    ) -> dict[str, Any]:
        status, payload = _answer(entry, record, approval)
        statement = Statement(
            aud=self.installation,
            thread_id=approval.thread_id,
            generation=approval.generation,
            interrupted_run_id=approval.interrupted_run_id,
            interrupt_id=approval.interrupt_id,
            digest=approval.digest,
            status=status,
            payload_digest=payload,
            decided_by=self.decider,
            decided_at=record["decidedAt"],
            decision_id=record["decisionId"],
        )
        metadata = {**entry.get("metadata", {}), SIGNATURE: sign(statement, self.key, self.key_id)}
        return {**entry, "metadata": metadata}


def _answer(
    entry: Mapping[str, Any], record: Mapping[str, Any], approval: Approval
) -> tuple[Literal["resolved", "cancelled"], str | None]:
    """What is answered, and the digest of its payload: of a confirm, the answer that is said again."""
    if entry["interruptId"] != approval.interrupt_id:
        raise CannotSignError("the decision answers another question than the one that was shown")
    said = (approval.previous or {}) if record.get("action") == "confirm" else entry
    if said.get("status") not in ("resolved", "cancelled"):
        raise CannotSignError("there is no answer to sign")
    if said["status"] == "cancelled":
        return "cancelled", None
    if "payload" not in said:
        return "resolved", None
    digest = payload_digest(said["payload"])
    if digest is None:
        raise CannotSignError("a payload is JSON, with integers that fit 53 bits")
    return "resolved", digest
