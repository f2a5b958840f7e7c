"""probe-name-unresolved (H06): the address that clients use leads nowhere, while the nodes themselves can be reached.

Who is connected notices nothing; whoever connects anew fails.
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Severity, runbook
from ackscope.records import ProbeOutcome, Step
from diagnosis.contract import Impact, Rule, RuleResult, View
from diagnosis.rules.probing.outcomes import about, failing, lately
from diagnosis.words import some


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every address whose name is not found, and the common one that no node answers by."""
    shaken = lately(view, "handshake")
    reached = sorted(o.node for o in shaken if o.node and "tcp" in o.steps and failing(o, "tcp") is None)
    for outcome in shaken:
        name = failing(outcome, "dns")
        if name is not None:
            yield _finding(outcome, name, "dns", reached)
            continue
        way = failing(outcome, "tcp")
        # A node's own address that does not answer is that node's matter.
        if way is not None and not outcome.node and reached:
            yield _finding(outcome, way, "tcp", reached)


RULE = Rule(
    name="probe-name-unresolved",
    title="the address of the broker leads nowhere",
    impact=Impact.OUTAGE,
    needs=(),
    counts=False,
    evaluate=evaluate,
)


def _finding(outcome: ProbeOutcome, step: Step, which: str, reached: list[str]) -> Finding:
    what = "The name of the broker's address is not found" if which == "dns" else "The broker's address does not answer"
    others = f"; nodes {some(repr(node) for node in reached)} answer by their own addresses" if reached else ""
    return Finding(
        rule=RULE.name,
        severity=Severity.WARNING if step.failures > 1 else Severity.INFO,
        subject=about(outcome),
        since=None,
        summary=(
            f"{what}: new connections fail, those that stand go on{others}"
            + ("" if step.failures > 1 else "; seen once so far")
        ),
        cause=(
            f"{step.reason}."
            if which == "dns"
            else f"{step.reason}: a load balancer or proxy before the nodes is the suspect, for the nodes are there."
        ),
        evidence=(
            Evidence(
                what=f"step {which} of a new connection",
                value=f"{step.failures} of {step.attempts} failed; the latest: {step.reason}",
                expected="all succeed",
                source=f"probe handshake, step {which}",
            ),
        ),
        next_steps=(
            (
                "ask the name yourself, where the applications run: getent hosts NAME; dig NAME; then the name servers"
                if which == "dns"
                else "look at the load balancer: its health checks of the nodes, and its listener"
            ),
            "do not restart applications now: those that are connected go on as long as they stay so",
            "meanwhile, clients that can take several addresses may be given those of the nodes",
        ),
        runbook=runbook(RULE.name),
    )
