"""History of a node: latest readings, restarts and slopes; also node and cluster as subjects of findings."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from ackscope.findings import Subject
from ackscope.snapshot import HealthCheck, Node
from diagnosis.series import T, stretch
from diagnosis.view import View
from diagnosis.window import Series


def node_subject(name: str) -> Subject:
    """A node as the subject of a finding."""
    return Subject(kind="node", name=name, node=name)


def cluster_subject(view: View) -> Subject:
    """The cluster as the subject of a finding."""
    return Subject(kind="cluster", name=view.window.cluster)


def node_or_cluster(view: View, name: str | None) -> Subject:
    """The node as the subject, or the cluster where the node is not known."""
    return node_subject(name) if name else cluster_subject(view)


def trailing(series: Series[T], holds: Callable[[T], bool]) -> Series[T]:
    """The latest consecutive readings for which `holds` is true; empty if it is false for the last one."""
    if not series or not holds(series[-1].value):
        return ()
    return stretch(series, lambda older, _: holds(older.value))


def failed_readings(view: View, check: str) -> Series[tuple[HealthCheck, ...]]:
    """Return the latest consecutive readings in which a health check of the broker failed."""
    readings: Series[tuple[HealthCheck, ...]] = view.window.readings("health")
    return trailing(readings, lambda checks: any(each.name == check and each.ok is False for each in checks))


def since_start(series: Series[Node]) -> Series[Node]:
    """The readings of a running node since its last start, by its uptime."""
    return stretch(
        tuple(seen for seen in series if seen.value.running),
        lambda older, newer: (newer.value.uptime_seconds or 0) >= (older.value.uptime_seconds or 0),
    )


def just_started(view: View, node: Node) -> bool:
    """Return whether a node started so recently that refusals or slowness prove nothing yet.

    In its first seconds a restarted node reports no uptime (seen on 4.3.6).
    """
    if not node.running:
        return False
    if node.uptime_seconds is None:
        return any(seen.value.uptime_seconds is not None for seen in view.node_history(node.name))
    # The uptime has increased since it was read.
    return node.uptime_seconds + (view.age("nodes") or 0.0) < view.thresholds.nodes.starts_for


def restarts(view: View, name: str) -> Series[Node]:
    """Return the first reading after each restart of a node within two hours, oldest first."""
    readings = {
        seen.at.mono: seen
        for seen in (*view.node_trend(name), *view.node_history(name))
        if seen.value.uptime_seconds is not None
    }
    ordered = [readings[moment] for moment in sorted(readings)]
    return tuple(
        newer
        for older, newer in pairwise(ordered)
        if (newer.value.uptime_seconds or 0) < (older.value.uptime_seconds or 0)
    )


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the increase of a value per second, by least squares; None if all points have the same time."""
    if len(points) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    variance = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / variance if variance else None


def points_of(series: Series[Node], value: Callable[[Node], float | None]) -> list[tuple[float, float]]:
    """Return (seconds since the first reading, value) of a node; readings without the value are left out."""
    return [(seen.at.since(series[0].at), found) for seen in series if (found := value(seen.value)) is not None]
