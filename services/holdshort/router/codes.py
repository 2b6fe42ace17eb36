"""The registry of what may be said against an entry of a decision, beside the contract's own codes."""

from enum import StrEnum


class DecisionCode(StrEnum):
    """The stable name of a refusal in a receipt."""

    MALFORMED_DECISION = "MALFORMED_DECISION"
    UNKNOWN_ACTION = "UNKNOWN_ACTION"
    NOT_YOUR_INTERRUPT = "NOT_YOUR_INTERRUPT"
    STALE_GENERATION = "STALE_GENERATION"
    STALE_ATTEMPT = "STALE_ATTEMPT"
    CLAIMED = "CLAIMED"
    SEEN_SOMETHING_ELSE = "SEEN_SOMETHING_ELSE"
    UNKNOWN_ROUTE = "UNKNOWN_ROUTE"
    SIGNATURE_REQUIRED = "SIGNATURE_REQUIRED"
    SIGNATURE_FORGED = "SIGNATURE_FORGED"
    SIGNATURE_REPLAYED = "SIGNATURE_REPLAYED"
    SIGNATURE_RETARGETED = "SIGNATURE_RETARGETED"
    SIGNATURE_EDITED = "SIGNATURE_EDITED"
    UNKNOWN_KEY = "UNKNOWN_KEY"
    DECIDER_NOT_PROVEN = "DECIDER_NOT_PROVEN"
    REQUESTER_MAY_NOT_DECIDE = "REQUESTER_MAY_NOT_DECIDE"
    NOTHING_TO_CONFIRM = "NOTHING_TO_CONFIRM"
    ALREADY_DECIDED = "ALREADY_DECIDED"
    ANSWERED_ELSEWHERE = "ANSWERED_ELSEWHERE"
    QUORUM_DISAGREES = "QUORUM_DISAGREES"
    DEADLINE_PASSED = "DEADLINE_PASSED"
    CANCELLED_BY_DENIAL = "CANCELLED_BY_DENIAL"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    DecisionCode.MALFORMED_DECISION: "The record is not a decision: it needs a threadId and a resume.",
    DecisionCode.UNKNOWN_ACTION: "The action is not one that is known here.",
    DecisionCode.NOT_YOUR_INTERRUPT: "The interrupt is not open for this team.",
    DecisionCode.STALE_GENERATION: "The question that this answers is not the one that is open.",
    DecisionCode.STALE_ATTEMPT: "The question has been put again since; look at it and decide anew.",
    DecisionCode.CLAIMED: "Somebody else has claimed it; wait for their decision, release or lease.",
    DecisionCode.SEEN_SOMETHING_ELSE: "What was seen is not what is open; look again and decide anew.",
    DecisionCode.UNKNOWN_ROUTE: "The router does not know the question's route yet; send again.",
    DecisionCode.SIGNATURE_REQUIRED: "The route takes signed decisions only.",
    DecisionCode.SIGNATURE_FORGED: "The signature is not one of the key that it names.",
    DecisionCode.SIGNATURE_REPLAYED: (
        "The signature belongs to another decision or an earlier attempt, or has been used before."
    ),
    DecisionCode.SIGNATURE_RETARGETED: "The signature was made for another question.",
    DecisionCode.SIGNATURE_EDITED: "What was signed is not what stands in the decision.",
    DecisionCode.UNKNOWN_KEY: "The team has no such key, or it is not valid any more.",
    DecisionCode.DECIDER_NOT_PROVEN: "It matters who decides: sign, or decide where people are known.",
    DecisionCode.REQUESTER_MAY_NOT_DECIDE: "The agent was asked by this person, or it is not known by whom.",
    DecisionCode.NOTHING_TO_CONFIRM: "There is no answer of an earlier attempt to confirm.",
    DecisionCode.ALREADY_DECIDED: "It has been decided already, and differently; the first decision stands.",
    DecisionCode.ANSWERED_ELSEWHERE: "Somebody else's answer counted, or is with the agent.",
    DecisionCode.QUORUM_DISAGREES: "Others of the quorum have answered differently; answers must be equal.",
    DecisionCode.DEADLINE_PASSED: "The deadline passed before enough people had decided.",
    DecisionCode.CANCELLED_BY_DENIAL: "Another question of the pause was denied, so this one was cancelled.",
}
