"""probe-path-slow (H02): the network between probe and broker takes the time, not the broker.

The kernel of the broker's machine answers a TCP connect without RabbitMQ, and every round trip takes at least as long.
With a baseline, a path that is as slow as usual is suppressed, and one that is far slower than usual is reported even
below the limit.
"""

from collections.abc import Iterator

from ackscope.baselines import Band
from ackscope.findings import Evidence, Facts, Finding, Involved, Severity, Suppressed, Unit, source
from ackscope.records import ProbeOutcome
from diagnosis.contract import RuleResult, View
from diagnosis.rules.probing._shared.outcomes import exceeds_own_error, median, probe_subject, recent
from diagnosis.usual import band_facts, baseline_evidence, is_more, is_sure, of_probe

NAME = "probe-path-slow"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every address that the handshake probe connects to."""
    limits = view.thresholds.probing
    round_trips = {outcome.node: median(outcome, "declare") for outcome in recent(view, "rtt")}
    for outcome in recent(view, "handshake"):
        connect, band = median(outcome, "tcp"), of_probe(view, outcome, "tcp_p50")
        if connect is None or not exceeds_own_error(outcome, connect):
            continue
        slower = connect >= view.thresholds.usual.path_least and is_more(view, connect, band)
        if connect < limits.path_slow and not slower:
            continue
        if isinstance(band, Band) and is_sure(view, band) and connect <= band.high:
            facts: Facts = {"connect_seconds": connect, "band_of": band_facts(band, "tcp_p50")}
            yield Suppressed(rule=NAME, subject=probe_subject(outcome), reason="usual_path", facts=facts)
            continue
        known = [seconds for seconds in round_trips.values() if seconds]
        round_trip = round_trips.get(outcome.node) or min(known, default=None)
        yield _finding(view, outcome, connect, round_trip)


def _finding(view: View, outcome: ProbeOutcome, connect: float, round_trip: float | None) -> Finding:
    limits = view.thresholds.probing
    evidence = [
        Evidence(
            key="connect",
            value=connect,
            unit=Unit.SECONDS,
            source=source("probe handshake", "tcp"),
            facts={"limit_seconds": limits.path_slow},
        ),
        *baseline_evidence(view, of_probe(view, outcome, "tcp_p50"), "tcp_p50"),
    ]
    if round_trip is not None:
        evidence.append(
            Evidence(key="round_trip", value=round_trip, unit=Unit.SECONDS, source=source("probe rtt", "declare"))
        )
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if connect >= limits.path_bad else Severity.INFO,
        subject=probe_subject(outcome),
        facts={
            "node": outcome.node or None,
            "connect_seconds": connect,
            "round_trip_seconds": round_trip,
            "broker_seconds": None if round_trip is None else max(0.0, round_trip - connect),
        },
        evidence=tuple(evidence),
        involved=Involved(nodes=(outcome.node,) if outcome.node else ()),
    )
