"""A team of the chaos world: its service answers at once what is not left to a person (the load)."""

import sys

from tests.chaos.story import slip_of

from holdshort.sdk.approver import Approval, Approver, Decision, Patience, approve, deny


def decision_of(approval: Approval) -> Decision:
    """The answer that the question itself asks for, always the same one."""
    slip = {"slip": slip_of(approval)}
    return approve(slip) if approval.args["said"] == "approve" else deny(slip)


def main(team: str) -> None:
    app = Approver(team, patience=Patience(tries=100, first_pause=1.0, longest_pause=5.0))

    @app.on()
    async def decide(approval: Approval) -> Decision | None:
        return None if approval.args["who"] == "person" else decision_of(approval)

    app.run()


if __name__ == "__main__":
    main(sys.argv[1])
