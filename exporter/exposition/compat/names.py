"""Which names the broker's metrics have: a setting."""

from enum import StrEnum


class MetricNames(StrEnum):
    """Names of the broker's metrics.

    `official` are those of RabbitMQ's own plugin, `rabbitmq_exporter` those of the ended exporter in their place,
    `both` the official ones and of the ended exporter's those that the official ones leave free. Names that begin
    `ackscope_` are always there.
    """

    OFFICIAL = "official"
    RABBITMQ_EXPORTER = "rabbitmq_exporter"
    BOTH = "both"
