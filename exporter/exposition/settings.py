"""Settings of `/metrics`."""

from pydantic import Field, field_validator

from ackscope.settings import Settings, pattern_problem
from exporter.exposition.cardinality.selection import CardinalityLimits
from exporter.exposition.compat.names import MetricNames


class MetricsSettings(Settings):
    """What `/metrics` shows.

    Objects beyond a limit or excluded by a pattern are summed up in the series of the remainder, `queue="(other)"` and
    so on, as far as a metric can be summed. `ackscope_dropped_series` counts them. Totals always include every object.

    Attributes:
        names: names of the broker's metrics: official, rabbitmq_exporter (those of kbudde/rabbitmq_exporter instead),
            or both.
        detailed: also export queues under the names of the official plugin's /metrics/detailed, which the queue
            dashboard of the cluster operator uses.
        max_queues: queues per cluster with series of their own: most messages, most unacknowledged, most redeliveries,
            most change. A queue that was shown keeps its place for 5 minutes if there is room.
        max_channels: channels per cluster with series of their own, selected like queues.
        max_consumers: consumers per cluster with series of their own, most unacknowledged messages first.
        max_connections: connections per cluster with series of their own, most pending output and most change first.
        max_exchanges: exchanges per cluster with series of their own, most traffic first.
        max_vhosts: virtual hosts per cluster with series and totals of their own, most messages first.
        max_links: shovels and federation links per cluster with series of their own, those not running first.
        max_policies: policies per cluster with series of their own, highest priority first.
        max_limits: limits of virtual hosts and users per cluster with series of their own, smallest first.
        max_features: feature flags and deprecated features per cluster with series of their own, deprecated features in
            use and disabled flags first.
        max_findings: findings per cluster with series of their own, most severe first.
        include_queues: regular expression searched in `vhost/name` (`//orders` in the virtual host `/`). Matching
            queues and their consumers get series before all others. Empty matches none.
        exclude_queues: regular expression like include_queues. Matching queues and their consumers never get series of
            their own.
    """

    names: MetricNames = MetricNames.OFFICIAL
    detailed: bool = False
    max_queues: int = Field(default=5000, ge=0)
    max_channels: int = Field(default=1000, ge=0)
    max_consumers: int = Field(default=1000, ge=0)
    max_connections: int = Field(default=1000, ge=0)
    max_exchanges: int = Field(default=1000, ge=0)
    max_vhosts: int = Field(default=1000, ge=0)
    max_links: int = Field(default=1000, ge=0)
    max_policies: int = Field(default=1000, ge=0)
    max_limits: int = Field(default=1000, ge=0)
    max_features: int = Field(default=500, ge=0)
    max_findings: int = Field(default=500, ge=0)
    include_queues: str = ""
    exclude_queues: str = ""

    @field_validator("include_queues", "exclude_queues")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        problem = pattern_problem(value)
        if problem is not None:
            raise ValueError(f"invalid regular expression {value[:80]!r}: {problem}; use '^shop/orders' for example")
        return value

    @property
    def limits(self) -> CardinalityLimits:
        """The limits, as collectors use them."""
        return CardinalityLimits(**{kind: getattr(self, f"max_{kind}") for kind in CardinalityLimits._fields})
