"""probe-node-differs (H03): one node responds differently from its peers; behind a load balancer nobody sees which.

Needs probes that run node by node (`amqp.nodes` of the exporter): streams of one name at several nodes are compared.
Nodes that share the processors of one machine are each slow now and then, so a node differs only if its median exceeds
the p90 of its peers. A node that was just started is not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from ackscope.findings import Evidence, Finding, Involved, Severity, Subject, Suppressed, Unit, source
from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import just_started
from diagnosis.rules.probing._shared.outcomes import exceeds_own_error, recent, stream_name

NAME = "probe-node-differs"

STEPS = (("handshake", "open"), ("rtt", "declare"))

Measurement = tuple[str, str]
"""Stream of a probe, and its step: `("handshake", "open")`, `("confirm.quorum", "confirm")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measurement in which a node differs.

    Attributes:
        seconds: median at the node; None if the step fails.
        peers: median of its peers' medians, seconds.
        samples: number of values at the node in the last minute.
        reason: why the step fails; None if it does not.
    """

    measurement: Measurement
    seconds: float | None
    peers: float
    samples: int = 0
    reason: str | None = None

    @property
    def excess(self) -> float:
        """Seconds by which the node is slower than its peers."""
        return (self.seconds or 0.0) - self.peers


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare the nodes per measurement and yield one finding per node; few samples do not count alone."""
    enough = view.thresholds.probing.differs_samples
    found: dict[str, list[Difference]] = {}
    for measurement, by_node in sorted(_measured(view).items()):
        for node, difference in _differences(view, measurement, by_node):
            found.setdefault(node, []).append(difference)
    for node, differences in sorted(found.items()):
        if all(each.reason is None and each.samples < enough for each in differences):
            continue
        if _just_started(view, node):
            subject = Subject(kind="node", name=node, node=node)
            yield Suppressed(rule=NAME, subject=subject, reason="just_started")
        else:
            yield _finding(view, node, differences)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one stream measured at one node: durations, or why it fails."""

    outcome: ProbeOutcome
    times: Quantiles
    reason: str | None

    @property
    def seconds(self) -> float | None:
        """Median in seconds; None if the step fails or was not timed."""
        return None if self.reason else self.times.p50


def _measured(view: View) -> dict[Measurement, dict[str, Measured]]:
    """Return what was measured, by measurement and node."""
    found: dict[Measurement, dict[str, Measured]] = {}
    for probe, step in STEPS:
        for outcome in recent(view, probe):
            if outcome.node:
                timed = outcome.steps.get(step)
                failed = _failed(outcome) or (timed.reason if timed is not None else None)
                times = timed.seconds if timed is not None else Quantiles()
                found.setdefault((probe, step), {})[outcome.node] = Measured(outcome, times, failed)
    for outcome in recent(view, "confirm"):
        if outcome.node and outcome.queue_type != "none":
            by_node = found.setdefault((stream_name(outcome), "confirm"), {})
            by_node[outcome.node] = Measured(outcome, outcome.confirm, _failed(outcome))
    return found


def _failed(outcome: ProbeOutcome) -> str | None:
    return (outcome.reason or "no reason given") if outcome.state is ProbeState.FAILED else None


def _differences(
    view: View, measurement: Measurement, by_node: dict[str, Measured]
) -> Iterator[tuple[str, Difference]]:
    limits = view.thresholds.probing
    for node, each in sorted(by_node.items()):
        peers = [peer for other, peer in by_node.items() if other != node and peer.seconds is not None]
        if not peers:
            continue
        normal = median(peer.seconds or 0.0 for peer in peers)
        if each.reason is not None:
            yield node, Difference(measurement=measurement, seconds=None, peers=normal, reason=each.reason)
        elif each.seconds is not None and each.seconds >= limits.differs * normal:
            excess = each.seconds - normal
            beyond = each.seconds > median(peer.times.p90 or 0.0 for peer in peers)
            sure = all(exceeds_own_error(peer.outcome, excess) for peer in (each, *peers))
            if excess >= limits.differs_least and beyond and sure:
                yield (
                    node,
                    Difference(measurement=measurement, seconds=each.seconds, peers=normal, samples=each.times.count),
                )


def _just_started(view: View, name: str) -> bool:
    node = view.node(name)
    return node is not None and just_started(view, node)


def _finding(view: View, node: str, differences: list[Difference]) -> Finding:
    failing = [each for each in differences if each.seconds is None]
    worst = max(differences, key=lambda each: (each.excess, each.measurement))
    limits = view.thresholds.probing
    # Few samples do not make a warning.
    slowest = max((each.excess for each in differences if each.samples >= limits.differs_samples), default=0.0)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if failing or slowest >= limits.differs_bad else Severity.INFO,
        subject=Subject(kind="node", name=node, node=node),
        facts={
            "failing": [" ".join(each.measurement) for each in failing],
            "reason": failing[0].reason if failing else None,
            "worst": " ".join(worst.measurement),
            "worst_seconds": worst.seconds,
            "peers_seconds": worst.peers,
        },
        evidence=tuple(
            Evidence(
                key="measurement",
                value="fails" if each.seconds is None else each.seconds,
                unit=Unit.SECONDS,
                source=source(f"probe {each.measurement[0]}", each.measurement[1]),
                facts={"stream": each.measurement[0], "step": each.measurement[1], "peers_seconds": each.peers},
            )
            for each in differences
        ),
        involved=Involved(nodes=(node,)),
    )
