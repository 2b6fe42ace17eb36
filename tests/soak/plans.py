"""What the people of a team do about a question: at once, late, wrong, twice, one against the other. PURE.

Everything follows from the seed and the question, so a decider that was killed does the same again.
A decision says in its id what it is meant to be: the check of the receipts asks nothing else of its author.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final, Literal, NamedTuple

TEAMS: Final = ("payments", "dba", "legal", "ops", "security")
DEADLINES: Final = frozenset({"dba", "legal"})  # whose questions end without them
ESCALATED: Final = {"ops": "security"}
PROVED: Final = "security"  # whose people are known: a quorum needs that
PRINCIPAL: Final = "holdshort-principal"
WRONG: Final = ("payload", "generation", "seen", "team", "interrupt", "action", "form", "unreadable")
OTHER_GENERATION: Final = 7
LAST: Final = "sam"  # denies what the others have not decided
LAST_S: Final = 12.0
BEFORE: Final = ("payments", "dba")  # who gets what is meant for others

Meant = Literal["right", "other", "late", "last"]
When = Literal["asked", "withdrawn", "unanswered"]
Asked = Mapping[str, Any]
"""An approval.v1 as it came."""


class Step(NamedTuple):
    """One decision, `after` so many seconds from when the question was asked, or withdrawn.

    What is done about one that is `unanswered` is left out if it is not open any more.
    """

    after: float
    when: When
    team: str
    by: str
    value: Mapping[str, Any]


def beside(slip: str) -> dict[str, Any]:
    """What people say beside an answer with this slip: one in three says something."""
    return {"note": {"slip": slip}} if Random(slip).random() < 1 / 3 else {}


def plan(asked: Asked, team: str, seed: int) -> list[Step]:
    """All that the team does about this question in this attempt."""
    random = Random(f"{seed}/{asked['approvalId']}/{asked['attempt']}/{team}")
    people = _Quorum if asked["quorum"]["need"] > 1 else _People
    return list(people(asked, team, random).steps())


class _People:
    """A team of which any one person may decide."""

    def __init__(self, asked: Asked, team: str, random: Random) -> None:
        self.asked = asked
        self.team = team
        self.random = random
        self.yes = random.random() < 0.8
        self.precise = random.random() < 0.5  # whether they say which attempt they mean
        self.first, self.second = random.sample(["ann", "bob", "cem", "dee"], 2)

    def steps(self) -> Iterator[Step]:
        kinds: dict[Callable[[], Iterator[Step]], int] = {
            self.prompt: 44,
            self.slow: 14,
            self.wrong: 14,
            self.twice: 8,
            self.contradicted: 8,
            self.claimed: 5,
            self.bare: 3,
            self.asleep: 4,
        }
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        yield from kind()
        if self.random.random() < 0.06:
            yield self.decides("late", self.first, self.soon(), yes=not self.yes, when="withdrawn")
        if self.team not in DEADLINES:  # votes of an earlier attempt, say, stand against those of this one
            yield self.decides("last", LAST, LAST_S, yes=False, when="unanswered")

    # -- kinds ---------------------------------------------------------------------------------------------

    def prompt(self) -> Iterator[Step]:
        yield from self.answers(self.soon())

    def slow(self) -> Iterator[Step]:
        yield from self.answers(self.random.uniform(0.5, 4.0))

    def wrong(self) -> Iterator[Step]:
        """Something that must not count, then what was meant."""
        at = self.soon()
        yield self.mistaken(self.random.choice(WRONG), at)
        yield from self.answers(at + self.soon())

    def twice(self) -> Iterator[Step]:
        """A double click, and the same said again under another name."""
        steps = list(self.answers(self.soon()))
        yield from (*steps, *steps)
        yield self.decides("other", self.first, steps[-1].after + self.soon(), yes=self.yes)

    def contradicted(self) -> Iterator[Step]:
        """Two people, two opinions: the first counts."""
        at = self.soon()
        yield self.decides("right", self.first, at, yes=self.yes)
        yield self.decides("other", self.second, at, yes=not self.yes)

    def claimed(self) -> Iterator[Step]:
        """One holds it; what another says meanwhile does not count."""
        at = self.soon()
        yield self.record(
            self.first, at, self._decision("claim", self.first, self._bare_entry(), action="claim")
        )
        yield self.decides("other", self.second, at + 0.01, yes=not self.yes)
        yield from self.answers(at + self.soon())

    def bare(self) -> Iterator[Step]:
        """Plain AG-UI, from a team that knows nothing of ours."""
        entry = self.entry(yes=self.yes)
        yield self.record(self.first, self.soon(), {"threadId": self.asked["threadId"], "resume": [entry]})

    def asleep(self) -> Iterator[Step]:
        """Nobody decides before the deadline; where there is none, somebody does at last."""
        if self.team in DEADLINES or self.team in ESCALATED:
            yield self.decides("late", self.second, self.soon(), yes=self.yes, when="withdrawn")
        else:
            yield from self.answers(5.0)

    # -- what is said --------------------------------------------------------------------------------------

    def soon(self) -> float:
        return self.random.uniform(0.0, 0.5)

    def answers(self, at: float) -> Iterator[Step]:
        """What decides the question."""
        yield self.decides("right", self.first, at, yes=self.yes)

    def decides(
        self, meant: Meant, by: str, at: float, *, yes: bool, when: When = "asked", note: str = ""
    ) -> Step:
        entry = self.entry(yes=yes, note=note)
        name = f"{meant}{'+' if yes else '-'}{note}"
        return self.record(by, at, self._decision(name, by, entry), when=when)

    def entry(self, *, yes: bool, note: str = "") -> dict[str, Any]:
        slip = f"{self.asked['approvalId']}.{self.asked['attempt']}{note}"
        entry = {**self._bare_entry(), "status": "resolved", "payload": {"approved": yes, "slip": slip}}
        return {**entry, "metadata": said} if (said := beside(slip)) else entry

    def _bare_entry(self) -> dict[str, Any]:
        return {"interruptId": self.asked["interrupt"]["id"]}

    def _decision(self, name: str, by: str, entry: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        asked = self.asked
        return {
            "v": 1,
            "decisionId": f"{name}/{asked['approvalId']}/{asked['attempt']}/{by}",
            "threadId": asked["threadId"],
            "generation": asked["generation"],
            "resume": [entry],
            "decidedBy": by,
            "seen": {asked["interrupt"]["id"]: asked["digest"]},
            **({"attempt": asked["attempt"]} if self.precise else {}),
            **more,
        }

    def record(self, by: str, at: float, value: Mapping[str, Any], *, when: When = "asked") -> Step:
        return Step(at, when, self.team, by, value)

    def mistaken(self, what: str, at: float) -> Step:
        """A decision that must be refused whatever is open."""
        entry = self.entry(yes=True)
        value = self._decision(f"wrong-{what}", self.first, entry)
        team = self.team
        match what:
            case "payload":
                entry["payload"] = {"approved": "yes"}
            case "generation":
                value["generation"] += OTHER_GENERATION
            case "seen":
                value["seen"] = {entry["interruptId"]: "0" * 64}
            case "team":
                team = next(one for one in BEFORE if one != self.team)
            case "interrupt":
                entry["interruptId"] = "nobody-asked"
            case "action":
                value["action"] = "postpone"
            case "form":
                value["generation"] = "the open one"
            case _:
                del value["threadId"]
        return Step(at, "asked", team, self.first, value)


class _Quorum(_People):
    """A team of which two people must answer alike."""

    def answers(self, at: float) -> Iterator[Step]:
        yield self.decides("right", self.first, at, yes=self.yes)
        yield self.decides("right", self.second, at + self.soon(), yes=self.yes)

    def contradicted(self) -> Iterator[Step]:
        """One says yes, thinks again and may not; then a second person agrees, or denies alone."""
        at = self.soon()
        yield self.decides("right", self.first, at, yes=True)
        yield self.decides("other", self.first, at + 0.01, yes=True, note="~")
        yield self.decides("other", self.second, at + self.soon(), yes=self.yes)

    def claimed(self) -> Iterator[Step]:
        """Two say yes to different things: they do not add up until one follows the other."""
        at = self.soon()
        yield self.decides("right", self.first, at, yes=True, note="~")
        yield self.decides("other", self.second, at + 0.01, yes=True)
        yield self.decides("right", self.second, at + self.soon(), yes=True, note="~")

    def bare(self) -> Iterator[Step]:
        """An edge that only says who it is: two bare answers of two people."""
        for by in (self.first, self.second):
            value = {"threadId": self.asked["threadId"], "resume": [self.entry(yes=self.yes)]}
            yield self.record(by, self.soon(), value)
