"""How to reach the cluster: one set of words, told to both client libraries in theirs."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdshort.settings import KafkaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A cluster and who we are there. Passwords never appear in its repr."""

    bootstrap_servers: str
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_ca_file: Path | None = None
    ssl_cert_file: Path | None = None
    ssl_key_file: Path | None = None
    client_id: str = "holdshort"

    def for_aiokafka(self) -> dict[str, Any]:
        """Arguments that every aiokafka client takes."""
        known: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "client_id": self.client_id,
            "security_protocol": self.security_protocol,
        }
        if "SSL" in self.security_protocol:
            known["ssl_context"] = self._ssl_context()
        if "SASL" in self.security_protocol:
            known["sasl_mechanism"] = self.sasl_mechanism or "SCRAM-SHA-512"
            known["sasl_plain_username"] = self.sasl_username
            known["sasl_plain_password"] = self.sasl_password
        return known

    def _ssl_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ssl_ca_file)
        if self.ssl_cert_file:
            context.load_cert_chain(self.ssl_cert_file, self.ssl_key_file)
        return context

    def for_librdkafka(self) -> dict[str, Any]:
        """Settings of confluent-kafka, which does what aiokafka's admin client cannot."""
        known: Mapping[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": self.client_id,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": (self.sasl_mechanism or "SCRAM-SHA-512") if self.sasl_username else None,
            "sasl.username": self.sasl_username,
            "sasl.password": self.sasl_password,
            "ssl.ca.location": self.ssl_ca_file and str(self.ssl_ca_file),
            "ssl.certificate.location": self.ssl_cert_file and str(self.ssl_cert_file),
            "ssl.key.location": self.ssl_key_file and str(self.ssl_key_file),
        }
        return {name: value for name, value in known.items() if value is not None}


def connection_of(kafka: KafkaSettings, client_id: str) -> Connection:
    return Connection(
        bootstrap_servers=kafka.bootstrap_servers,
        security_protocol=kafka.security_protocol,
        sasl_mechanism=kafka.sasl_mechanism,
        sasl_username=kafka.sasl_username,
        sasl_password=kafka.password(),
        ssl_ca_file=kafka.ssl_ca_file,
        ssl_cert_file=kafka.ssl_cert_file,
        ssl_key_file=kafka.ssl_key_file,
        client_id=client_id,
    )
