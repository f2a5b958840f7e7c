"""Films of a cluster of three nodes."""

from ackscope.findings import flat
from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import queue

ONE, TWO, THREE = "rabbit@one", "rabbit@two", "rabbit@three"
ALL = (ONE, TWO, THREE)


def node(name, **fields):
    """A node that runs."""
    return Node(name=name, **{"running": True, "being_drained": False, "partitions": (), "links": (), **fields})


def nodes(*stopped, **fields):
    """Three nodes, some of which do not run."""
    return tuple(
        Node(name=name, running=False, being_drained=False) if name in stopped else node(name, **fields) for name in ALL
    )


def replicated(name="orders", *, online=ALL, members=ALL, **fields):
    """A quorum queue."""
    return queue(name, **{"type": "quorum", "leader": ONE, "members": members, "online": online, **fields})


def reported(result, rule):
    """Severity, kind and name of each finding of a rule, also of consequences."""
    return [
        (finding.severity.value, finding.subject.kind, finding.subject.name)
        for finding in flat(result.findings)
        if finding.rule == rule
    ]


def finding_of(result, rule):
    """Return the only finding of a rule."""
    (finding,) = (each for each in flat(result.findings) if each.rule == rule)
    return finding


def cause_of(result, rule):
    """Return the rule of the finding that explains the finding of this rule."""
    (cause,) = (each.rule for each in result.findings for below in each.consequences if below.rule == rule)
    return cause
