"""What `holdshort doctor` looks at in Kafka, check by check: what it found, and what to do about it.

Nothing here writes, but for the transaction that is aborted, and that only when it is asked for.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from holdshort.cli.reading import troubles_told
from holdshort.cli.showing import moment, span
from holdshort.settings import Config, Settings
from holdshort.stream.access import SERVICES, Principal, Resource, principals
from holdshort.stream.admin import VITAL, Admin, Difference, Seen
from holdshort.stream.connection import Connection
from holdshort.stream.errors import Fatal, Retry
from holdshort.stream.kafka import AioKafka
from holdshort.stream.kafka.probing import Address, abilities, brokers, transaction
from holdshort.stream.reach import reach
from holdshort.stream.records import TopicPartition
from holdshort.stream.topics import GATEKEEPER, Topic, table

Status = Literal["ok", "note", "finding", "skipped"]

CONNECT_S: Final = 5.0
CERTIFICATE_DAYS: Final = 14
SKEW_MS: Final = 1_000  # deadlines fire two seconds late, for clocks that differ (engine_settings.grace_ms)
LOOK_S: Final = 0.5
# The APIs without which nothing works, and the version that a broker must speak: Kafka 2.5 speaks them all.
NEEDED_APIS: Final = {"Fetch": (1, 11), "InitProducerId": (22, 1), "AddOffsetsToTxn": (25, 0)}


class Finding(NamedTuple):
    """One thing that was looked at: a `finding` is wrong, a `note` good to know; `advice` says what to do."""

    check: str
    status: Status
    said: str
    advice: str = ""


def wall_clock() -> int:
    """This machine's, in ms since the epoch."""
    return int(time.time() * 1000)


class Patient(NamedTuple):
    """The installation that is looked at, and how: whose rights, whether to write, by which clock."""

    connection: Connection
    settings: Settings
    config: Config
    principal: str | None
    write: bool
    patience: float
    now: Callable[[], int] = wall_clock

    @property
    def topics(self) -> list[Topic]:
        return table(list(self.config.agents), list(self.config.teams))

    def count(self, topic: Topic) -> int:
        return self.settings.partitions if topic.partitions == "threads" else self.settings.lanes


# -- the way there ------------------------------------------------------------------------------------------


async def names_and_ports(patient: Patient) -> AsyncIterator[Finding]:
    """Whether the bootstrap servers' names mean something, and somebody listens there."""
    for host, port in patient.connection.servers:
        try:
            addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            yield Finding(
                "names", "finding", f"{host} is not known: {error.strerror}", "mend KAFKA_BOOTSTRAP_SERVERS"
            )
            continue
        yield Finding("names", "ok", f"{host} is {', '.join(sorted({str(one[4][0]) for one in addresses}))}")
        yield await _port(host, port)


async def _port(host: str, port: int) -> Finding:
    began = time.monotonic()
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {CONNECT_S:.0f} s"
        advice = "is the broker up, the port right, the way there open (firewall, NetworkPolicy)?"
        return Finding("tcp", "finding", f"nobody listens at {host}:{port}: {reason}", advice)
    writer.close()
    return Finding("tcp", "ok", f"{host}:{port} answers in {(time.monotonic() - began) * 1000:.0f} ms")


async def encryption(patient: Patient) -> AsyncIterator[Finding]:
    """TLS: what was agreed on, and how long the certificate is good."""
    connection = patient.connection
    if not connection.tls:
        if connection.overheard:
            hosts = ", ".join(connection.overheard)
            advice = "KAFKA_SECURITY_PROTOCOL=SASL_SSL, unless everybody on the way is trusted"
            yield Finding("tls", "note", f"{hosts}: whoever is on the way can read everything", advice)
        return
    context = connection.for_aiokafka()["ssl_context"]
    for host, port in connection.servers:
        try:
            async with asyncio.timeout(CONNECT_S):
                _, writer = await asyncio.open_connection(host, port, ssl=context)
        except (OSError, TimeoutError):
            continue  # why, `reach` says better
        agreed = writer.get_extra_info("ssl_object")
        until = datetime.strptime(agreed.getpeercert()["notAfter"], "%b %d %H:%M:%S %Y %Z").replace(
            tzinfo=UTC
        )
        days = (until - datetime.now(UTC)).days
        writer.transport.abort()
        text = f"{host}:{port} speaks {agreed.version()}, its certificate is good for {days} days"
        if days < CERTIFICATE_DAYS:
            yield Finding("tls", "finding", text, "renew the broker's certificate")
        else:
            yield Finding("tls", "ok", text)


