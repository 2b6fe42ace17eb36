"""A real Kafka with TLS, SASL and the authorizer on, certificates and users of its own, and who uses it."""

import argparse
import os
import secrets
import shlex
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import trustme
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from holdshort.settings import KafkaSettings, load_settings
from holdshort.stream.connection import connection_of
from holdshort.stream.embedded import EmbeddedKafka, Security, as_super_user, free_ports

SUPER_USER = "set-up"
PARTITIONS = 2
LANES = 2
CONFIG = """
agents: {default: {}, other: {}}
teams: {payments: {}, dba: {}}
routes:
  - {reason: "payments:*", team: payments}
default_team: dba
"""
PRINCIPALS = (
    *("gatekeeper", "router", "agent-default", "agent-other"),
    *("team-payments", "team-dba", "team-client", "team-unrouted"),
    *("client", "operator", "auditor", "tool", "admin"),
)
TOKEN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
SCRAM = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


class Certificates:
    """An authority, and what it signs, as PEM files in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._authority = trustme.CA()
        self.authority = directory / "authority.pem"
        self._authority.cert_pem.write_to_path(self.authority)

    def issue(self, name: str, *, file: str | None = None, password: str | None = None) -> Path:
        """A key (PKCS#8, as Java wants it) and its certificate for `name`, in one file."""
        leaf = self._authority.issue_cert("127.0.0.1", common_name=name)
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        path = self.directory / (file or f"{name}.pem")
        path.write_bytes(pem + b"".join(one.bytes() for one in leaf.cert_chain_pems))
        return path


def security(certificates: Certificates) -> Security:
    """Every protocol of Kafka at once; who is nobody (PLAINTEXT) may do nothing."""
    return Security(
        certificate=certificates.issue(SUPER_USER),
        authority=certificates.authority,
        super_user=SUPER_USER,
        protocols=("SASL_SSL", "SASL_PLAINTEXT", "PLAINTEXT"),
    )


def mechanisms(passwords: Mapping[str, str]) -> dict[str, str]:
    """SASL_SSL offers all that we know, with `passwords` for PLAIN; SASL_PLAINTEXT only SCRAM-SHA-256."""
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    return {
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN,OAUTHBEARER",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": TOKEN_MODULE,
    }


@dataclass(frozen=True, slots=True)
class Secured:
    """The Kafka, once started."""

    kafka: EmbeddedKafka
    certificates: Certificates
    plain_passwords: Mapping[str, str]
    admin: AdminClient

    @classmethod
    def started(cls, kafka: EmbeddedKafka, known: Certificates, passwords: Mapping[str, str]) -> "Secured":
        super_user = as_super_user(security(known))
        admin = AdminClient({"bootstrap.servers": kafka.servers("SSL"), "log_level": 0, **super_user})
        return cls(kafka, known, passwords, admin)

    def let_in(self, passwords: Mapping[str, str], mechanism: str = "SCRAM-SHA-512") -> None:
        """Make users, or give them other passwords; they count when this returns."""
        credential = ScramCredentialInfo(SCRAM[mechanism], 4096)
        for user, password in passwords.items():
            wanted = UserScramCredentialUpsertion(user, credential, password.encode())
            self.admin.alter_user_scram_credentials([wanted])[user].result(20)
        # What was changed last reaches the broker last; a client tries until it is let in.
        newest = AdminClient(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(self.certificates.authority),
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": password,
                "log_level": 0,
            }
        )
        newest.list_topics(timeout=20)

    def allow(self, script: str) -> None:
        """Give exactly the rights that `holdshort acls print` printed; they count when this returns."""
        given = bindings(script)
        for future in self.admin.create_acls(given).values():
            future.result(20)
        end = time.monotonic() + 20
        while not self.admin.describe_acls(_only(given[-1])).result(20):
            assert time.monotonic() < end, given[-1]

    def until_led(self, prefix: str) -> None:
        """Until groups have a coordinator, and every partition of these topics a leader that answers."""
        names = [name for name in self.admin.list_topics(timeout=20).topics if name.startswith(prefix)]
        places = [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]
        latest: Any = OffsetSpec.latest  # without annotations
        ends = {place: latest() for place in places}
        group = ConsumerGroupTopicPartitions("nobody")
        end = time.monotonic() + 20
        while any(
            future.exception(20)
            for future in (
                *self.admin.list_consumer_group_offsets([group], request_timeout=1).values(),
                *self.admin.list_offsets(ends, request_timeout=1).values(),
            )
        ):
            assert time.monotonic() < end


def _only(one: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        one.restype,
        one.name,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )


# -- what was printed ---------------------------------------------------------------------------------------


def commands(script: str, tool: str) -> Iterator[list[str]]:
    """The arguments of each call of a tool."""
    for line in script.splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == tool:
            yield words[1:]


