"""Quorum: how many different people must answer alike, and one of each of several groups (router 3). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from holdshort.contract.routes import Policy
from holdshort.router.gathering import Answer

Groups = Mapping[str, frozenset[str]]


def is_denial(answer: Answer) -> bool:
    """`resolved` with `{approved: false}`, or with a bare `false`."""
    if answer.status != "resolved" or answer.payload is msgspec.UNSET:
        return False
    payload: Any = msgspec.json.decode(answer.payload)
    return payload is False or (isinstance(payload, dict) and payload.get("approved") is False)


def own_vote(votes: Iterable[Answer], decider: str | None) -> Answer | None:
    """What this person has answered already; a name counts once."""
    return next((one for one in votes if one.decided_by == decider), None)


def disagreeing(votes: Sequence[Answer], answer: Answer) -> Answer | None:
    """A vote of its kind that says something else: approvals with different payloads do not add up."""
    denial = is_denial(answer)
    return next((one for one in votes if one.digest != answer.digest and is_denial(one) == denial), None)


def decided(votes: Sequence[Answer], answer: Answer, policy: Policy, groups: Groups) -> bool:
    """Whether this answer, which is the last of `votes`, decides."""
    if policy.quorum <= 1 and not policy.groups:
        return True
    if policy.denial == "decides" and is_denial(answer):
        return True
    alike = [one.decided_by for one in votes if one.digest == answer.digest and one.decided_by is not None]
    if len(set(alike)) < max(policy.quorum, len(policy.groups)):
        return False
    return _each_has_one(policy.groups, frozenset(alike), groups)


def _each_has_one(names: Sequence[str], people: frozenset[str], groups: Groups) -> bool:
    """Whether every group can have somebody of its own: one person stands for one group only."""
    if not names:
        return True
    mine = people & groups.get(names[0], frozenset())
    return any(_each_has_one(names[1:], people - {one}, groups) for one in mine)


def have(votes: Sequence[Answer]) -> int:
    """How many have answered alike at most, as the approval shows it."""
    digests = [one.digest for one in votes]
    return max((digests.count(one) for one in set(digests)), default=0)