async def entrance(patient: Patient) -> AsyncIterator[Finding]:
    """Whether the cluster lets us in."""
    connection = patient.connection
    try:
        await reach(connection)
    except Fatal as refused:
        advice = "KAFKA_SECURITY_PROTOCOL, KAFKA_SASL_*, KAFKA_SSL_*: `holdshort config show` has them"
        yield Finding("sasl", "finding", str(refused), advice)
        return
    who = f" as {connection.sasl_username}" if connection.sasl_username else ""
    how = f" by {connection.sasl_mechanism}" if connection.sasl else ", which asks nobody who they are"
    yield Finding("sasl", "ok", f"let in{who}{how}")


async def cluster(patient: Patient) -> AsyncIterator[Finding]:
    """Every broker at the address that it tells clients, what it speaks, and the cluster's features."""
    found: Sequence[Address] = []
    trouble: Fatal | None = None
    for host, port in patient.connection.servers:
        try:
            found = await brokers(patient.connection, host, port)
            break
        except Fatal as error:
            trouble = error
    if not found:
        yield Finding("brokers", "finding", str(trouble), "is the cluster up?")
    for one in found:
        yield await _broker(patient.connection, one)
    if 0 < len(found) < patient.settings.replication:
        text = f"{len(found)} brokers, topics are made with {patient.settings.replication} copies"
        yield Finding("brokers", "finding", text, "more brokers, or a smaller HOLDSHORT_REPLICATION")


async def _broker(connection: Connection, one: Address) -> Finding:
    where = f"broker {one.node} at {one.host}:{one.port}"
    try:
        can = await abilities(connection, one.host, one.port)
    except Fatal as error:
        advice = (
            "clients go to the address that a broker advertises: mend advertised.listeners, or the way there"
        )
        return Finding("brokers", "finding", f"{where}: {error}", advice)
    missing = [name for name, (key, version) in NEEDED_APIS.items() if can.apis.get(key, -1) < version]
    if missing:
        return Finding("brokers", "finding", f"{where} is too old: {', '.join(missing)}", "upgrade Kafka")
    features = (
        ", ".join(f"{name} {level}" for name, level in sorted(can.features.items())) or "no features told"
    )
    fetch, produce = can.apis.get(1), can.apis.get(0)
    return Finding("brokers", "ok", f"{where} speaks Produce {produce}, Fetch {fetch}; {features}")


# -- topics and rights --------------------------------------------------------------------------------------


async def topics(patient: Patient, admin: Admin) -> AsyncIterator[Finding]:
    """Against the table: there, with as many partitions, kept as they must be."""
    seen = await admin.look([one.name for one in patient.topics])
    forbidden = [name for name, one in seen.items() if one.trouble == "TOPIC_AUTHORIZATION_FAILED"]
    visible = [one for one in patient.topics if one.name not in forbidden]
    try:
        differences = await admin.plan(visible, patient.settings.partitions, patient.settings.lanes)
        unsafe = await _unsafe(patient, admin, visible)
    except Fatal as error:
        if "authorization" not in str(error):
            raise
        yield Finding("topics", "note", "their settings may not be looked at", "look as gatekeeper or admin")
        differences = [one for topic in visible for one in _by_count(patient, topic, seen[topic.name])]
        unsafe = []
    for one in differences:
        yield _wrong_topic(patient.settings.prefix, one)
    if unsafe:
        yield _too_few_copies(patient, unsafe)
    if not differences and not unsafe:
        yield Finding("topics", "ok", f"{len(visible)} topics are as they must be")
    if forbidden:
        names = f"{len(forbidden)} topics may not be seen: {', '.join(sorted(forbidden)[:4])} ..."
        yield Finding("topics", "note", names, "fine for a principal that needs none of them")


