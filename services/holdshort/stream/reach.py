"""Whether a broker lets us in, and if not, why: in one sentence, where clients would try again for ever."""

import asyncio
import ssl
from typing import Any, Final

from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal

PATIENCE_MS: Final = 5_000
GOODBYE_S: Final = 0.5
# The length of an answer, if it is the alert with which TLS answers plain text (RFC 8446, 5.1: 21, 3, ...).
_TLS_ALERT: Final = range(0x15_03_00_00, 0x15_04_00_00)


async def reach(connection: Connection) -> None:
    """Knock at the bootstrap servers until one lets us in.

    Raises Fatal if each of them refuses us for a reason that no waiting mends. What may pass, such as a
    broker that is not up yet, raises nothing: whoever comes next has the patience for it.
    """
    reasons = []
    for host, port in connection.servers:
        try:
            await _knock(connection, host, port)
        except (KafkaError, OSError, TimeoutError) as error:
            reason = _why(error, connection)
            if reason is None:
                return
            reasons.append(f"{host}:{port} {reason}")
        else:
            return
    raise Fatal(f"Kafka cannot be used: {reasons[0]}")


async def _knock(connection: Connection, host: str, port: int) -> None:
    known = connection.for_aiokafka()
    del known["bootstrap_servers"]
    client: Any = AIOKafkaConnection(host, port, request_timeout_ms=PATIENCE_MS, **known)
    try:
        await client.connect()
        await client.send(MetadataRequest([]))
    except (KafkaError, TimeoutError):
        await _hang_up(client)
        raise
    await _hang_up(client)


async def _hang_up(client: Any) -> None:
    """Closing is not over at once, and a loop may end before it is."""
    await asyncio.wait([client.close()], timeout=GOODBYE_S)


def _why(error: Exception, connection: Connection) -> str | None:
    match error:
        case SaslAuthenticationFailed():
            who = connection.sasl_username or "us"
            return f"does not let {who} in: {error.args[0] if error.args else 'no reason given'}"
        case UnsupportedSaslMechanismError():
            return f"does not offer {connection.sasl_mechanism} (KAFKA_SASL_MECHANISM)"
        case IllegalSaslStateError():
            return f"does not speak SASL, so not {_protocol(connection)}"
        case ssl.SSLCertVerificationError():
            return f"has a certificate that we do not trust: {error.verify_message} (KAFKA_SSL_CA_FILE)"
        case KafkaConnectionError(__cause__=ssl.SSLError() as refusal):
            return f"does not take our certificate: {refusal.reason or refusal} (KAFKA_SSL_CERT_FILE)"
        case KafkaConnectionError(__cause__=asyncio.IncompleteReadError(expected=length)):
            return _cut_off(length or 0, connection)
        case ssl.SSLError() | ConnectionResetError() | ConnectionAbortedError() if connection.tls:
            return (
                f"breaks off the TLS handshake, as a port without TLS does; we speak {_protocol(connection)}"
            )
    return None


def _cut_off(length: int, connection: Connection) -> str | None:
    if length in _TLS_ALERT:
        return f"speaks TLS, so not {_protocol(connection)}"
    if not connection.sasl:
        return f"breaks off, as a port does that asks for a name by SASL; we speak {_protocol(connection)}"
    return None


def _protocol(connection: Connection) -> str:
    return f"{connection.security_protocol} (KAFKA_SECURITY_PROTOCOL)"
