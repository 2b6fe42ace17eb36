"""Accepting a loss: the positions of a halted lane, written anew so that they fit what the log holds.

Nothing here mends anything. What is gone is named, one sentence each, and the lane goes on without it; the
transaction is fenced like any other, so a lane that still runs is shut out first and then begins again.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from holdshort.stream.changelog import Changelog
from holdshort.stream.decider import Decider
from holdshort.stream.engine_settings import EngineSettings
from holdshort.stream.ports import Kafka
from holdshort.stream.positions import Positions, Reached, encode_positions
from holdshort.stream.records import TopicPartition, Write
from holdshort.stream.restore import Restore, check_shape

Start = Literal["beginning", "end"]
Ends = Mapping[TopicPartition, int]


class Accepted(NamedTuple):
    """What is lost, as sentences, and the positions with which the lane goes on.

    `fits` says that they are those that it has: there is nothing to accept.
    """

    lost: tuple[str, ...]
    positions: Positions
    fits: bool


async def look(
    number: int, settings: EngineSettings, kafka: Kafka, decider: Decider[Any], start: Start
) -> Accepted:
    """What accepting would lose; changes nothing.

    `start` is where inputs are read from if the positions are missing: from the `end` nothing is judged
    twice and what was not read is lost, from the `beginning` it is the other way round. Raises Halt for what
    cannot be accepted (another number of partitions, a newer version), Retry for passing trouble.
    """
    changelog = Changelog()
    restore = Restore(number, settings, kafka.log, changelog, decider)
    ids = await restore.topic_ids()
    ends = await restore.read_changelog()
    known = changelog.positions
    if known is not None:
        check_shape(known, settings)
    lost = [*_lost_positions(known, start), *_lost_state(decider.state, known, ends, ids)]
    inputs = {topic: dict(places) for topic, places in known.inputs.items()} if known else {}
    partitions = settings.partitions_of(number)
    logs = [TopicPartition(topic, one) for rank in decider.ranks for topic in rank for one in partitions]
    tables = [TopicPartition(topic, one) for topic in decider.tables for one in partitions]
    begins = await kafka.log.beginnings([*logs, *tables])
    limits = await kafka.log.ends([*logs, *tables], committed=False)
    for where in [*logs, *tables]:
        reached = _again(where, known, ids, begins, limits)
        if known is None and where in logs and start == "end":
            reached = Reached(limits[where])
        if reached is None:
            inputs.get(where.topic, {}).pop(str(where.partition), None)
        else:
            inputs.setdefault(where.topic, {})[str(where.partition)] = reached
        lost += _lost_input(where, known, ids, begins, limits)
    positions = Positions(
        partitions=settings.partitions,
        lanes=settings.lanes,
        topics={**(known.topics if known else {}), **ids},
        inputs=inputs,
        changelog={str(partition): end for partition, end in ends.items()},
        notes=known.notes if known else {},
    )
    same_topics = known is not None and all(known.topics.get(topic) == id_ for topic, id_ in ids.items())
    return Accepted(tuple(lost), positions, fits=same_topics and not lost)


async def accept(
    number: int, settings: EngineSettings, kafka: Kafka, decider: Decider[Any], start: Start
) -> Accepted:
    """Shut the lane's owner out, look again, and write the positions, unless they fit as they are.

    Raises Halt and Retry.
    """
    found = await look(number, settings, kafka, decider, start)
    if found.fits:
        return found  # a lane that is well is not shut out
    transactions = await kafka.fence(settings.transactional_id(number))
    try:
        accepted = await look(number, settings, kafka, decider, start)
        where = TopicPartition(settings.positions, number)
        value = encode_positions(accepted.positions)
        await transactions.commit({where: [Write(settings.positions, str(number).encode(), value)]})
        return accepted
    finally:
        await transactions.discard()


def _again(
    where: TopicPartition, known: Positions | None, ids: Mapping[str, str], begins: Ends, limits: Ends
) -> Reached | None:
    """Where an input is read from; None for its beginning."""
    if known is None or known.topics.get(where.topic, ids[where.topic]) != ids[where.topic]:
        return None
    reached = known.reached(where)
    if reached is None:
        return None
    return Reached(min(max(reached.offset, begins[where]), limits[where]), reached.now)


# -- what is lost, in words --------------------------------------------------------------------------------


def _lost_positions(known: Positions | None, start: Start) -> list[str]:
    if known is not None:
        return []
    if start == "end":
        return ["the positions: whatever the inputs hold now is taken as read"]
    return ["the positions: whatever the inputs hold now is judged, again if it was judged before"]


def _lost_state(
    topic: str, known: Positions | None, ends: Mapping[int, int], ids: Mapping[str, str]
) -> list[str]:
    if known is None:
        return []
    if known.topics.get(topic, ids[topic]) != ids[topic]:
        return [f"everything {topic} held before it was deleted and made again"]
    return [
        f"what {topic}/{partition} held from {end} up to {before}"
        for partition, end in ends.items()
        if end < (before := known.changelog.get(str(partition), 0))
    ]


def _lost_input(
    where: TopicPartition, known: Positions | None, ids: Mapping[str, str], begins: Ends, limits: Ends
) -> list[str]:
    reached = known.reached(where) if known else None
    if known is None or reached is None:
        return []
    place = f"{where.topic}/{where.partition}"
    if known.topics.get(where.topic, ids[where.topic]) != ids[where.topic]:
        return [f"what {place} held from {reached.offset} on before it was deleted and made again"]
    if reached.offset < begins[where]:
        return [f"records {reached.offset} to {begins[where] - 1} of {place}, deleted before they were read"]
    if reached.offset > limits[where]:
        return [f"records {limits[where]} to {reached.offset - 1} of {place}, which had been judged"]
    return []
