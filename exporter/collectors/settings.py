"""Settings of what `/metrics` shows."""

from pydantic import Field

from ackscope.settings import Settings
from exporter.collectors.contract import Limits


class MetricsSettings(Settings):
    """What `/metrics` shows.

    Attributes:
        max_queues: queues of a cluster that get series of their own, those with most messages first;
            `ackscope_dropped_series` says how many were left out.
        max_findings: findings of a cluster that get series of their own, the worst first.
    """

    max_queues: int = Field(default=5000, ge=0)
    max_findings: int = Field(default=500, ge=0)

    @property
    def limits(self) -> Limits:
        """The caps, as collectors take them."""
        return Limits(queues=self.max_queues, findings=self.max_findings)