async def _unsafe(patient: Patient, admin: Admin, wanted: Sequence[Topic]) -> list[str]:
    """Topics whose records count as written with fewer copies than the settings want."""
    found = await admin.describe([one.name for one in wanted])
    least = patient.settings.min_isr
    return [name for name, one in found.items() if int(one.config.get("min.insync.replicas") or 1) < least]


def _too_few_copies(patient: Patient, unsafe: Sequence[str]) -> Finding:
    names = ", ".join(sorted(unsafe)[:3]) + (" ..." if len(unsafe) > 3 else "")
    text = f"{len(unsafe)} topics have a min.insync.replicas below {patient.settings.min_isr}: {names}"
    advice = "what one broker alone holds is lost with it: raise it on the topics, or mend HOLDSHORT_MIN_ISR"
    return Finding("topics", "finding", text, advice)


def _by_count(patient: Patient, topic: Topic, seen: Seen) -> Iterator[Difference]:
    """The little that is known of a topic whose settings may not be read."""
    wanted = patient.count(topic)
    if seen.trouble is not None:
        yield Difference(topic.name, "create", f"{wanted} partitions", {})
    elif seen.partitions != wanted:
        text = f"has {seen.partitions} partitions, must have {wanted}; keys would move"
        yield Difference(topic.name, "refuse", text, {})


def _wrong_topic(prefix: str, one: Difference) -> Finding:
    name = prefix + one.topic
    match one.action:
        case "create":
            advice = "`holdshort topics apply`; if it should be there, look at HOLDSHORT_PREFIX"
            return Finding("topics", "finding", f"{name} does not exist", advice)
        case "refuse":
            advice = "HOLDSHORT_PARTITIONS and HOLDSHORT_LANES must be those that the topics were made with"
            return Finding("topics", "finding", f"{name} {one.detail}", advice)
        case "configure":
            vital = [setting for setting in VITAL if setting in one.config]
            why = " (services do not start so: state would be lost, or time falsified)" if vital else ""
            return Finding("topics", "finding", f"{name}: {one.detail}{why}", "`holdshort topics apply`")


async def rights(patient: Patient, admin: Admin) -> AsyncIterator[Finding]:
    """What the principal needs, against what the broker would let us do."""
    if patient.principal is None:
        yield Finding("rights", "skipped", "nobody is named", "--principal gatekeeper, team-NAME, ...")
        return
    wanted = [one for one in _principal(patient).rights if one.resource is Resource.TOPIC]
    seen = await admin.look([one.name.removeprefix(patient.settings.prefix) for one in wanted])
    missing = [
        f"{operation} on {right.name}"
        for right in wanted
        for operation in right.operations
        if operation not in seen[right.name.removeprefix(patient.settings.prefix)].operations
    ]
    for one in missing:
        yield Finding("rights", "finding", f"no right to {one}", _acls(patient))
    if not missing:
        text = f"everything that {patient.principal} needs to do with {len(wanted)} topics is allowed"
        yield Finding("rights", "ok", text)


def _principal(patient: Patient) -> Principal:
    known = principals(list(patient.config.agents), list(patient.config.teams), patient.settings.prefix)
    for one in known:
        if one.name == patient.principal:
            return one
    raise Fatal(
        f"there is no principal {patient.principal}; there are {', '.join(one.name for one in known)}"
    )


def _acls(patient: Patient) -> str:
    return f"`holdshort acls print --principal {patient.principal}` has what to give"


