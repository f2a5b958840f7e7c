"""Settings of what `/metrics` shows."""

import re

from pydantic import Field, field_validator

from ackscope.settings import Settings
from exporter.exposition.cardinality.selection import CardinalityLimits
from exporter.exposition.compat.names import MetricNames


class MetricsSettings(Settings):
    """What `/metrics` shows.

    What a cap or a pattern leaves out is in the series of the remainder, `queue="(other)"` and so on, where a metric of
    such objects can be added up, and `ackscope_dropped_series` says how many objects that is; nothing is left out of
    the totals.

    Attributes:
        names: names of the broker's metrics: official, rabbitmq_exporter (those of kbudde/rabbitmq_exporter
            instead), or both.
        detailed: queues under the names of the official plugin's /metrics/detailed, too, as the cluster operator's
            queue dashboard asks for them.
        max_queues: queues of a cluster that get series of their own: those with most messages, most unacknowledged,
            most redeliveries, most change; one that was shown stays for 5 minutes where there is room.
        max_channels: channels of a cluster that get series of their own, chosen likewise.
        max_consumers: consumers of a cluster that get series of their own, those that hold most messages.
        max_connections: connections of a cluster that get series of their own, those with most to send and most change.
        max_exchanges: exchanges of a cluster that get series of their own, those with most traffic.
        max_vhosts: virtual hosts of a cluster that get series and totals of their own, those with most messages first.
        max_links: shovels and federation links of a cluster that get series of their own, those that do not run first.
        max_policies: policies of a cluster that get series of their own, those of the highest priority first.
        max_limits: limits of virtual hosts and users of a cluster that get series of their own, the smallest first.
        max_features: feature flags and deprecated features of a cluster that get series of their own, deprecated ones
            in use and flags that are disabled first.
        max_findings: findings of a cluster that get series of their own, the worst first.
        include_queues: regular expression that is searched for in `vhost/name` (`//orders` in the virtual host `/`);
            queues that match, and their consumers, get series of their own before all others; empty: none does.
        exclude_queues: likewise; queues that match, and their consumers, never get series of their own.
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
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is no regular expression: {error}; write '^shop/orders' or the like") from None
        return value

    @property
    def limits(self) -> CardinalityLimits:
        """The caps, as collectors take them."""
        return CardinalityLimits(**{kind: getattr(self, f"max_{kind}") for kind in CardinalityLimits._fields})
