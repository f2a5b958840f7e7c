"""probe-node-differs (H03): one node answers otherwise than its peers; behind a load balancer nobody sees which.

Needs probes that run node by node (`amqp.nodes` of the exporter): streams of one name at several nodes are compared.
Nodes that compete for the processors of one machine are slow by turns, each now and then: one differs when its middle
is beyond what nine of ten take at its peers. A node that was just started is not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from ackscope.findings import Evidence, Finding, Severity, Subject, Suppressed, runbook
from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from diagnosis.contract import Explains, Impact, Rule, RuleResult, View
from diagnosis.relations import SAME_NODE
from diagnosis.rules.nodes.seen import just_started
from diagnosis.rules.probing.outcomes import clear, lately, name, shortly
from diagnosis.words import some

STEPS = (("handshake", "open"), ("rtt", "declare"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """What one node does otherwise.

    Attributes:
        seconds: what it takes, in the median; None where it fails.
        peers: what its peers take, in the median.
        samples: answers of it in the last minute.
        reason: why it fails.
    """

    what: str
    source: str
    seconds: float | None
    peers: float
    samples: int = 0
    reason: str | None = None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare the nodes, measure by measure; one finding a node. Few answers tell only what others tell as well."""
    enough = view.thresholds.probing.differs_samples
    odd: dict[str, list[Oddity]] = {}
    for measure, by_node in sorted(_measured(view).items()):
        for node, oddity in _odd(view, measure, by_node):
            odd.setdefault(node, []).append(oddity)
    for node, oddities in sorted(odd.items()):
        if all(each.reason is None and each.samples < enough for each in oddities):
            continue
        if _just_started(view, node):
            because = "it was started less than a minute ago, and is not warm yet"
            yield Suppressed(rule=RULE.name, subject=Subject(kind="node", name=node, node=node), because=because)
        else:
            yield _finding(view, node, oddities)


RULE = Rule(
    name="probe-node-differs",
    title="one node answers otherwise than its peers",
    impact=Impact.SLOWDOWN,
    needs=(),
    counts=False,
    evaluate=evaluate,
    explains=(Explains(("probe-path-slow",), SAME_NODE),),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one stream measured at one node: durations, or why it fails."""

    outcome: ProbeOutcome
    times: Quantiles
    reason: str | None

    @property
    def seconds(self) -> float | None:
        """The median; None where it fails, or nothing was timed."""
        return None if self.reason else self.times.p50


def _measured(view: View) -> dict[tuple[str, str], dict[str, Measured]]:
    """(what, source) -> node -> what was measured there."""
    found: dict[tuple[str, str], dict[str, Measured]] = {}
    for probe, step in STEPS:
        for outcome in lately(view, probe):
            if outcome.node:
                timed = outcome.steps.get(step)
                failed = _failed(outcome) or (timed.reason if timed is not None else None)
                times = timed.seconds if timed is not None else Quantiles()
                place = found.setdefault((f"{probe}, step {step}", f"probe {probe}, step {step}"), {})
                place[outcome.node] = Measured(outcome, times, failed)
    for outcome in lately(view, "confirm"):
        if outcome.node and outcome.queue_type != "none":
            place = found.setdefault((f"{name(outcome)}, sent to settled", f"probe {name(outcome)}"), {})
            place[outcome.node] = Measured(outcome, outcome.confirm, _failed(outcome))
    return found


def _failed(outcome: ProbeOutcome) -> str | None:
    return (outcome.reason or "no reason told") if outcome.state is ProbeState.FAILED else None


def _odd(view: View, measure: tuple[str, str], by_node: dict[str, Measured]) -> Iterator[tuple[str, Oddity]]:
    limits = view.thresholds.probing
    what, source = measure
    for node, each in sorted(by_node.items()):
        peers = [peer for other, peer in by_node.items() if other != node and peer.seconds is not None]
        if not peers:
            continue
        usual = median(peer.seconds or 0.0 for peer in peers)
        if each.reason is not None:
            yield node, Oddity(what=what, source=source, seconds=None, peers=usual, reason=each.reason)
        elif each.seconds is not None and each.seconds >= limits.differs * usual:
            more = each.seconds - usual
            beyond = each.seconds > median(peer.times.p90 or 0.0 for peer in peers)
            sure = all(clear(peer.outcome, more) for peer in (each, *peers))
            if more >= limits.differs_least and beyond and sure:
                samples = each.times.count
                yield node, Oddity(what=what, source=source, seconds=each.seconds, peers=usual, samples=samples)


def _just_started(view: View, name: str) -> bool:
    node = view.node(name)
    return node is not None and just_started(view, node)


def _finding(view: View, node: str, oddities: list[Oddity]) -> Finding:
    fails = [each for each in oddities if each.seconds is None]
    worst = max(oddities, key=lambda each: ((each.seconds or 0.0) - each.peers, each.what))
    limits = view.thresholds.probing
    # Few answers do not make a warning.
    many = [each for each in oddities if each.samples >= limits.differs_samples]
    slow = max(((each.seconds or 0.0) - each.peers for each in many), default=0.0)
    bad = bool(fails) or slow >= limits.differs_bad
    if fails:
        told = f"{some(each.what for each in fails)} fails there ({fails[0].reason}), and works at its peers"
    else:
        told = f"{worst.what} takes {shortly(worst.seconds or 0.0)} there and {shortly(worst.peers)} at its peers"
    return Finding(
        rule=RULE.name,
        severity=Severity.WARNING if bad else Severity.INFO,
        subject=Subject(kind="node", name=node, node=node),
        since=None,
        summary=f"Node {node!r} differs from its peers: {told}; clients that a load balancer sends there suffer",
        cause="The other nodes do well by the same probes, so it is this node, its machine or the way to it.",
        evidence=tuple(
            Evidence(
                what=each.what,
                value="fails" if each.seconds is None else shortly(each.seconds),
                expected=f"about {shortly(each.peers)}, as at its peers",
                source=each.source,
            )
            for each in oddities
        ),
        next_steps=(
            f"look at its CPU, disk and memory beside those of its peers: rabbitmq-diagnostics -n {node} status",
            "take it out of the load balancer until it is well again; its connections stay until they are closed",
            f"move its work away: rabbitmq-upgrade -n {node} drain   # undo it with: revive",
        ),
        runbook=runbook(RULE.name),
    )
