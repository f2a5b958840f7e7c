"""What the rules about nodes share: stretches of readings, slopes, and how a node is named in commands."""

import shlex
from collections.abc import Callable, Sequence

from ackscope.findings import Subject
from ackscope.snapshot import Node
from diagnosis.series import T, stretch
from diagnosis.view import View
from diagnosis.window import Seen, Series


def of_node(name: str) -> Subject:
    """A node as the subject of a finding."""
    return Subject(kind="node", name=name, node=name)


def of_cluster(view: View) -> Subject:
    """The cluster as the subject of a finding."""
    return Subject(kind="cluster", name=view.window.cluster)


def on(name: str | None) -> str:
    """The option of command-line tools that names a node, with a space behind; "" for the one at hand."""
    return f"-n {shlex.quote(name)} " if name else ""


def lasting(series: Series[T], holds: Callable[[T], bool]) -> Series[T]:
    """The latest readings in a row of which something is true; empty where it is not true of the last one."""
    if not series or not holds(series[-1].value):
        return ()
    return stretch(series, lambda older, _: holds(older.value))


def since_start(series: Series[Node]) -> Series[Node]:
    """The readings of a node since it was last started; its own clock tells, and it must be running."""
    return stretch(
        tuple(seen for seen in series if seen.value.running),
        lambda older, newer: (newer.value.uptime_seconds or 0) >= (older.value.uptime_seconds or 0),
    )


def just_started(view: View, node: Node) -> bool:
    """Whether a node was started so lately that what it refuses, or how slow it is, says nothing yet.

    In its first seconds it tells no uptime, where it did before (seen on 4.3.6).
    """
    if not node.running:
        return False
    if node.uptime_seconds is None:
        return any(seen.value.uptime_seconds is not None for seen in view.node_history(node.name))
    # What was read a while ago has grown older since.
    return node.uptime_seconds + (view.age("nodes") or 0.0) < view.thresholds.nodes.starts_for


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """What a value gains a second, by least squares; None where all points are of one moment."""
    if len(points) < 2:
        return None
    middle = sum(at for at, _ in points) / len(points)
    mean = sum(value for _, value in points) / len(points)
    spread = sum((at - middle) ** 2 for at, _ in points)
    return sum((at - middle) * (value - mean) for at, value in points) / spread if spread else None


def points_of(series: Series[Node], value: Callable[[Node], float | None]) -> list[tuple[float, float]]:
    """Seconds since the first reading, and a figure of the node; readings without it are left out."""
    return [(_offset(series, seen), found) for seen in series if (found := value(seen.value)) is not None]


def _offset(series: Series[Node], seen: Seen[Node]) -> float:
    return seen.at.since(series[0].at)
