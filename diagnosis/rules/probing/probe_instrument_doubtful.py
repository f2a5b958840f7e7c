"""probe-instrument-doubtful: the probes were late themselves; what they measured is their own machine, not the broker.

Their own error is known: how late a message was sent, and how late their clock woke.
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Severity, Subject, runbook
from ackscope.records import ProbeOutcome
from diagnosis.contract import Impact, Rule, RuleResult, View
from diagnosis.rules.probing.outcomes import lately, name, own_error, shortly
from diagnosis.words import some

PROBES = ("handshake", "rtt", "confirm", "delivery", "redelivery", "prefetch", "nack")


def evaluate(view: View) -> Iterator[RuleResult]:
    """Collect the streams that the probe process itself spoiled: they share one machine, so it is one finding."""
    spoiled = [outcome for outcome in lately(view, *PROBES) if outcome.doubtful and _spoils(view, outcome)]
    if spoiled:
        yield _finding(view, sorted(spoiled, key=lambda each: (-own_error(each), name(each), each.node)))


RULE = Rule(
    name="probe-instrument-doubtful",
    title="the probes' own machine is too slow to measure",
    impact=Impact.RISK,
    needs=(),
    counts=False,
    evaluate=evaluate,
)


def _spoils(view: View, outcome: ProbeOutcome) -> bool:
    """Whether it was late, and not merely short of messages."""
    limits = view.thresholds.probing
    return own_error(outcome) >= max(limits.doubt_least, limits.doubt_share * (outcome.confirm.p50 or 0.0))


def _finding(view: View, spoiled: list[ProbeOutcome]) -> Finding:
    worst = spoiled[0]
    late = own_error(worst)
    return Finding(
        rule=RULE.name,
        severity=Severity.WARNING if late >= view.thresholds.probing.doubt_bad else Severity.INFO,
        subject=Subject(kind="probe", name="all"),
        since=None,
        summary=(
            f"The probes themselves were late by up to {shortly(late)} (p99): do not believe the latencies of "
            f"{some(dict.fromkeys(name(each) for each in spoiled))} now"
        ),
        cause="The machine that the probes run on had no time for them; the broker may be well.",
        evidence=tuple(
            Evidence(
                what=f"probe {name(each)}",
                value=f"late by {shortly(own_error(each))} (p99)",
                expected=f"below {shortly(max(0.001, 0.1 * (each.confirm.p50 or 0.0)))}",
                source="probe, send_delay and loop_lag",
            )
            for each in spoiled[:3]
        ),
        next_steps=(
            "see what else runs on that machine: top; in a container, whether its CPU is throttled",
            "give the exporter a CPU of its own, or a lower rate (probes.confirm.rate)",
            "findings that rest on the broker's own figures are not touched by this",
        ),
        runbook=runbook(RULE.name),
    )
