"""probe-redelivered (H05): messages of the delivery probe came again; its connection broke off and was made anew.

The same happens to every consumer on that way: what it held comes again with `redelivered` set, and may be worked
off twice.
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Severity, runbook
from ackscope.records import Outcome, ProbeOutcome
from diagnosis.contract import Impact, Rule, RuleResult, View
from diagnosis.rules.probing.outcomes import about, lately, name
from diagnosis.words import amount


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every stream whose last minute was not clean and that had messages again."""
    for outcome in lately(view, "delivery"):
        if (outcome.redeliveries or outcome.duplicates) and not outcome.success:
            yield _finding(outcome)


RULE = Rule(
    name="probe-redelivered",
    title="messages of the probe came again",
    impact=Impact.RISK,
    needs=(),
    counts=False,
    evaluate=evaluate,
)


def _finding(outcome: ProbeOutcome) -> Finding:
    again, twice = outcome.redeliveries or 0, outcome.duplicates or 0
    lost = outcome.outcomes.get(Outcome.LOST.value, 0)
    if outcome.connects > 1:
        cause = (
            f"The probe's connection was made {outcome.connects} times since it began: what was delivered and not "
            "acknowledged yet came again each time."
        )
    else:
        cause = "Its connection stood, so the broker gave messages back to the queue: its leader moved."
    return Finding(
        rule=RULE.name,
        severity=Severity.INFO,
        subject=about(outcome),
        since=None,
        summary=(
            f"{amount(again, 'message')} of the probe {name(outcome)} came with redelivered set, {twice} of them "
            "twice: consumers on this way see the same"
        ),
        cause=cause,
        evidence=(
            Evidence(
                what="redelivered, delivered twice",
                value=f"{again} and {twice} since the probe began",
                expected="0",
                source=f"probe {name(outcome)}, redeliveries, duplicates",
            ),
            Evidence(
                what="connections made, publishes that ended with one",
                value=f"{outcome.connects} and {lost}",
                expected="1 and 0",
                source=f"probe {name(outcome)}, connects, outcomes",
            ),
        ),
        next_steps=(
            "see why connections end: grep -i 'closing AMQP connection\\|missed heartbeats' in the log of the node",
            "see whether a node restarted or a leader moved: rabbitmq-diagnostics cluster_status; uptime in /api/nodes",
            "see that consumers can take a message twice: by a key of its content, not by the redelivered flag alone",
        ),
        runbook=runbook(RULE.name),
    )
