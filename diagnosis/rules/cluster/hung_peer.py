"""hung-peer (E07): a node of the cluster is frozen, and its healthy peers hang wherever they ask all nodes.

What asks every node (/api/nodes, /api/overview, /api/queues) does not come back, until net_ticktime has passed, while
health checks of the node that answers come at once. An overloaded management API is slow in its lists, but not in a
list of three nodes. Which node it is, only a handshake with each of them tells: TCP is accepted (by the kernel), AMQP
never answers. Source: gen_server calls without a time limit in rabbitmq-server; seen on 4.0 and 4.3.
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.records import ProbeOutcome
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.words import lasting, some

NAME = "hung-peer"

_APART = 2.0
"""Seconds between readings that are not of one and the same round."""

ASKS_ALL = ("overview", "nodes", "queues")
"""Families whose reading asks every node."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node whose handshake hangs, or one for the cluster where none is probed."""
    silent = _silent(view)
    frozen = sorted({outcome.node for outcome in view.outcomes_of("handshake") if outcome.node and hangs(outcome)})
    if len(silent) < len(ASKS_ALL) or not _answers(view):
        return
    if len(frozen) == 1:
        yield _finding(view, frozen[0])
        return
    yield _finding(view, None)
    yield InconclusiveReport(
        rule=NAME,
        because="a peer is frozen, and which one is not known: no probe shakes hands with each node",
        needs="name each node's own address under amqp.nodes in the exporter's configuration, and turn on the probe "
        "handshake; or try each by hand: rabbitmq-diagnostics -n NODE ping",
    )


def hangs(outcome: ProbeOutcome) -> bool:
    """Whether TCP is accepted and AMQP is not answered."""
    tcp, opening = outcome.steps.get("tcp"), outcome.steps.get("open")
    return bool(tcp and opening and tcp.reason is None and opening.reason is not None and tcp.attempts > tcp.failures)


def _silent(view: View) -> list[str]:
    """What asks all nodes, and has not answered for long enough."""
    found = []
    for family in ASKS_ALL:
        error, age = view.error(family), view.age(family)
        if error is not None and _timed_out(error) and (age is None or age >= view.thresholds.cluster.hung_for):
            found.append(family)
    return found


def _timed_out(error: str) -> bool:
    return any(words in error.lower() for words in ("no answer", "timed out", "timeout", "in time"))


def _answers(view: View) -> bool:
    """Whether health checks were answered after the others had gone silent."""
    age = view.age("health")
    if age is None or view.error("health") is not None or not view.checks:
        return False
    return all(known is None or age + _APART <= known for known in map(view.age, ASKS_ALL))


def _finding(view: View, name: str | None) -> FindingReport:
    age = max((view.age(family) or 0.0 for family in ASKS_ALL), default=0.0)
    evidence = [
        EvidenceReport(
            what=f"/api/{family}",
            value=f"no answer; last read {lasting(known)} ago" if (known := view.age(family)) else "no answer",
            expected="an answer within a second",
            source=f"/api/{family}",
        )
        for family in ASKS_ALL
    ]
    answered = sorted(check.name for check in view.checks.values())
    evidence.append(
        EvidenceReport(
            what="health checks of the node that is asked",
            value=f"{len(answered)} answered: {some(answered)}",
            expected="answered",
            source="/api/health/checks",
        )
    )
    evidence.extend(
        EvidenceReport(
            what=f"handshake with {outcome.node!r}",
            value=f"TCP accepted, AMQP: {outcome.steps['open'].reason}",
            expected="open within a second",
            source="probe: handshake",
        )
        for outcome in view.outcomes_of("handshake")
        if outcome.node and (outcome.node == name or (name is None and hangs(outcome)))
    )
    who = f"Node {name!r}" if name else "A node of the cluster"
    subject = Subject(kind="node", name=name, node=name) if name else Subject(kind="cluster", name=view.window.cluster)
    target = name or "NODE"
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=subject,
        since=None,
        summary=f"{who} is frozen: it takes connections and answers nothing, and whatever asks all nodes hangs with it"
        + (f", for {lasting(age)} by now" if age else ""),
        cause="Its virtual machine, its disk or its Erlang stands still, and its peers wait for it until they give "
        "it up "
        "(net_ticktime, 60 s unless set). Queues that live there are out of reach; publishes to them hang, then are "
        "nacked.",
        evidence=tuple(evidence),
        next_steps=(
            f"find it, and prove it: rabbitmq-diagnostics -n {target} ping --timeout 5   # does not answer",
            (
                "look at its host from outside: console of the virtual machine, paused or migrating, storage that "
                "hangs "
                "(dmesg: blocked for more than 120 seconds)"
            ),
            (
                "power-cycle it rather than wait: a node that wakes up after net_ticktime has lost its peers; on a "
                "cluster "
                "with Mnesia that is a network partition"
            ),
            "until then use the other nodes: take it out of the load balancer",
        ),
        runbook=runbook(NAME),
    )
