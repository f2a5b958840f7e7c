"""Whether virtual hosts run on each node, now and in the last minutes."""

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from ackscope.clock import Instant
from ackscope.topology import VHost
from diagnosis.contract import View

if TYPE_CHECKING:
    from ackscope.snapshot import HealthCheck
    from diagnosis.window import Series

VHOST_CHECK = "virtual-hosts"
_LATE = 30.0
"""Seconds by which readings of logins, virtual hosts and checks differ at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VHostOutage:
    """A time at which a virtual host was down, and after which all of them run.

    Attributes:
        name: the virtual host; None if only the health check showed it, or several were down.
        nodes: those on which it did not run.
        seconds: least duration: from the first to the last reading that showed it.
        since: the first of these readings.
    """

    name: str | None
    nodes: tuple[str, ...]
    seconds: float
    since: Instant


def stopped_on(view: View, vhost: VHost) -> tuple[str, ...]:
    """Return the running nodes on which the vhost does not run; a node that is down is a finding of its own."""
    stopped = {node.name for node in view.nodes if node.running is False}
    return tuple(
        sorted(node for node, state in vhost.cluster_state.items() if state != "running" and node not in stopped)
    )


def outage_within(view: View, since: Instant) -> VHostOutage | None:
    """Return the outage of a virtual host that began after a moment or little before it, and is over; None without."""
    checks: Series[tuple[HealthCheck, ...]] = view.window.readings("health")
    listed: Series[tuple[VHost, ...]] = view.window.readings("vhosts")
    failed = [seen.at for seen in checks if any(each.name == VHOST_CHECK and each.ok is False for each in seen.value)]
    down = [(seen.at, each.name, nodes) for seen in listed for each in seen.value if (nodes := stopped_on(view, each))]
    moments = sorted([*failed, *(at for at, _, _ in down)], key=lambda at: at.mono)
    latest = max((series[-1].at.mono for series in (checks, listed) if series), default=0.0)
    if not moments or moments[-1].mono >= latest or moments[0].since(since) < -_LATE:
        return None
    if down and listed[-1].at.mono <= down[-1][0].mono:
        # Only the check shows that it is over.
        failing = list(takewhile(lambda seen: seen.at not in failed, reversed(checks)))
        if not failing or failing[0].at.mono <= down[-1][0].mono:
            return None
    names = {name for _, name, _ in down}
    return VHostOutage(
        name=min(names) if len(names) == 1 else None,
        nodes=tuple(sorted({node for _, _, nodes in down for node in nodes})),
        seconds=moments[-1].since(moments[0]),
        since=moments[0],
    )
