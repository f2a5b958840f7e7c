"""Queues whose consumer went with a restart of a node and did not come back, as if its client did not reconnect."""

from dataclasses import dataclass

from ackscope.findings import Facts
from ackscope.snapshot import Node, Queue
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.purpose import had_consumer
from diagnosis.rules.nodes._shared.node_history import restarts
from diagnosis.rules.queues._shared.queue import is_private
from diagnosis.series import stretch

_DOWN, _LISTED = 120.0, 30.0
"""Seconds before its start for which a node was down, and after it until its lists show who came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLost:
    """A start of a node at which a queue lost its consumer, or may have.

    Attributes:
        seconds: since the node was started.
        seen: whether the queue was seen with a consumer before; False if the node was started before it was watched.
        before, again: other queues that had a consumer before, and those of them that have one again.
    """

    node: str
    seconds: float
    seen: bool
    before: int = 0
    again: int = 0

    def facts(self) -> Facts:
        """Return `{"node", "seconds", "seen", "before", "again"}`."""
        return {
            "node": self.node,
            "seconds": self.seconds,
            "seen": self.seen,
            "before": self.before,
            "again": self.again,
        }


def lost_by_restart(view: View, queue: Queue) -> ConsumerLost | None:
    """Return the start of a node since which a queue has no consumer; None without."""
    without = stretch(
        view.listings(queue), lambda older, newer: not older.value.consumers and not newer.value.consumers
    )
    if not without:
        return None
    for node in sorted(view.nodes, key=lambda each: each.name):
        if not node.running or node.uptime_seconds is None:
            continue
        uptime = node.uptime_seconds + (view.age("nodes") or 0.0)
        started = view.now.mono - uptime
        if restarts(view, node.name):
            lost_at = without[0].at.mono
            consumed, again = per_view(view, _Consumed).before(node.name, started)
            if queue.key in consumed and started - _DOWN <= lost_at <= started + _LISTED:
                others = len(consumed - {queue.key})
                return ConsumerLost(node=node.name, seconds=uptime, seen=True, before=others, again=again)
        elif _is_its_first(view, queue, node, uptime):
            return ConsumerLost(node=node.name, seconds=uptime, seen=False)
    return None


def _is_its_first(view: View, queue: Queue, node: Node, uptime: float) -> bool:
    """Return whether the node of a lasting queue was started shortly before it was watched."""
    here = queue.node == node.name and not is_private(queue)
    return here and uptime < view.thresholds.nodes.restart_recent and not had_consumer(view.listings(queue))


class _Consumed:
    """The queues that had a consumer when a node was last read before its start."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[str, tuple[frozenset[tuple[str, str]], int]] = {}

    def before(self, node: str, started: float) -> tuple[frozenset[tuple[str, str]], int]:
        """Return those that are still there, and how many of them have a consumer again."""
        if node not in self._known:
            earlier = [seen for seen in self._view.window.readings("queues") if seen.at.mono < started]
            there = earlier[-1].value if earlier else ()
            consumed = {each.key for each in there if each.consumers and not is_private(each)}
            now = [each for each in self._view.queues if each.key in consumed]
            again = sum(1 for each in now if each.consumers)
            self._known[node] = frozenset(each.key for each in now), again
        return self._known[node]
