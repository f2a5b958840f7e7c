"""The state of a cluster: which nodes run, since when others do not, its metadata store, its partitions."""

from ackscope.records import ProbeOutcome
from ackscope.snapshot import Node
from diagnosis.memo import per_view
from diagnosis.rules.nodes._shared.node_history import trailing
from diagnosis.series import span
from diagnosis.view import View
from diagnosis.window import Series

KHEPRI_FLAG = "khepri_db"
"""The feature flag of clusters before 4.3 that keep their metadata in Khepri."""


def stopped_nodes(view: View) -> frozenset[str]:
    """Return the names of nodes that do not run, without those whose state is not reported."""
    return per_view(view, _stopped)


def _stopped(view: View) -> frozenset[str]:
    return frozenset(node.name for node in view.nodes if node.running is False)


def confirmed_stopped(view: View) -> frozenset[str]:
    """Return stopped nodes that have not run for several readings; `online` of a queue may still name them."""
    return per_view(view, _confirmed_stopped)


def _confirmed_stopped(view: View) -> frozenset[str]:
    seen = view.thresholds.cluster.seen
    return frozenset(name for name in stopped_nodes(view) if span(absence(view, name)) >= seen)


def absence(view: View, name: str) -> Series[Node]:
    """The latest consecutive readings in which a node does not run."""
    return trailing(view.node_history(name), lambda node: node.running is False)


def running_nodes(view: View) -> tuple[Node, ...]:
    """The nodes that run, by name."""
    return tuple(sorted((node for node in view.nodes if node.running), key=lambda node: node.name))


def other_node(view: View, name: str | None) -> str | None:
    """A running node other than this one, for commands; None if none is known."""
    return next((node.name for node in running_nodes(view) if node.name != name), None)


def uses_khepri(view: View) -> bool | None:
    """Whether the cluster keeps its metadata in Khepri; None if the broker does not report it."""
    if view.version is None:
        return None
    if view.version < (3, 13):
        return False
    if view.version >= (4, 3):
        return True
    flag = next((each for each in view.features if each.name == KHEPRI_FLAG and not each.deprecated), None)
    return None if flag is None else flag.state == "enabled"


def partitioned(view: View) -> Series[tuple[Node, ...]]:
    """The latest consecutive readings in which a node reports a partition."""
    return trailing(view.window.readings("nodes"), lambda nodes: any(node.partitions for node in nodes))


def accepts_but_hangs(outcome: ProbeOutcome) -> bool:
    """Return whether the node accepts TCP connections but does not answer the AMQP handshake."""
    tcp, opening = outcome.steps.get("tcp"), outcome.steps.get("open")
    return bool(tcp and opening and tcp.reason is None and opening.reason is not None and tcp.attempts > tcp.failures)
