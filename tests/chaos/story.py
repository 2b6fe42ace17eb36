"""What a client of the chaos world asks for, in the words that load, agent and teams share."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Final, Literal

from holdshort.sdk.approvals import Approval

TOOLS: Final = {"transfer_money": "payments", "migrate_database": "dba"}
TEAMS: Final = tuple(TOOLS.values())
CHUNKS: Final = 3  # numbered pieces of text in every run, so that a lost or doubled one shows
APPROVED_OF_TEN: Final = 8

Who = Literal["person", "service"]
Said = Literal["approve", "deny"]


@dataclass(frozen=True, slots=True)
class Question:
    """One tool call that needs a team: who decides it there (the load, or the team's service), and how."""

    tool: str
    who: Who
    said: Said

    @property
    def arguments(self) -> str:
        return json.dumps({"who": self.who, "said": self.said})


def questions(random: Random) -> list[Question]:
    """One or two, of different teams."""
    tools = random.sample(list(TOOLS), random.choice((1, 2)))
    return [Question(tool, random.choice(("person", "service")), _said(random)) for tool in tools]


def _said(random: Random) -> Said:
    return "approve" if random.randrange(10) < APPROVED_OF_TEN else "deny"


def wish(asked: Sequence[Question]) -> str:
    """The text of the user's message that makes the agent ask these questions (none: just answer)."""
    return json.dumps([asdict(question) for question in asked])


def read_wish(text: str) -> list[Question]:
    return [Question(**question) for question in json.loads(text)]


def slip_of(approval: Approval) -> str:
    """What an answer carries through to the tool, so that what was done can be traced to who allowed it."""
    return f"{approval.approval_id}.{approval.attempt}"
