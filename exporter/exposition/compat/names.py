"""The setting that chooses the names of the broker's metrics."""

from enum import StrEnum


class MetricNames(StrEnum):
    """Names of the broker's metrics.

    `official`: those of RabbitMQ's own plugin. `rabbitmq_exporter`: those of kbudde/rabbitmq_exporter instead. `both`:
    the official ones, plus those of rabbitmq_exporter that do not clash. `ackscope_` metrics are always exported.
    """

    OFFICIAL = "official"
    RABBITMQ_EXPORTER = "rabbitmq_exporter"
    BOTH = "both"
