"""Settings of the polling."""

from pydantic import Field

from ackscope.settings import Seconds, Settings


class PollSettings(Settings):
    """How the management APIs are polled.

    Attributes:
        interval: time from poll to poll; brokers refresh their figures every 5 s, so less tells nothing new.
        budget: how much of one core of each broker its polling may take, beside overview, nodes and health checks: 0.01
            is a hundredth. What costs more is asked less often, and statistics of single queues by turns. The totals
            of all queues are read once a minute even where that is more, up to a thirtieth of a core. By default 0.01
            while something moves on the broker, and less while nothing does: 1.25 millionths a queue, of 1,000 at
            least, and in addition whatever is read within 5 ms; totals then up to a sixtieth,
            or up to 2,000 queues all of their statistics instead, every two and a half minutes.
    """

    interval: Seconds = Field(default=5.0, ge=1.0, le=300.0)
    budget: float | None = Field(default=None, ge=0.001, le=1.0)
