"""The demo's teams as services: a policy decides at once what people would decide."""

from holdshort.sdk.approver import Approval, Approver, Decision, approve, deny

MOST = 100


def approver(team: str) -> Approver:
    """The approver of one team, as a user would write it."""
    app = Approver(team)

    @app.on(tool="transfer_money")
    async def small_sums_only(approval: Approval) -> Decision:
        amount = min(approval.args["amount"], MOST)
        return approve(edited_args=approval.args | {"amount": amount}, by="kim", comment="the daily limit")

    @app.on(tool="migrate_database")
    async def not_today(approval: Approval) -> Decision:
        return deny(by="sasha", comment=f"no changes to {approval.args['table']} before the holidays")

    return app
