"""How to reach the cluster: one set of words, told to both client libraries in theirs."""

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from holdshort.settings import KafkaSettings, MendSettingsError, read_secret
from holdshort.telemetry.logs import Event, logger

DEFAULT_PORT = 9092


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A cluster and who we are there. Passwords never appear in its repr."""

    bootstrap_servers: str
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "SCRAM-SHA-512"
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_oauth_token_file: Path | None = None
    ssl_ca_file: Path | None = None
    ssl_cert_file: Path | None = None
    ssl_key_file: Path | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    client_id: str = "holdshort"

    @property
    def tls(self) -> bool:
        return "SSL" in self.security_protocol

    @property
    def sasl(self) -> bool:
        return "SASL" in self.security_protocol

    @property
    def servers(self) -> list[tuple[str, int]]:
        """Host and port of each bootstrap server."""
        return [_host_and_port(server) for server in self.bootstrap_servers.split(",")]

    @property
    def overheard(self) -> list[str]:
        """Hosts beyond this machine that are spoken to without TLS."""
        return [] if self.tls else [host for host, _ in self.servers if not _is_loopback(host)]

    def for_aiokafka(self) -> dict[str, Any]:
        """Arguments that every aiokafka client takes. Raises MendSettingsError."""
        logging.getLogger("aiokafka.conn").addFilter(_without_credentials)
        known: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "client_id": self.client_id,
            "security_protocol": self.security_protocol,
        }
        if self.tls:
            known["ssl_context"] = self._ssl_context()
        if self.sasl:
            known["sasl_mechanism"] = self.sasl_mechanism
            known["sasl_plain_username"] = self.sasl_username
            known["sasl_plain_password"] = self.sasl_password
            if self.sasl_oauth_token_file is not None:
                from holdshort.stream.tokens import FileTokens  # noqa: PLC0415 - brings aiokafka

                known["sasl_oauth_token_provider"] = FileTokens(self.sasl_oauth_token_file)
        return known

    def for_librdkafka(self) -> dict[str, Any]:
        """Settings of confluent-kafka, which does what aiokafka's admin client cannot."""
        known: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": self.client_id,
            "security.protocol": self.security_protocol,
        }
        if self.tls:
            known |= {
                "ssl.ca.location": self.ssl_ca_file and str(self.ssl_ca_file),
                "ssl.certificate.location": self.ssl_cert_file and str(self.ssl_cert_file),
                "ssl.key.location": (key := self.ssl_key_file or self.ssl_cert_file) and str(key),
                "ssl.key.password": self.ssl_key_password,
            }
        if self.sasl:
            known["sasl.mechanism"] = self.sasl_mechanism
            known |= self._oauth_for_librdkafka() or {
                "sasl.username": self.sasl_username,
                "sasl.password": self.sasl_password,
            }
        return {name: value for name, value in known.items() if value is not None}

    def _oauth_for_librdkafka(self) -> Mapping[str, Any]:
        if self.sasl_mechanism != "OAUTHBEARER" or self.sasl_oauth_token_file is None:
            return {}
        from holdshort.stream.tokens import FileTokens  # noqa: PLC0415 - brings aiokafka

        return {"oauth_cb": FileTokens(self.sasl_oauth_token_file).for_librdkafka}

    # -- files ---------------------------------------------------------------------------------------------

    def check_files(self) -> None:
        """Raises MendSettingsError for a file that cannot be used: one sentence instead of a library's."""
        if self.sasl and self.sasl_oauth_token_file is not None:
            read_secret(self.sasl_oauth_token_file, "KAFKA_SASL_OAUTH_TOKEN_FILE")
        if self.tls:
            self._ssl_context()

    def _ssl_context(self) -> ssl.SSLContext:
        for variable, file in (
            ("KAFKA_SSL_CA_FILE", self.ssl_ca_file),
            ("KAFKA_SSL_CERT_FILE", self.ssl_cert_file),
            ("KAFKA_SSL_KEY_FILE", self.ssl_key_file),
        ):
            if file is not None:
                read_secret(file, variable)
        try:
            context = ssl.create_default_context(cafile=self.ssl_ca_file)
        except ssl.SSLError:
            raise MendSettingsError(f"KAFKA_SSL_CA_FILE: {self.ssl_ca_file} holds no certificate") from None
        if self.ssl_cert_file is not None:
            self._load_certificate(context, self.ssl_cert_file)
        return context

    def _load_certificate(self, context: ssl.SSLContext, certificate: Path) -> None:
        try:
            context.load_cert_chain(certificate, self.ssl_key_file, self._key_password)
        except ssl.SSLError as error:
            files = " and ".join(str(file) for file in (certificate, self.ssl_key_file) if file)
            raise MendSettingsError(
                f"KAFKA_SSL_CERT_FILE, KAFKA_SSL_KEY_FILE: {files} are no certificate with its key, "
                f"or the key's password is wrong ({error.reason or 'unreadable'})"
            ) from None

    def _key_password(self) -> str:
        """Asked for only if the key is encrypted; without this, Python would ask at the terminal."""
        if self.ssl_key_password is None:
            raise MendSettingsError(
                "KAFKA_SSL_KEY_PASSWORD_FILE: the private key is encrypted, name its password"
            )
        return self.ssl_key_password


def _without_credentials(record: logging.LogRecord) -> bool:
    """aiokafka logs every request at DEBUG; with PLAIN and OAUTHBEARER the password is in one of them."""
    return "SaslAuthenticate" not in record.getMessage()


def _host_and_port(server: str) -> tuple[str, int]:
    host, _, port = server.strip().rpartition(":")
    if not host or server.strip().endswith("]"):
        host, port = server.strip(), str(DEFAULT_PORT)
    if not port.isdecimal():
        raise MendSettingsError(f"KAFKA_BOOTSTRAP_SERVERS: {server!r} is not host:port")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def warn_if_overheard(connection: Connection) -> None:
    """Say so in the log: whoever is on the way can read everything, passwords of PLAIN, too."""
    if hosts := connection.overheard:
        logger().warning(Event.CONNECTION_NOT_ENCRYPTED, protocol=connection.security_protocol, hosts=hosts)


def connection_of(kafka: KafkaSettings, client_id: str) -> Connection:
    """The connection that the settings describe, its files looked at. Raises MendSettingsError."""
    connection = Connection(
        bootstrap_servers=kafka.bootstrap_servers,
        security_protocol=kafka.security_protocol,
        sasl_mechanism=kafka.sasl_mechanism,
        sasl_username=kafka.sasl_username,
        sasl_password=kafka.password(),
        sasl_oauth_token_file=kafka.sasl_oauth_token_file,
        ssl_ca_file=kafka.ssl_ca_file,
        ssl_cert_file=kafka.ssl_cert_file,
        ssl_key_file=kafka.ssl_key_file,
        ssl_key_password=kafka.key_password(),
        client_id=client_id,
    )
    connection.check_files()
    return connection
