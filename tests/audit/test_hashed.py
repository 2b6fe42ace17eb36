"""`audit.hash_ids`: threads and people stand in the audit as keyed hashes, found with the key alone."""

import json

import pytest
from msgspec.structs import replace
from tests.audit.chained import CONFIG, asks, followed, story
from tests.clients import Json
from tests.schemas.catalogue import ALL
from tests.systems import System
from tests.virtual import in_virtual_time

from holdshort.cli.trails import Trail
from holdshort.contract.chains import Chains
from holdshort.contract.hashing import HashKey, names_of
from holdshort.settings import Config, MendSettingsError, Settings, rules_of

KEY = HashKey(b"0123456789abcdef")


def told(*interrupts_of: str) -> list[Json]:
    """The audit of a story on an installation with a key; of its records also what the chains say."""
    found: list[Json] = []

    async def main() -> None:
        system = System(CONFIG)
        system.rules = replace(system.rules, audit_key=KEY)
        for app in ("gatekeeper", "router"):
            await system.start(app)
        await story(system)
        for thread in interrupts_of:
            await asks(system, thread, thread)
        assert followed(system).findings == []
        found.extend(one.value for one in system.said("audit"))
        keys = {one.record.key for one in system.said("audit")}
        assert keys == {one["threadId"].encode() for one in found}
        for app in ("router", "gatekeeper"):
            await system.stop(app)

    in_virtual_time(main())
    return found


def test_threads_and_people_stand_there_as_hashes_alone() -> None:
    audit = told()

    assert {one["threadId"] for one in audit} == {KEY.thread("t"), KEY.thread("u")}
    people = {entry["decidedBy"] for one in audit for entry in one.get("entries", [])}
    assert people >= {KEY.person("ann"), KEY.person("bob")}
    assert '"ann"' not in json.dumps(audit)
    assert {one["service"] for one in audit} == {"gatekeeper", "router"}
    for one in audit:
        assert ALL["audit.v1"].problems(one) == []


def test_a_run_called_like_its_thread_does_not_give_it_away() -> None:
    audit = [one for one in told("opened") if one["threadId"] == KEY.thread("opened")]

    assert {one["runId"] for one in audit} == {KEY.thread("opened")}
    assert "opened" in {one["verdict"] for one in audit}  # a word of ours stays one


def test_the_same_name_of_a_thread_and_of_a_person_have_different_hashes() -> None:
    assert KEY.thread("ann") != KEY.person("ann")
    assert KEY.thread("ann") != HashKey(b"another key, as long").thread("ann")


def test_a_thread_is_found_with_the_key_alone() -> None:
    with_key, without = Trail(names_of("t", KEY), None), Trail(names_of("t", None), None)
    chains = Chains({})
    for offset, one in enumerate(told()):
        link = chains.follow(0, offset, 0, one["threadId"].encode(), json.dumps(one).encode())
        assert link is not None
        with_key.note(link)
        without.note(link)

    assert len(with_key.links()) > 5
    assert without.links() == []
    assert without.hashed


# -- where the key comes from -------------------------------------------------------------------------------

HASHED = Config.model_validate({"audit": {"hash_ids": True}})


def test_without_a_key_a_service_does_not_start() -> None:
    with pytest.raises(MendSettingsError, match=r"audit\.hash_ids needs a key: HOLDSHORT_AUDIT_KEY_FILE"):
        rules_of(Settings(), HASHED)


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(MendSettingsError, match="16 characters or more"):
        rules_of(Settings(audit_key="short"), HASHED)


def test_a_key_alone_hashes_nothing() -> None:
    assert rules_of(Settings(audit_key="0123456789abcdef"), Config()).audit_key is None


def test_the_key_is_shown_nowhere() -> None:
    settings = Settings(audit_key="0123456789abcdef")
    rules = rules_of(settings, HASHED)

    assert rules.audit_key is not None
    for said in (repr(settings), settings.model_dump_json(), repr(rules), str(rules.audit_key)):
        assert "0123456789abcdef" not in said


def test_a_newer_configuration_keeps_the_key() -> None:
    rules = rules_of(Settings(audit_key="0123456789abcdef"), HASHED)

    assert Config().rules(12).after(rules).audit_key is rules.audit_key
