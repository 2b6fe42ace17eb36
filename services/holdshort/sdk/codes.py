"""The code and the sentences of the RUN_ERRORs that an agent service makes; RUN_LOST is the contract's."""

from typing import Final

AGENT_FAILED: Final = "AGENT_FAILED"

FAILED: Final = "The agent failed; its log says why."
TRUNCATED: Final = "The agent ended its run without saying how."
UNREADABLE: Final = "The input is not a RunAgentInput that the agent can read."
STOPPED: Final = "The agent was stopped while it ran this; what it had done is not known."
WORKER_LOST: Final = "The agent's worker was lost while it ran this; what it had done is not known."
TOO_LATE: Final = "The run reached the agent too late and was not started."
