"""What a snapshot tells about the Prometheus endpoints of the nodes, the second source of its figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field


class SettingsUnknown(Exception):
    """A rule asked for a setting of a queue whose figures alone are known. Absent would mean that it is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A figure of a queue for which the management API and the Prometheus endpoints give different values.

    Attributes:
        figure: field of the management API, such as `messages_ready`.
        metric: the metric with the same meaning.
        management, prometheus: the two values.
    """

    vhost: str
    queue: str
    figure: str
    metric: str
    management: int
    prometheus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsReading:
    """A reading of the Prometheus endpoints of the nodes. The figures themselves are in the parts of the snapshot.

    Attributes:
        nodes: nodes that answered.
        unread: nodes or addresses that did not, each with the reason.
        families: parts whose figures come from it.
        alone: whether no management API is read.
        disagreements: figures in which it differed from the management API in every reading for some time.
    """

    nodes: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    alone: bool = False
    disagreements: tuple[Disagreement, ...] = ()
