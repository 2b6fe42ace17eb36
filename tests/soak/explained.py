"""Whether every receipt is explained: a second, small opinion of what the router may say, and when. PURE.

It follows each thread through the router's audit, knows of every question what has been answered and by whom,
and asks of each receipt for the fact that makes it true. It has nothing in common with the router's code.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from tests.soak.evidence import Evidence, Said
from tests.soak.plans import DEADLINES, ESCALATED, PROVED, beside

JUDGED: Final = frozenset({"accepted", "refused", "duplicate"})
MEANT_WRONG: Final = {
    "INVALID_PAYLOAD": ("payload",),
    "SEEN_SOMETHING_ELSE": ("seen",),
    "UNKNOWN_ACTION": ("action",),
    "MALFORMED_DECISION": ("form", "unreadable"),
}
QUORUM: Final = 2


@dataclass
class Question:
    """One interrupt as it is put; `answered` names what decided it, `votes` who has said what, until then."""

    team: str
    quorum: int
    answered: str | None = None
    content: bytes | None = None
    votes: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    claimed: str | None = None
    moved: bool = False


@dataclass
class Pause:
    """One pause of a thread in its present attempt."""

    questions: dict[str, Question]
    attempt: int = 1
    forwarded: bool = False


def findings(evidence: Evidence) -> list[str]:
    """Everything that is not explained, or still open."""
    found = [*evidence.open, *evidence.troubles]
    story = Story(evidence)
    found += story.problems
    found += _unjudged(evidence, story)
    found += _receipts(evidence, story)
    found += _batches(evidence, story)
    return found


class Story:
    """All threads, followed through the audit."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.problems: list[str] = []
        self.judged: Counter[str] = Counter()  # by the decision's place
        self.expected: dict[tuple[str, str], Counter[tuple[str, str | None]]] = defaultdict(Counter)
        self.sent: dict[str, dict[str, str]] = {}  # by run id: what answered each interrupt
        self.codes: Counter[str] = Counter()
        self.deeds: Counter[str] = Counter()
        self._names: set[tuple[str, str]] = set()
        for thread, rows in evidence.audit.items():
            self._follow(thread, rows)

    def _follow(self, thread: str, rows: Any) -> None:
        asked = self.evidence.questions.get(thread, {})
        pauses = {
            generation: Pause({id_: Question(team, _need(team)) for id_, team in questions.items()})
            for generation, questions in asked.items()
        }
        for row in rows:
            if row["verdict"] in JUDGED:
                self._decided(pauses, row)
            elif row["verdict"] == "unreadable":
                self._unreadable(row)
            elif row["generation"] in pauses:
                self._done(thread, pauses[row["generation"]], row)
            else:
                self.problems.append(f"{thread} was {row['verdict']}, and clients have seen no such pause")
        for generation, pause in pauses.items():
            if not pause.forwarded:
                self.problems.append(f"pause {generation} of {thread} was never answered")

    def _unreadable(self, row: Mapping[str, Any]) -> None:
        said = self._said(row)
        if "wrong-unreadable" not in said.name:
            self.problems.append(f"{said.place} was not read: {row['code']}")

    def _said(self, row: Mapping[str, Any]) -> Said:
        place = "{topic}/{partition}/{offset}".format(**row["source"])
        self.judged[place] += 1
        return self.evidence.decisions[place]

    # -- what the router did by itself -----------------------------------------------------------------------

    def _done(self, thread: str, pause: Pause, row: Mapping[str, Any]) -> None:
        deed, id_ = row["verdict"], row.get("interruptId", "")
        self.deeds[deed] += 1
        match deed:
            case "forwarded":
                self._forwarded(thread, pause, row)
            case "answered" | "cancelled":
                question = pause.questions[id_]
                cause = row["code"]
                told = "CANCELLED_BY_DENIAL" if cause == "DENIAL" else "DEADLINE_PASSED"
                self._overrule(question, told, {name for name, _ in question.votes.values()})
                question.answered, question.content = f"router:{cause.lower()}", None
                question.votes, question.claimed = {}, None
                if question.team not in DEADLINES and cause == "DEADLINE":
                    self.problems.append(f"{id_} ended by a deadline that it did not have")
            case "shown_again":
                pause.forwarded, pause.attempt = False, pause.attempt + 1
                for question in pause.questions.values():
                    question.answered, question.content, question.claimed = None, None, None
                    question.votes = {}
            case "escalated":
                pause.questions[id_].team, pause.questions[id_].moved = row["team"], True
                pause.questions[id_].claimed = None
            case "reminded" | "overruled":
                pass
            case _:
                self.problems.append(
                    f"{thread} was {deed} ({row['code']}), for which there is no reason here"
                )

    def _forwarded(self, thread: str, pause: Pause, row: Mapping[str, Any]) -> None:
        missing = [id_ for id_, question in pause.questions.items() if question.answered is None]
        if missing or pause.forwarded or row["code"] is not None:
            self.problems.append(f"{thread} was forwarded without {missing}, or again: {row}")
        pause.forwarded = True
        self.sent[row["runId"]] = {id_: str(q.answered) for id_, q in pause.questions.items()}

    def _overrule(self, question: Question, code: str, names: set[str]) -> None:
        for name in names:
            self.expected[question.team, name]["refused", code] += 1

    # -- decisions -------------------------------------------------------------------------------------------

    def _decided(self, pauses: Mapping[int, Pause], row: Mapping[str, Any]) -> None:
        said = self._said(row)
        verdict, code = row["verdict"], row["code"]
        self.codes[code or verdict] += 1
        self.expected[said.team, said.name][verdict, code] += 1
        generation = said.value.get("generation", max(_seen(pauses, said), default=0))
        pause = pauses.get(generation) if isinstance(generation, int) else None
        entry = said.value["resume"][0]
        question = pause.questions.get(entry["interruptId"]) if pause is not None else None
        fine = self._explains(said, row, pause, question)
        self._names.add((said.team, said.name))
        if not fine:
            self.problems.append(
                f"{said.place} ({said.name}) was {verdict} {code or ''}: nothing explains it"
            )
        elif verdict == "accepted":
            assert question is not None
            self._accept(said, question, entry)

    def _explains(
        self, said: Said, row: Mapping[str, Any], pause: Pause | None, question: Question | None
    ) -> bool:
        verdict = row["verdict"]
        if verdict == "duplicate" and (said.team, said.name) in self._names:
            return True
        if verdict == "refused" and row["code"] in MEANT_WRONG:
            return any(f"wrong-{one}/" in said.name for one in MEANT_WRONG[row["code"]])
        if verdict == "refused":
            return _EXPLAINED[row["code"]](said, pause, question) if row["code"] in _EXPLAINED else False
        if question is None or pause is None or "wrong-" in said.name or question.team != said.team:
            return False
        same = _content(said)
        own = question.votes.get(said.by)
        if verdict == "duplicate":
            return same in (question.content, own[1] if own else None)
        return (
            not pause.forwarded
            and question.answered is None
            and question.claimed in (None, said.by)
            and not own
        )

    def _accept(self, said: Said, question: Question, entry: Mapping[str, Any]) -> None:
        if said.value.get("action") == "claim":
            question.claimed = said.by
            return
        content, yes = _content(said), entry["payload"]["approved"]
        question.claimed = None
        question.votes[said.by] = (said.name, content)
        alike = [name for name, one in question.votes.values() if one == content]
        if yes and len(alike) < question.quorum:
            return
        others = {name for name, one in question.votes.values() if one != content}
        self._overrule(question, "ALREADY_DECIDED", others)
        question.answered, question.content, question.votes = said.name, content, {}


