"""What is asked of a cluster is asked until there is an answer, and half an answer is none."""

import ssl
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import pytest
from faststream.kafka.security import parse_security
from pydantic import SecretStr
from tests.virtual import in_virtual_time

from holdshort.sdk.ledger import Ledger
from holdshort.sdk.wire import AgentWire, _security
from holdshort.settings import KafkaSettings
from holdshort.stream.errors import Fatal

Json = Any


class Partition(NamedTuple):
    topic: str
    partition: int


class Committed(NamedTuple):
    offset: int
    metadata: str


ZERO, ONE = Partition("p.runs.a", 0), Partition("p.runs.a", 1)


class Consumer:
    """The little of aiokafka's consumer that a takeover needs."""

    def assignment(self) -> set[Partition]:
        return {ZERO, ONE}

    async def beginning_offsets(self, wanted: list[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(wanted, 7)


class Groups:
    """aiokafka's admin client; answers in turn, and the last answer for ever."""

    def __init__(self, *answers: Json) -> None:
        self.answers = list(answers)

    async def list_consumer_group_offsets(self, group: str, partitions: list[Partition]) -> Json:
        assert group == "p.agent-a"
        assert set(partitions) <= {ZERO, ONE}
        return self._answer()

    async def describe_consumer_groups(self, groups: list[str]) -> Json:
        assert groups == ["p.agent-a"]
        return [self._answer()]

    def _answer(self) -> Json:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Described(NamedTuple):
    """aiokafka's response."""

    group: Json

    def to_object(self) -> Json:
        return {"groups": [self.group]}


def asked(question: Callable[[AgentWire], Coroutine[Any, Any, Json]], *answers: Json) -> Json:
    async def main() -> Json:
        wire = AgentWire(KafkaSettings(), "p.", "a", "w1", 30)
        wire._subscriber.consumer = Consumer()
        wire._broker.config.broker_config.admin.admin_client = Groups(*answers)
        return await question(wire)

    return in_virtual_time(main())


def test_a_ledger_is_what_was_committed_or_the_beginning() -> None:
    committed = {ZERO: Committed(5, '{"v":1,"waiting":[1],"begun":{}}'), ONE: Committed(-1, "")}

    assert asked(lambda wire: wire.ledgers([0, 1]), committed) == {0: Ledger(5, {4}), 1: Ledger(7)}


def test_only_what_is_asked_for_is_answered() -> None:
    assert asked(lambda wire: wire.ledgers([1]), {ONE: Committed(5, "")}) == {1: Ledger(5)}
    assert asked(lambda wire: wire.ledgers([9]), {}) == {}


def test_an_answer_that_leaves_a_partition_out_is_asked_for_again() -> None:
    """The client passes over the error of a coordinator that is still loading."""
    whole = {ZERO: Committed(5, ""), ONE: Committed(6, "")}

    found = asked(lambda wire: wire.ledgers([0, 1]), {}, {ZERO: Committed(5, "")}, ConnectionError(), whole)

    assert found == {0: Ledger(5), 1: Ledger(6)}


def test_no_answer_for_long_ends_the_process() -> None:
    with pytest.raises(Fatal, match="what has been committed"):
        asked(lambda wire: wire.ledgers([0, 1]), {})


def test_workers_are_the_members_of_the_group_by_their_names() -> None:
    members = [{"client_id": "holdshort-agent-a-w1"}, {"client_id": "holdshort-agent-a-w2"}]
    loading, group = {"error_code": 14, "members": []}, {"error_code": 0, "members": members}

    assert asked(lambda wire: wire.workers(), Described(loading), Described(group)) == {"w1", "w2"}


# -- security -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"security_protocol": "SSL"}, {"security_protocol": "SSL"}),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"},
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"},
        ),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"},
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"},
        ),
        (
            {"security_protocol": "SASL_SSL"},
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"},
        ),
    ],
)
def test_clients_are_secured_as_the_settings_say(settings: Json, expected: Json) -> None:
    secret: Json = {"sasl_username": "kim", "sasl_password": SecretStr("hunter2")} if settings else {}
    told = parse_security(_security(KafkaSettings(**settings, **secret)))

    context = told.pop("ssl_context", None)
    assert isinstance(context, ssl.SSLContext) == ("SSL" in settings.get("security_protocol", ""))
    if "SASL" in settings.get("security_protocol", ""):
        assert (told.pop("sasl_plain_username"), told.pop("sasl_plain_password")) == ("kim", "hunter2")
    assert told == expected
