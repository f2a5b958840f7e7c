"""Settings of polling."""

from pydantic import Field

from ackscope.settings import Seconds, Settings


class PollSettings(Settings):
    """How the management APIs are polled.

    Attributes:
        interval: seconds between polls; brokers refresh statistics every 5 s, so a shorter interval gains nothing.
        budget: share of one core of each broker that polling may take, not counting overview, nodes and health checks;
            0.01 is 1 %. What exceeds it is polled less often, and statistics of single queues in rotation. The totals
            of all queues are read once a minute even if that exceeds the budget, up to 1/30 of a core. Default: 0.01
            while the broker is active. While it is idle, 1.25e-6 per queue (for at least 1,000 queues) plus whatever
            is read within 5 ms; totals may then take up to 1/60 of a core, and with fewer than 2,000 queues all
            statistics are read every 2.5 minutes instead.
    """

    interval: Seconds = Field(default=5.0, ge=1.0, le=300.0)
    budget: float | None = Field(default=None, ge=0.001, le=1.0)
