"""The registry of what may be said against an entry of a decision, beside the contract's own codes."""

from enum import StrEnum


class DecisionCode(StrEnum):
    """The stable name of a refusal in a receipt."""

    MALFORMED_DECISION = "MALFORMED_DECISION"
    NOT_YOUR_INTERRUPT = "NOT_YOUR_INTERRUPT"
    STALE_GENERATION = "STALE_GENERATION"
    SEEN_SOMETHING_ELSE = "SEEN_SOMETHING_ELSE"
    ALREADY_DECIDED = "ALREADY_DECIDED"
    ANSWERED_ELSEWHERE = "ANSWERED_ELSEWHERE"
    UNKNOWN_ACTION = "UNKNOWN_ACTION"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    DecisionCode.MALFORMED_DECISION: "The record is not a decision: it needs a threadId and a resume.",
    DecisionCode.NOT_YOUR_INTERRUPT: "The interrupt is not open for this team.",
    DecisionCode.STALE_GENERATION: "The question that this answers is not the one that is open.",
    DecisionCode.SEEN_SOMETHING_ELSE: "What was seen is not what is open; look again and decide anew.",
    DecisionCode.ALREADY_DECIDED: "It has been decided already, and differently; the first decision stands.",
    DecisionCode.ANSWERED_ELSEWHERE: "Somebody else's answer is with the agent; nothing is asked meanwhile.",
    DecisionCode.UNKNOWN_ACTION: "The action is not one that is known here.",
}