def bindings(script: str) -> list[AclBinding]:
    """What Kafka's own tool would add."""
    return [one for arguments in commands(script, "kafka-acls.sh") for one in _bindings(arguments)]


def _bindings(arguments: Sequence[str]) -> Iterator[AclBinding]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    for option in ("--bootstrap-server", "--command-config", "--allow-principal"):
        parser.add_argument(option, required=True)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--resource-pattern-type", default="literal")
    for resource in ("topic", "group", "transactional-id"):
        parser.add_argument(f"--{resource}", action="append", default=[])
    told = parser.parse_args(list(arguments))
    for resource in ("topic", "group", "transactional_id"):
        for name in getattr(told, resource):
            for operation in told.operation:
                yield AclBinding(
                    ResourceType[resource.upper()],
                    name,
                    ResourcePatternType[told.resource_pattern_type.upper()],
                    told.allow_principal,
                    "*",
                    AclOperation["".join(f"_{c}" if c.isupper() else c for c in operation)[1:].upper()],
                    AclPermissionType.ALLOW,
                )


# -- an installation ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Site:
    """One installation on the secured Kafka: a prefix, a user with a password file for every principal."""

    secured: Secured
    directory: Path
    prefix: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}.")
    script: str = ""

    def user(self, principal: str) -> str:
        return f"{self.prefix.replace('.', '-')}{principal}"

    def password_file(self, principal: str) -> Path:
        return self.directory / f"{principal}.password"

    def environment(self, principal: str, **more: str) -> dict[str, str]:
        """What a process of this principal is told; `more` wins."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.secured.kafka.bootstrap_servers,
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SASL_USERNAME": self.user(principal),
            "KAFKA_SASL_PASSWORD_FILE": str(self.password_file(principal)),
            "KAFKA_SSL_CA_FILE": str(self.secured.certificates.authority),
            "HOLDSHORT_CONFIG": str(self.directory / "holdshort.yaml"),
            "HOLDSHORT_PREFIX": self.prefix,
            "HOLDSHORT_PARTITIONS": str(PARTITIONS),
            "HOLDSHORT_LANES": str(LANES),
            "HOLDSHORT_REPLICATION": "1",
            "HOLDSHORT_MIN_ISR": "1",
            "HOLDSHORT_MANAGEMENT_PORT": "0",
            **more,
        }

    def kafka(self, principal: str, **more: str) -> KafkaSettings:
        return load_settings(self.environment(principal, **more))[0]

    def client(self, principal: str, **more: str) -> dict[str, Any]:
        """Settings for confluent-kafka; `more` is told to holdshort."""
        return {**connection_of(self.kafka(principal, **more), "test").for_librdkafka(), "log_level": 0}

    def set_up(self) -> None:
        """Users for all, the rights that are printed, and topics, made by whoever may make topics."""
        (self.directory / "holdshort.yaml").write_text(CONFIG)
        passwords = {principal: secrets.token_urlsafe(16) for principal in PRINCIPALS}
        for principal, password in passwords.items():
            self.password_file(principal).write_text(f"{password}\n")
        self.secured.let_in({self.user(principal): password for principal, password in passwords.items()})
        self.script = holdshort(self.environment("admin"), "acls", "print").stdout
        self.secured.allow(self.script)
        done = holdshort(self.environment("admin"), "topics", "apply")
        assert done.returncode == 0, done.stderr
        self.secured.until_led(self.prefix)


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Nothing of this machine's own settings, then these."""
    ours = ("KAFKA_", "HOLDSHORT_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | dict(
        environment
    )


def holdshort(environment: Mapping[str, str], *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "holdshort.cli", *command],
        env=clean(environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# -- services -----------------------------------------------------------------------------------------------


class Served:
    """A service as a process, and all that it says; killed at the end if it has not ended."""

    def __init__(self, environment: Mapping[str, str], *command: str) -> None:
        self.port = str(free_ports(1)[0])
        self.lines: list[str] = []
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdshort.cli", *command],
            env=clean({**environment, "HOLDSHORT_MANAGEMENT_PORT": self.port}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.ended()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def until(self, said: str, times: int = 1, patience: float = 40.0) -> None:
        """Wait until that many lines say something."""

        def over() -> bool:
            return sum(said in line for line in self.lines) >= times or not self._reader.is_alive()

        with self._news:
            self._news.wait_for(over, patience)
            assert sum(said in line for line in self.lines) >= times, self.output

    def until_ready(self) -> Self:
        """Wait until both lanes run."""
        self.until('"lane_runs"', LANES)
        return self

    def ask(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def stop(self) -> None:
        """In order, as an orchestrator does."""
        self.process.terminate()
        assert self.ended() == 0, self.output

    def ended(self) -> int:
        status = self.process.wait(40)
        self._reader.join(10)
        return status

    @property
    def output(self) -> str:
        return "".join(self.lines)
