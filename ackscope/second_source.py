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
        rejected, over_limit, expired, over_length: messages that were deleted because a consumer of any protocol
            rejected them or returned them too often, because they expired, or because of a length limit; only of
            queues without a dead-letter exchange.
    """

    delivered: int | None = None
    accepted: int | None = None
    redelivered: int | None = None
    rejected: int | None = None
    over_limit: int | None = None
    expired: int | None = None
    over_length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTotals:
    """What the endpoints count since the nodes of a cluster started, and the management API does not.

    `received`, `awaited`, `unroutable` and the counters of `types` that say so are those of all AMQP 1.0 clients.

    Attributes:
        received: messages that they published.
        awaited: those of them for which the publisher waits for an outcome.
        unroutable: those that no queue took, so that they were released.
        types: queue type -> what happened in its queues.
        to_confirm: messages of all protocols for which the publisher waits for a confirm or an outcome.
        confirmed: those of them that were confirmed or accepted; what was refused is not among them.
        unconfirmed: those that AMQP 0-9-1 publishers wait for now.
        dead_lettered: reason -> messages that queues of all types gave to a dead-letter exchange.
        commands: virtual host -> quorum queue -> commands in its log. Each message that arrives, each settlement and
            each change of credit is a command.
    """

    received: int | None = None
    awaited: int | None = None
    unroutable: int | None = None
    to_confirm: int | None = None
    confirmed: int | None = None
    unconfirmed: int | None = None
    dead_lettered: Mapping[str, int] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPublishes:
    """What one channel published to one exchange, as its node counts it: messages since the channel was opened.

    Attributes:
        node: node of the channel.
        process: Erlang process of the channel at that node, such as `<0.913.0>`. The management API does not name it.
        vhost: virtual host of the exchange.
        exchange: its name; "" is the default exchange.
        published, confirmed: messages.
        returned, dropped: messages that no queue took, with and without the flag mandatory.
    """

    node: str
    process: str
    vhost: str
    exchange: str
    published: int | None = None
    confirmed: int | None = None
    returned: int | None = None
    dropped: int | None = None

    @property
    def loses(self) -> bool:
        """Whether a message was returned or dropped."""
        return bool(self.returned or self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangePublishes:
    """A reading of which channel publishes to which exchange, from the Prometheus endpoints of the nodes.

    Attributes:
        nodes: nodes that answered.
        unread: nodes or addresses that did not, each with the reason. What an exchange gets is then not known in full.
        seconds: from the first request to the end of the last answer.
        channels: those whose messages were returned or dropped first, then by what they published.
        omitted: how many more there are, by channel and exchange.
    """

    nodes: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    channels: tuple[ChannelPublishes, ...] = ()
    omitted: int = 0
