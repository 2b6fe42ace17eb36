"""What a chain proves: nothing removed, changed, put in or moved goes unnoticed, and it is said where."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
import pytest

from holdshort.contract.audit import Chain
from holdshort.contract.canon import sha256
from holdshort.contract.chains import Chains, Finding
from holdshort.contract.pending import UpgradeFirstError


class Stored(NamedTuple):
    """One record as it lies in partition 0."""

    offset: int
    key: bytes
    value: bytes


def written(count: int = 6, service: str = "gatekeeper", first: int = 0) -> list[Stored]:
    """A chain, its offsets with a marker between any two."""
    chain, found = Chain({}), []
    for number in range(count):
        members = {
            "at": 1000 * number,
            "service": service,
            "verdict": "refused",
            "code": None,
            "source": {"topic": "inputs", "partition": 0, "offset": number},
        }
        emit = chain.record(0, f"t{number}", members)
        assert emit.value is not None
        found.append(Stored(first + 2 * number, f"t{number}".encode(), emit.value))
    return found


def chains(
    records: Sequence[Stored],
    *,
    begin: int = 0,
    heads: dict[tuple[str, int], str] | None = None,
    young: Collection[tuple[str, int]] = (),
) -> Chains:
    followed = Chains({0: begin}, heads or {}, young=young)
    for record in records:
        followed.follow(0, record.offset, 0, record.key, record.value)
    for record in records:
        followed.explain("gatekeeper", 0, record.offset, sha256(record.value))
    followed.end()
    return followed


def only(records: Sequence[Stored], *, begin: int = 0) -> Finding:
    [finding] = chains(records, begin=begin).findings
    return finding


def as_stored(values: Sequence[Stored]) -> list[Stored]:
    """The same values in this order, at the offsets of a log that holds just them."""
    return [Stored(2 * number, one.key, one.value) for number, one in enumerate(values)]


def test_a_chain_as_it_was_written_is_whole() -> None:
    records = written()
    followed = chains(records, heads={("gatekeeper", 0): sha256(records[-1].value)})

    assert followed.findings == []
    assert followed.chains["gatekeeper", 0].records == 6


def test_the_chains_of_two_services_in_one_partition_are_two() -> None:
    gate, router = written(), written(service="router", first=1)
    both = sorted([*gate, *router])

    assert chains(both).findings == []
    assert only([one for one in both if one is not router[3]]).service == "router"


@pytest.mark.parametrize("gone", range(1, 5))
def test_a_record_that_was_removed_is_missed_where_it_was(gone: int) -> None:
    records = written()
    finding = only([one for number, one in enumerate(records) if number != gone])

    assert finding.what == "gap"
    assert (finding.after, finding.offset) == (2 * gone - 2, 2 * gone + 2)
    assert finding.proved == (2 * gone - 4 if gone > 1 else None)


@pytest.mark.parametrize("changed", range(5))
def test_a_record_that_was_changed_is_found_by_the_one_behind_it(changed: int) -> None:
    records = written()
    other = records[changed].value.replace(b'"refused"', b'"admitted"')
    records[changed] = records[changed]._replace(value=other)
    finding = only(records)

    assert (finding.what, finding.after, finding.offset) == ("gap", 2 * changed, 2 * changed + 2)
    assert finding.proved == (2 * changed - 2 if changed else None)


def test_an_emptied_partition_is_missed_if_its_newest_record_is_younger_than_retention() -> None:
    newest = ("gatekeeper", 0)
    heads = {newest: sha256(written()[-1].value)}

    assert chains([], begin=12, heads=heads).findings == []  # retention may have taken it
    [finding] = chains([], begin=12, heads=heads, young=[newest]).findings
    assert finding.what == "headless"


def test_the_newest_record_that_was_changed_or_removed_is_missed_by_the_positions() -> None:
    records = written()
    heads = {("gatekeeper", 0): sha256(records[-1].value)}
    other = records[-1].value.replace(b'"refused"', b'"admitted"')

    for some in ([*records[:-1], records[-1]._replace(value=other)], records[:-1], []):
        [finding] = chains(some, heads=heads).findings
        assert finding.what == "headless"
    assert chains(some, heads=heads, begin=99).findings == []  # all of it may have aged out


def test_two_records_that_changed_places_are_told_as_moved() -> None:
    one, two, three, four, *others = written()
    findings = chains(as_stored([one, three, two, four, *others])).findings

    assert [finding.what for finding in findings] == ["moved", "inserted", "inserted"]
    assert (findings[0].after, findings[0].offset, findings[0].other) == (0, 2, 4)


def test_a_record_that_was_put_in_is_told_by_the_one_that_follows_another() -> None:
    records = written()
    forged = records[3].value.replace(b'"refused"', b'"admitted"')
    records.insert(3, Stored(5, records[3].key, forged))
    finding = only(records)

    assert (finding.what, finding.other, finding.after, finding.offset) == ("inserted", 4, 5, 6)


def test_a_chain_whose_beginning_has_aged_out_begins_with_what_is_there() -> None:
    assert chains(written()[2:], begin=4).findings == []


def test_a_beginning_that_is_missing_where_the_log_begins_was_removed() -> None:
    finding = only(as_stored(written()[2:]), begin=0)

    assert (finding.what, finding.offset, finding.proved) == ("cut_off", 0, None)


def test_a_chain_that_begins_anew_is_told() -> None:
    anew = [one._replace(offset=one.offset + 100) for one in written()]
    finding = only([*written(), *anew])

    assert (finding.what, finding.after, finding.offset) == ("begun_anew", 10, 100)


def test_a_key_that_was_changed_is_told() -> None:
    records = written()
    records[2] = records[2]._replace(key=b"somebody else's")

    assert (only(records).what, only(records).offset) == ("rekeyed", 4)


@pytest.mark.parametrize("value", [b"", b"{}", b"not JSON", b'{"v":1}', b"\xff"])
def test_what_is_no_record_of_the_audit_is_told(value: bytes) -> None:
    records = [*written(), Stored(99, b"t", value)]

    assert (only(records).what, only(records).offset) == ("unreadable", 99)


def test_a_record_of_a_service_that_is_none_of_ours_is_told() -> None:
    value = written(1)[0].value.replace(b"gatekeeper", b"stranger")

    assert only([Stored(0, b"t0", value)]).what == "unreadable"


def test_a_newer_version_is_not_guessed_at() -> None:
    value = msgspec.json.encode({**msgspec.json.decode(written(1)[0].value), "v": 2})
    with pytest.raises(UpgradeFirstError, match="upgrade first"):
        chains([Stored(0, b"t0", value)])


@pytest.mark.parametrize("at", [0, 10**13])
def test_a_break_is_found_in_its_time_whatever_time_the_changed_record_says(at: int) -> None:
    records = written()
    changed = {**msgspec.json.decode(records[3].value), "at": at}
    finding = only([*records[:3], records[3]._replace(value=msgspec.json.encode(changed)), *records[4:]])

    assert finding.what == "gap"
    assert finding.began <= 4000 <= finding.at


@pytest.mark.parametrize("moved", [False, True])
def test_a_record_behind_the_newest_that_its_service_names_was_put_in(moved: bool) -> None:
    """If the service has gone on meanwhile, its next record will tell."""
    records = written()
    heads = {("gatekeeper", 0): sha256(records[4].value)}
    followed = Chains({0: 0}, heads)
    for record in records:
        followed.follow(0, record.offset, 0, record.key, record.value)
    followed.end({("gatekeeper", 0): sha256(records[5].value)} if moved else heads)

    assert [(one.what, one.offset) for one in followed.findings] == ([] if moved else [("unsaid", 10)])
