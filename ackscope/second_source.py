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
class QueueTypeTotals:
    """What happened in all queues of one type. None where this version does not count it.

    Attributes:
        delivered, accepted, redelivered: messages of AMQP 1.0 consumers; what they settle with another outcome is in
            none of these.
        rejected, over_limit: messages that were deleted because a consumer of any protocol rejected them, or returned
            them too often; only of queues without a dead-letter exchange.
    """

    delivered: int | None = None
    accepted: int | None = None
    redelivered: int | None = None
    rejected: int | None = None
    over_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTotals:
    """What all AMQP 1.0 clients of a cluster did since its nodes started. The management API counts none of it.

    Attributes:
        received: messages that they published.
        awaited: those of them for which the publisher waits for an outcome.
        unroutable: those that no queue took, so that they were released.
        types: queue type -> what happened in its queues.
        commands: virtual host -> quorum queue -> commands in its log. Each message that arrives, each settlement and
            each change of credit is a command.
    """

    received: int | None = None
    awaited: int | None = None
    unroutable: int | None = None
    types: Mapping[str, QueueTypeTotals] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsReading:
    """A reading of the Prometheus endpoints of the nodes. The figures themselves are in the parts of the snapshot.

    Attributes:
        nodes: nodes that answered.
        unread: nodes or addresses that did not, each with the reason.
        families: parts whose figures come from it.
        alone: whether no management API is read.
        disagreements: figures in which it differed from the management API in every reading for some time.
        native: sums over all nodes; None while one of them is unread.
    """

    nodes: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    alone: bool = False
    disagreements: tuple[Disagreement, ...] = ()
    native: NativeTotals | None = None