def _need(team: str) -> int:
    return QUORUM if team == PROVED else 1


def _seen(pauses: Mapping[int, Pause], said: Said) -> Iterator[int]:
    """The generations whose interrupt a bare answer names."""
    id_ = said.value["resume"][0]["interruptId"]
    return (generation for generation, pause in pauses.items() if id_ in pause.questions)


def _content(said: Said) -> bytes:
    entry = said.value["resume"][0]
    return orjson.dumps([entry.get("status"), entry.get("payload")], option=orjson.OPT_SORT_KEYS)


# -- why something may be refused: the fact that must be there -----------------------------------------------


def _stale(said: Said, pause: Pause | None, _: Question | None) -> bool:
    return "wrong-generation/" in said.name or (pause is not None and pause.forwarded)


def _not_yours(said: Said, pause: Pause | None, question: Question | None) -> bool:
    if "wrong-team/" in said.name or "wrong-interrupt/" in said.name:
        return True
    if "generation" not in said.value and pause is not None and pause.forwarded:
        return True  # a bare answer is about what is open now: the next pause, which does not ask this
    return question is not None and question.moved and said.team in ESCALATED


def _stale_attempt(said: Said, pause: Pause | None, question: Question | None) -> bool:
    if pause is None or question is None or question.answered is not None:
        return False
    return bool(said.value.get("attempt", pause.attempt) != pause.attempt)


