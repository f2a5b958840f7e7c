"""probe-name-unresolved (H06): the address that clients use is broken, while the nodes themselves can be reached.

Connected clients notice nothing; new connections fail.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, source
from ackscope.records import ProbeOutcome, ProbeStep
from diagnosis.contract import RuleResult, View
from diagnosis.rules.probing._shared.outcomes import failing, probe_subject, recent

NAME = "probe-name-unresolved"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every address whose name does not resolve, and the shared address if no node answers on it."""
    handshakes = recent(view, "handshake")
    reached = sorted(o.node for o in handshakes if o.node and "tcp" in o.steps and failing(o, "tcp") is None)
    for outcome in handshakes:
        lookup = failing(outcome, "dns")
        if lookup is not None:
            yield _finding(outcome, lookup, "dns", reached)
            continue
        connect = failing(outcome, "tcp")
        # A node whose own address does not answer is another rule's finding.
        if connect is not None and not outcome.node and reached:
            yield _finding(outcome, connect, "tcp", reached)


def _finding(outcome: ProbeOutcome, step: ProbeStep, which: str, reached: list[str]) -> Finding:
    once = step.failures <= 1
    return Finding(
        rule=NAME,
        severity=Severity.INFO if once else Severity.WARNING,
        subject=probe_subject(outcome),
        facts={
            "step": which,
            "reason": step.reason,
            "failures": step.failures,
            "attempts": step.attempts,
            "reached_nodes": reached,
        },
        certainty=Certainty.EARLY if once else Certainty.CERTAIN if which == "dns" else Certainty.LIKELY,
        evidence=(Evidence(key="step", source=source("probe handshake", which)),),
        involved=Involved(nodes=tuple(reached)),
    )