async def a_transaction(patient: Patient) -> AsyncIterator[Finding]:
    """Whether a transaction of the principal's works; with `write`, also what the broker's clock says."""
    if patient.principal not in SERVICES:
        yield Finding("transaction", "skipped", "of services alone", "--principal gatekeeper or router")
        return
    # Never a topic that holds state. Only one with append times tells the broker's clock.
    where = TopicPartition("audit" if patient.principal == GATEKEEPER else "resumes", 0)
    began, before = time.monotonic(), patient.now()
    try:
        at = await transaction(
            patient.connection,
            patient.settings.prefix,
            f"{patient.principal}-doctor",
            where if patient.write else None,
        )
    except Fatal as error:
        yield Finding("transaction", "finding", str(error), _acls(patient))
        return
    except Retry as error:
        yield Finding(
            "transaction", "finding", str(error), "is __transaction_state healthy? see the brokers' logs"
        )
        return
    took = (time.monotonic() - began) * 1000
    yield Finding("transaction", "ok", f"begun and aborted in {took:.0f} ms")
    if at is not None and patient.principal != GATEKEEPER:
        yield _skew(before, at, patient.now())


def _skew(before: int, at: int, after: int) -> Finding:
    """The broker's clock read between two looks at ours."""
    off = at - after if at > after else min(at - before, 0)
    if abs(off) > SKEW_MS:
        ahead = "ahead of" if off > 0 else "behind"
        text = f"the broker's clock is at least {span(off)} {ahead} this machine's"
        return Finding("clock", "finding", text, "set both by NTP: leases and deadlines are judged by both")
    return Finding("clock", "ok", f"the broker's clock and this machine's agree within {SKEW_MS} ms")


async def clock(patient: Patient, admin: Admin, seen: Mapping[str, Seen]) -> AsyncIterator[Finding]:
    """Without writing: nothing can have been appended later than now."""
    where = [
        TopicPartition(topic.name, number)
        for topic in patient.topics
        if topic.append_time and not seen[topic.name].trouble
        for number in range(seen[topic.name].partitions)
    ]
    newest = await admin.newest(where)
    if not newest:
        yield Finding("clock", "skipped", "nothing has been appended yet", "--write compares the clocks")
        return
    latest = max(newest.values())
    if latest > patient.now() + SKEW_MS:
        yield _skew(patient.now(), latest, patient.now())
    else:
        text = f"nothing was appended later than now; the newest record is of {moment(latest)}"
        yield Finding("clock", "ok", text)


# -- transactions that hang ---------------------------------------------------------------------------------


async def hanging(patient: Patient, kafka: AioKafka, seen: Mapping[str, Seen]) -> AsyncIterator[Finding]:
    """Partitions whose last stable offset does not move: what lies above it is seen by nobody."""
    where = [
        TopicPartition(name, number)
        for name, one in seen.items()
        if not one.trouble
        for number in range(one.partitions)
    ]
    with troubles_told():
        stable = await kafka.log.ends(where, committed=True)
        ends = await kafka.log.ends(where, committed=False)
        behind = {one for one in where if stable[one] < ends[one]}
        began = time.monotonic()
        while behind and time.monotonic() - began < patient.patience:
            await asyncio.sleep(LOOK_S)
            now = await kafka.log.ends(behind, committed=True)
            behind = {one for one in behind if now[one] == stable[one]}
    for one in sorted(behind):
        text = (
            f"{one.topic}/{one.partition} has a transaction that does not end: "
            f"read_committed stops at {stable[one]} of {ends[one]}"
        )
        advice = (
            "no transaction of ours lasts longer than 15 s; kafka-transactions.sh find-hanging, then abort, "
            "ends one that the coordinator has forgotten"
        )
        yield Finding("hanging", "finding", text, advice)
    if not behind:
        yield Finding("hanging", "ok", f"no transaction hangs in {len(where)} partitions")