def _claimed(said: Said, _: Pause | None, question: Question | None) -> bool:
    return question is not None and question.claimed not in (None, said.by)


def _already(said: Said, _: Pause | None, question: Question | None) -> bool:
    if question is None:
        return False
    own = question.votes.get(said.by)
    other = question.answered is not None and question.content != _content(said)
    return other or (own is not None and own[1] != _content(said))


def _disagrees(said: Said, _: Pause | None, question: Question | None) -> bool:
    return question is not None and any(one != _content(said) for _, one in question.votes.values())


_EXPLAINED: Final[Mapping[str, Callable[[Said, Pause | None, Question | None], bool]]] = {
    "STALE_GENERATION": _stale,
    "NOT_YOUR_INTERRUPT": _not_yours,
    "STALE_ATTEMPT": _stale_attempt,
    "CLAIMED": _claimed,
    "ALREADY_DECIDED": _already,
    "QUORUM_DISAGREES": _disagrees,
}


# -- what must be there, and nothing else --------------------------------------------------------------------


def _unjudged(evidence: Evidence, story: Story) -> Iterator[str]:
    """Every decision is judged once; those that cannot be read are dead letters."""
    for place, said in evidence.decisions.items():
        if story.judged[place] != 1:
            yield f"{place} ({said.name}) was judged {story.judged[place]} times"
    unreadable = [said for said in evidence.decisions.values() if "threadId" not in said.value]
    if len(unreadable) != len(evidence.dead):
        yield f"{len(unreadable)} decisions cannot be read, and there are {len(evidence.dead)} dead letters"


def _receipts(evidence: Evidence, story: Story) -> Iterator[str]:
    """A receipt for every judgement, and one for every answer that does not count after all."""
    for name in evidence.receipts.keys() | story.expected.keys():
        there = Counter(_told(receipt) for receipt in evidence.receipts.get(name, ()))
        if there != story.expected[name]:
            yield f"{name} has the receipts {dict(there)}, explained are {dict(story.expected[name])}"


def _told(receipt: Mapping[str, Any]) -> tuple[str, str | None]:
    if receipt["verdict"] != "refused":
        return receipt["verdict"], None
    return "refused", receipt["code"] or receipt["entries"][0]["code"]


def _batches(evidence: Evidence, story: Story) -> Iterator[str]:
    """The agent gets each batch once, and in it just the answers that counted."""
    for run, answers in story.sent.items():
        batch = evidence.resumes.get(run)
        if batch is None or evidence.given.get(run) != 1:
            yield f"the batch of {run} was given to the agent {evidence.given.get(run, 0)} times"
            continue
        told = {
            entry["interruptId"]: entry["metadata"]["holdshort"]["decisionId"] for entry in batch["resume"]
        }
        if told != answers:
            yield f"{run} has the answers {told}, counted have {answers}"
        yield from (f"{run}: {one} has lost what was said beside it" for one in _silenced(batch))
    for run in evidence.resumes.keys() - story.sent.keys():
        yield f"the batch of {run} was sent, and nobody decided it"


def _silenced(batch: Mapping[str, Any]) -> Iterator[str]:
    """People's answers that came without what they said beside them."""
    for entry in batch["resume"]:
        slip = (entry.get("payload") or {}).get("slip")
        said = {name: one for name, one in entry["metadata"].items() if name != "holdshort"}
        if slip is not None and said != beside(slip):
            yield entry["interruptId"]
