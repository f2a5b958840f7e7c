"""probe-path-slow (H02): the network between probe and broker takes the time, not the broker.

A TCP connect is answered by the kernel of the broker's machine: RabbitMQ plays no part in it. What it takes, every
question to the broker takes at least. Where it is known what is usual at this hour, a way that is as long as ever is
left alone, and one that is far longer than usual is told though it is short.
"""

from collections.abc import Iterator

from ackscope.baselines import Band
from ackscope.findings import Evidence, Finding, Severity, Suppressed, runbook
from ackscope.records import ProbeOutcome
from diagnosis.contract import Impact, Rule, RuleResult, View
from diagnosis.rules.probing.outcomes import about, clear, lately, median, shortly
from diagnosis.usual import is_more, is_sure, line, of_probe, spelt


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every address that the handshake probe connects to."""
    limits = view.thresholds.probing
    trips = {outcome.node: median(outcome, "declare") for outcome in lately(view, "rtt")}
    for outcome in lately(view, "handshake"):
        way, band = median(outcome, "tcp"), of_probe(view, outcome, "tcp_p50")
        if way is None or not clear(outcome, way):
            continue
        longer = way >= view.thresholds.usual.path_least and is_more(view, way, band)
        if way < limits.path_slow and not longer:
            continue
        if isinstance(band, Band) and is_sure(view, band) and way <= band.high:
            because = f"a TCP connect takes {shortly(way)}: {spelt(band, 'tcp_p50')}; it is the distance"
            yield Suppressed(rule=RULE.name, subject=about(outcome), because=because)
            continue
        trip = trips.get(outcome.node) or (min(known) if (known := [t for t in trips.values() if t]) else None)
        severity = Severity.WARNING if way >= limits.path_bad else Severity.INFO
        yield _finding(view, outcome, way, trip, severity)


RULE = Rule(
    name="probe-path-slow",
    title="the network to the broker takes long",
    impact=Impact.SLOWDOWN,
    needs=(),
    counts=False,
    evaluate=evaluate,
)


def _finding(view: View, outcome: ProbeOutcome, way: float, trip: float | None, severity: Severity) -> Finding:
    whom = f"node {outcome.node!r}" if outcome.node else "the broker"
    evidence = [
        Evidence(
            what="TCP connect, median of the last minute",
            value=shortly(way),
            expected=f"below {shortly(view.thresholds.probing.path_slow)} within one site",
            source="probe handshake, step tcp",
        )
    ]
    evidence += line(view, of_probe(view, outcome, "tcp_p50"), "tcp_p50")
    cause = f"A TCP connect to {whom} takes {shortly(way)}, and RabbitMQ plays no part in that: it is the way there."
    if trip is not None:
        evidence.append(
            Evidence(what="question and answer, median", value=shortly(trip), source="probe rtt, step declare")
        )
        cause += f" Of the {shortly(trip)} that a question takes, {shortly(max(0.0, trip - way))} are the broker's."
    return Finding(
        rule=RULE.name,
        severity=severity,
        subject=about(outcome),
        since=None,
        summary=(
            f"The network between the probe and {whom} takes {shortly(way)} there and back: every confirm, ack and "
            "declare from here takes at least that"
        ),
        cause=cause,
        evidence=tuple(evidence),
        next_steps=(
            "see whether applications sit where the probe does: run `ackscope probe rtt --amqp URL` beside one of them",
            "see where the time goes: mtr or traceroute from the probe's machine; is a proxy or VPN between?",
            "is the distance meant? Then a larger prefetch, and publishes that do not wait for each confirm",
        ),
        runbook=runbook(RULE.name),
    )
