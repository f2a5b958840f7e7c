"""hung-node (D16): the node takes connections and answers none, over HTTP and over AMQP: frozen, or its disk hangs.

Then nothing can be read, and what is told rests on how the readings failed and on what probes live through. A hung
node beside others that answer is hung-peer.
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.records import ProbeOutcome
from ackscope.reports import FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_cluster, of_node
from diagnosis.rules.nodes.silence import (
    errors,
    is_alone,
    is_mute,
    is_silent,
    is_unanswered,
    is_well,
    of_api,
    of_probes,
    silent_node,
)
from diagnosis.words import lasting

NAME = "hung-node"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the node that is asked, where it answers nothing any more."""
    if not is_silent(view) or not any(is_mute(error) for error in errors(view).values()):
        return
    if (view.age("health") or view.thresholds.nodes.hung_for) < view.thresholds.nodes.hung_for:
        return
    mine = [outcome for outcome in view.outcomes if _is_of(outcome, silent_node(view), alone=is_alone(view))]
    unanswered = sorted(
        (o for o in mine if is_unanswered(o)), key=lambda o: (o.probe != "handshake", o.probe, o.stream)
    )
    # One probe that is served proves that the node lives: then it is the management API that hangs.
    if unanswered and not any(is_well(outcome) and outcome.probe == "rtt" for outcome in mine):
        yield _finding(view, unanswered)


def _is_of(outcome: ProbeOutcome, node: str | None, *, alone: bool) -> bool:
    """Whether a probe's address leads to the node; of others but the handshake the node is that of their queue."""
    return alone or (outcome.probe == "handshake" and outcome.node in {"", node})


def _finding(view: View, unanswered: list[ProbeOutcome]) -> FindingReport:
    name, age = silent_node(view), view.age("health")
    subject = of_node(name) if name else of_cluster(view)
    reached = any(outcome.probe == "handshake" for outcome in unanswered)
    since = f" for {lasting(age)}" if age is not None else ""
    last = view.window.readings("health")
    how = "takes connections and answers none" if reached else "answers nothing"
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=subject,
        since=last[-1].at.iso() if last else None,
        summary=f"The {subject} {how}, neither over HTTP nor over AMQP{since}: nothing goes in or out",
        cause=(
            "The operating system still takes its connections and the broker does not come to them: the process is "
            "stopped, its machine is paused or out of memory, or its disk hangs."
            if reached
            else "It is hung or cannot be reached: whether connections are still taken is not known yet."
        ),
        evidence=(*of_api(view), *of_probes(unanswered)),
        next_steps=(
            "on its machine: is the process stopped (T), or waiting for the disk (D)? ps -o pid,stat,wchan -C beam.smp",
            "see whether the machine is short of something: uptime; free -m; dmesg -T | tail; iostat -x 1 3",
            "a virtual machine: see on its host whether it is paused, or moved just now",
            "stopped by a signal: kill -CONT PID",
            "nothing helps: restart it; kill -USR1 PID first leaves a crash dump that says what it did",
        ),
        runbook=runbook(NAME),
    )
