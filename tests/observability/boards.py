"""What the boards show: rows of panels, each with what it is for. grafana.py makes Grafana's JSON of it.

PromQL is what Prometheus 2.42 and 3 have in common.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

RATE: Final = "$__rate_interval"


class Query(NamedTuple):
    """One line of a panel, or one for each value of a label; `{{label}}` in its legend."""

    expr: str
    legend: str = ""


class Panel(NamedTuple):
    """One panel: a number (`red` from that value on), or lines over time."""

    title: str
    description: str
    queries: Sequence[Query]
    unit: str = "short"
    number: bool = False
    red: float | None = None
    stacked: bool = False


class Row(NamedTuple):
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


# -- Approvals ----------------------------------------------------------------------------------------------

LATE: Final = "answered|cancelled|expired|overdue|escalated|reminded"
TEAM: Final = 'team=~"$team"'
CONFLICTS: Final = "ALREADY_DECIDED|ANSWERED_ELSEWHERE|SEEN_SOMETHING_ELSE|STALE_ATTEMPT|STALE_GENERATION"


def quantile(of: float, histogram: str, by: str = "", where: str = "") -> str:
    """A quantile of a histogram as observed within the rate interval."""
    labels = f"{by}, le" if by else "le"
    return f"histogram_quantile({of}, sum by ({labels}) (rate({histogram}_bucket{{{where}}}[{RATE}])))"


def quantiles(histogram: str, by: str, where: str) -> list[Query]:
    return [
        Query(quantile(of, histogram, by, where), f"{{{{{by}}}}} {name}" if by else name)
        for of, name in ((0.5, "half within"), (0.95, "95 % within"))
    ]


APPROVALS: Final = (
    Row(
        "Now",
        (
            Panel(
                "Waiting",
                "Questions that are open now.",
                [Query(f"sum(holdshort_interrupts_pending{{{TEAM}}})")],
                number=True,
            ),
            Panel(
                "Oldest question",
                "How long the oldest open question has been waiting; empty if there is none.",
                [Query(f"time() - min(holdshort_interrupts_oldest_timestamp_seconds{{{TEAM}}})")],
                unit="s",
                number=True,
                red=4 * 3600,
            ),
            Panel(
                "Unrouted",
                "Open questions that no route gives to a team: nobody is asked.",
                [Query('sum(holdshort_interrupts_pending{team="unrouted"})')],
                number=True,
                red=1,
            ),
            Panel(
                "Held batches",
                "Complete batches of answers that are not sent, because asking again would not help.",
                [Query('sum(holdshort_batches{state="held"})')],
                number=True,
                red=1,
            ),
        ),
    ),
    Row(
        "Teams",
        (
            Panel(
                "Waiting, by team",
                "Open questions of each team.",
                [Query(f"sum by (team) (holdshort_interrupts_pending{{{TEAM}}})", "{{team}}")],
                stacked=True,
            ),
            Panel(
                "Age of the oldest question, by team",
                "How long each team's oldest open question has been waiting.",
                [
                    Query(
                        f"time() - min by (team) (holdshort_interrupts_oldest_timestamp_seconds{{{TEAM}}})",
                        "{{team}}",
                    )
                ],
                unit="s",
            ),
            Panel(
                "Time to a decision, by team",
                "From a question's opening to the answer that was accepted.",
                quantiles("holdshort_interrupt_decision_seconds", "team", TEAM),
                unit="s",
            ),
            Panel(
                "Time to a whole batch",
                "From a pause's opening to all its answers being sent on: the slowest team counts.",
                quantiles("holdshort_batch_wait_seconds", "", ""),
                unit="s",
            ),
            Panel(
                "Nobody answered in time, by team",
                "Questions of the last hour that were closed after their expiry, and what the router did at "
                "their deadlines.",
                [
                    Query(
                        "sum by (team) (increase(holdshort_interrupts_closed_total"
                        f'{{outcome="expired", {TEAM}}}[1h]))',
                        "{{team}} expired",
                    ),
                    Query(
                        "sum by (team, deed) (increase(holdshort_router_deeds_total"
                        f'{{deed=~"{LATE}", {TEAM}}}[1h])) > 0',
                        "{{team}} {{deed}}",
                    ),
                ],
            ),
            Panel(
                "Conflicts, by team",
                "Decisions of the last hour that came second, or for a question that is no longer open.",
                [
                    Query(
                        "sum by (team) (increase(holdshort_decisions_judged_total"
                        f'{{code=~"{CONFLICTS}", {TEAM}}}[1h]))',
                        "{{team}}",
                    )
                ],
            ),
        ),
    ),
    Row(
        "Flow",
        (
            Panel(
                "Opened, by team",
                "Questions per second.",
                [
                    Query(
                        f"sum by (team) (rate(holdshort_interrupts_opened_total{{{TEAM}}}[{RATE}]))",
                        "{{team}}",
                    )
                ],
                unit="cps",
            ),
            Panel(
                "Closed, by outcome",
                "Questions per second: settled, expired, superseded or abandoned.",
                [
                    Query(
                        f"sum by (outcome) (rate(holdshort_interrupts_closed_total{{{TEAM}}}[{RATE}]))",
                        "{{outcome}}",
                    )
                ],
                unit="cps",
            ),
            Panel(
                "Decisions, by verdict",
                "Entries of teams' decisions per second.",
                [
                    Query(
                        f"sum by (verdict) (rate(holdshort_decisions_judged_total{{{TEAM}}}[{RATE}]))",
                        "{{verdict}}",
                    )
                ],
                unit="cps",
            ),
            Panel(
                "Batches, by state",
                "Pauses with questions to teams: gathering answers, with the agent, or held.",
                [Query("sum by (state) (holdshort_batches)", "{{state}}")],
            ),
            Panel(
                "Refused inputs, by code",
                "Clients' inputs of the last hour that were refused.",
                [
                    Query(
                        "sum by (code) (increase(holdshort_records_judged_total"
                        '{service="gatekeeper", verdict="refused"}[1h])) > 0',
                        "{{code}}",
                    )
                ],
            ),
            Panel(
                "Response schemas",
                "Schemas of questions of the last hour; one that is refused can only be cancelled.",
                [
                    Query(
                        "sum by (result) (increase(holdshort_schema_admissions_total[1h]))",
                        "{{result}}",
                    )
                ],
            ),
        ),
    ),
)

# -- Engine -------------------------------------------------------------------------------------------------

SERVICE: Final = 'service=~"$service"'
OURS: Final = f"on (job, instance) group_left (service) holdshort_build_info{{{SERVICE}}}"


def per_second(counter: str, by: str, where: str = SERVICE) -> str:
    return f"sum by ({by}) (rate({counter}{{{where}}}[{RATE}]))"


ENGINE: Final = (
    Row(
        "Now",
        (
            Panel(
                "Lanes at work",
                "Lanes that run, over all processes.",
                [Query(f'sum(holdshort_lanes{{state="running", {SERVICE}}})')],
                number=True,
            ),
            Panel(
                "Lanes halted",
                "Lanes that wait for a person; /readyz says why and with which command to accept it.",
                [Query(f'sum(holdshort_lanes{{state="halted", {SERVICE}}})')],
                number=True,
                red=1,
            ),
            Panel(
                "Behind",
                "Offsets that have not been read yet, over all input topics.",
                [Query(f"sum(holdshort_input_lag_records{{{SERVICE}}})")],
                number=True,
            ),
            Panel(
                "Dead letters, last day",
                "Records that could not be used.",
                [Query(f"sum(increase(holdshort_dead_letters_total{{{SERVICE}}}[1d]))")],
                number=True,
                red=1,
            ),
        ),
    ),
    Row(
        "Records",
        (
            Panel(
                "Judged, by verdict",
                "Records and deadlines per second.",
                [
                    Query(
                        per_second("holdshort_records_judged_total", "service, verdict"),
                        "{{service}} {{verdict}}",
                    )
                ],
                unit="cps",
            ),
            Panel(
                "Refused",
                "The part of inputs and decisions that is refused.",
                [
                    Query(
                        per_second(
                            "holdshort_records_judged_total", "service", f'verdict="refused", {SERVICE}'
                        )
                        + " / "
                        + per_second(
                            "holdshort_records_judged_total",
                            "service",
                            f'verdict=~"admitted|accepted|refused", {SERVICE}',
                        ),
                        "{{service}}",
                    )
                ],
                unit="percentunit",
            ),
            Panel(
                "Behind, by topic",
                "Offsets behind the end of each input topic.",
                [
                    Query(
                        f"sum by (service, topic) (holdshort_input_lag_records{{{SERVICE}}})",
                        "{{service}} {{topic}}",
                    )
                ],
            ),
            Panel(
                "Dead letters, by code",
                "Of the last hour; replay them when their cause is mended.",
                [
                    Query(
                        "sum by (service, code) "
                        f"(increase(holdshort_dead_letters_total{{{SERVICE}}}[1h])) > 0",
                        "{{service}} {{code}}",
                    )
                ],
            ),
            Panel(
                "Runs not gated",
                "Runs of the last day that paused by a legacy event without being gated.",
                [Query("sum(increase(holdshort_runs_not_gated_total[1d]))", "runs")],
            ),
        ),
    ),
    Row(
        "Transactions",
        (
            Panel(
                "Transactions, by result",
                "Per second. After a failed one the log says what happened; a fenced one never happens.",
                [
                    Query(
                        per_second("holdshort_transactions_total", "service, result"),
                        "{{service}} {{result}}",
                    )
                ],
                unit="cps",
            ),
            Panel(
                "Time of a transaction",
                "From its first write to the broker's word.",
                quantiles("holdshort_transaction_seconds", "service", SERVICE),
                unit="s",
            ),
            Panel(
                "Records in a transaction",
                "The fuller, the less each record costs.",
                quantiles("holdshort_batch_records", "service", SERVICE),
            ),
            Panel(
                "Last turn",
                "How long ago the lane that is furthest behind last went round.",
                [
                    Query(
                        f"time() - min by (service) (holdshort_last_poll_timestamp_seconds{{{SERVICE}}})",
                        "{{service}}",
                    )
                ],
                unit="s",
            ),
        ),
    ),
    Row(
        "Lanes",
        (
            Panel(
                "Lanes, by state",
                "Over all processes.",
                [Query(f"sum by (service, state) (holdshort_lanes{{{SERVICE}}})", "{{service}} {{state}}")],
                stacked=True,
            ),
            Panel(
                "Restore",
                "How long lanes took to have their state again, on average since their process started.",
                [
                    Query(
                        f"sum by (service) (holdshort_restore_seconds_sum{{{SERVICE}}}) / "
                        f"sum by (service) (holdshort_restore_seconds_count{{{SERVICE}}})",
                        "{{service}}",
                    )
                ],
                unit="s",
            ),
            Panel(
                "Still to restore",
                "Offsets of the changelog that lanes being restored have still to read.",
                [
                    Query(
                        f"sum by (service) (holdshort_restore_remaining_records{{{SERVICE}}})", "{{service}}"
                    )
                ],
            ),
            Panel(
                "Rebalances and new beginnings",
                "Of the last hour: assignments by the group, and lanes that met trouble and began again.",
                [
                    Query(
                        f"sum by (service) (increase(holdshort_rebalances_total{{{SERVICE}}}[1h]))",
                        "{{service}} rebalances",
                    ),
                    Query(
                        f"sum by (service) (increase(holdshort_lane_retries_total{{{SERVICE}}}[1h]))",
                        "{{service}} retries",
                    ),
                ],
            ),
        ),
    ),
    Row(
        "Processes",
        (
            Panel(
                "State",
                "Keys with state.",
                [Query(f"sum by (service) (holdshort_state_entries{{{SERVICE}}})", "{{service}}")],
            ),
            Panel(
                "Bytes of state",
                "As the changelog holds it.",
                [Query(f"sum by (service) (holdshort_state_bytes{{{SERVICE}}})", "{{service}}")],
                unit="bytes",
            ),
            Panel(
                "Memory",
                "Resident, by process.",
                [Query(f"process_resident_memory_bytes * {OURS}", "{{service}} {{instance}}")],
                unit="bytes",
            ),
            Panel(
                "Processor",
                "Cores in use, by process.",
                [
                    Query(
                        f"rate(process_cpu_seconds_total[{RATE}]) * {OURS}",
                        "{{service}} {{instance}}",
                    )
                ],
            ),
            Panel(
                "Event loop late",
                "How late the loop of a service is: what blocks it, blocks every lane of its process.",
                [
                    Query(
                        quantile(0.99, "holdshort_event_loop_lag_seconds", "service", SERVICE), "{{service}}"
                    )
                ],
                unit="s",
            ),
            Panel(
                "Configuration",
                "Processes by the configuration in force: the first digits of its file's SHA-256.",
                [
                    Query(
                        f"sum by (service, digest) (holdshort_configuration_info{{{SERVICE}}})",
                        "{{service}} {{digest}}",
                    )
                ],
            ),
            Panel(
                "Restarts",
                "Of the last hour, by process.",
                [Query(f"changes(process_start_time_seconds[1h]) * {OURS}", "{{service}} {{instance}}")],
            ),
        ),
    ),
)

# -- the boards ----------------------------------------------------------------------------------------------


class Board(NamedTuple):
    """One dashboard; `label` is what its second variable chooses by, from the values of `metric`."""

    title: str
    description: str
    rows: Sequence[Row]
    label: str
    metric: str


ALL: Final = {
    "approvals": Board(
        "holdshort: Approvals",
        "What waits, on whom, for how long, and what became of it.",
        APPROVALS,
        "team",
        "holdshort_interrupts_pending",
    ),
    "engine": Board(
        "holdshort: Engine",
        "How gatekeeper and router are: lanes, transactions, lag, restores, processes.",
        ENGINE,
        "service",
        "holdshort_build_info",
    ),
}
